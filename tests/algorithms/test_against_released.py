"""Ten rounds or more of the authors' released code, recorded in `released/` with their provenance; to 1e-10."""

import json
import math
from pathlib import Path

import numpy as np
import pytest
import torch
from clients import Clients

from rollcall.algorithms import ALGORITHMS, AmplifiedScaffold, FedStale, Round

FEDSTALE, AMPLIFIED_SCAFFOLD, FEDPBC = (
    json.loads((Path(__file__).parent / "released" / f"{name}.json").read_text())
    for name in ("fedstale", "amplified_scaffold", "fedpbc")
)
AS_RELEASED = {
    "f3ast": {"capacity": 10, "beta": 0.01, "selection": "released"},
    "fedavg_known": {"probability": "last_client"},
    "fedpbc": {"eta_g": FEDPBC["eta_g"]},
    "mifa": {"memory": "updates"},
}
"""Options of FedPBC's baselines that follow its released code; the others follow it as they are."""


class Recorded(Clients):
    """Clients that move by their recorded updates."""

    steps = 3

    def __init__(self, D):
        self.D = torch.tensor(D, dtype=torch.float64)

    def sgd(self, clients, start, **_):
        return start + self.D if len(clients) else start


@pytest.mark.parametrize("run", ["estimated", "known"])
def test_fedstale(run):
    """The release's server also decays x by 5e-4 in each step; round 6 of `known` is empty."""
    recorded, decay = FEDSTALE["runs"][run], FEDSTALE["decay"]
    w, x = (torch.tensor(recorded[name], dtype=torch.float64) for name in ("w", "x0"))
    method = FedStale(beta=FEDSTALE["beta"], empty="skip")
    state = method.init(x, len(w))
    assert len(recorded["rounds"]) == 10
    assert any(not one["active"] for one in recorded["rounds"]) == (run == "known")
    for t, one in enumerate(recorded["rounds"]):
        A = torch.tensor(one["active"], dtype=torch.int64)
        p = torch.ones_like(w).index_copy(0, A, w[A] / torch.tensor(one["factor"], dtype=torch.float64))
        update, state = method.round(state, x, Round(t, A, 5e-3, w, stationary=p), Recorded(one["D"]))
        x = x if update is None else x - decay * x + update
        assert x.tolist() == pytest.approx(one["x"], abs=1e-10, rel=0)


class Synthetic(Clients):
    """Clients of the release's four-dimensional objective, with noise in the third gradient."""

    steps = property(lambda self: self.s["I"])

    def __init__(self, settings, noise, eta):
        self.s, self.noise, self.eta = settings, noise, eta

    def steps_of(self, clients):
        return torch.full_like(clients, self.steps)

    def sgd(self, clients, start, *, correct):
        s, ends = self.s, []
        for i, y, b in zip(clients.tolist(), start, correct, strict=True):
            sign, k = (1, s["L"]) if i % 2 == 0 else (-1, s["lamb"])
            for xi in self.noise[i]:
                slopes = [s["mu"], s["H"], s["H"] / 4 * (1 + (y[2] > 0)), k / 2]
                at_zero = [-s["mu"] * s["c"], -s["H"] * s["c"] * (s["mu"] / s["H"]) ** 0.5, xi, sign * s["zeta"]]
                y = y - self.eta * (torch.tensor(slopes, dtype=y.dtype) * y + torch.tensor(at_zero, dtype=y.dtype) + b)
            ends.append(y)
        return torch.stack(ends)


@pytest.mark.parametrize("run", list(AMPLIFIED_SCAFFOLD["runs"]))
def test_amplified_scaffold(run):
    """The release's local rate is lr / gamma. Clients and noise come from NumPy's global generator, in its order."""
    s, path = (AMPLIFIED_SCAFFOLD["runs"][run][name] for name in ("settings", "x"))
    draw, eta, m = np.random.RandomState(s["seed"]), s["lr"] / s["gamma"], s["M"]
    method, x = AmplifiedScaffold(gamma=s["gamma"], P=s["P"]), torch.zeros(4, dtype=torch.float64)
    state = method.init(x, m)
    assert len(path) == 10
    for t, expected in enumerate(path):
        group = t % s["P"] // (s["P"] // s["client_groups"])
        available = range(m) if s["sampling"] == "uniform" else [i for i in range(m) if i % s["client_groups"] == group]
        sampled = draw.choice(list(available), size=s["S"], replace=False)
        noise = {int(i): torch.tensor(draw.normal(scale=s["sigma"], size=s["I"])) for i in sampled}
        call = Round(t, torch.tensor(sorted(noise)), eta, torch.full((m,), 1 / m, dtype=torch.float64))
        update, state = method.round(state, x, call, Synthetic(s, noise, eta))
        x = x + update
        assert x.tolist() == pytest.approx(expected, abs=1e-10, rel=0)


@pytest.mark.parametrize("name", list(FEDPBC["x"]))
def test_fedpbc_and_its_baselines(name):
    """Exactly ten clients answer in round 0, none in round 4, and more than ten in most others."""
    h, u, x = (torch.tensor(FEDPBC[key], dtype=torch.float64) for key in ("h", "u", "x0"))
    m, eta_g = len(h), 1.0 if name == "fedpbc" else FEDPBC["eta_g"]  # FedPBC's clients apply it
    method = ALGORITHMS[name](**AS_RELEASED.get(name, {}))
    state = method.init(x, m)
    for t, (active, p, expected) in enumerate(zip(FEDPBC["active"], FEDPBC["p"], FEDPBC["x"][name], strict=True)):
        lr = FEDPBC["lr"] / math.sqrt(t / 10 + 1)
        alpha = torch.full((m,), 1 / m, dtype=torch.float64)
        call = Round(t, torch.tensor(active, dtype=torch.int64), lr, alpha, probability=torch.tensor(p, dtype=x.dtype))
        update, state = method.round(state, x, call, Clients(u, h, 5, lr))
        x = x if update is None else x + eta_g * update
        assert method.eval_models(state, x)[""].tolist() == pytest.approx(expected, abs=1e-10, rel=0)
