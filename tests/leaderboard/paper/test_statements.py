"""A tenth of the statements' experiments run again; and faults in code or formulas, which must turn verdicts."""

from functools import cache
from itertools import chain
from math import comb

import numpy as np
import pandas as pd
import pytest

from rollcall import simulate
from rollcall.algorithms import FedAvg, FedAvgDebiased, FedPBC, Focus, LocalSGD
from rollcall.algorithms.base import Nothing
from rollcall.algorithms.fedpbc import LocalModels
from rollcall.algorithms.focus import Tracking
from rollcall.benchmark.config.digest import serialised
from rollcall.benchmark.config.experiment import names, places
from rollcall.benchmark.config.trial import Analysis
from rollcall.benchmark.experiments.ca_fed import analyses as ca_fed
from rollcall.benchmark.experiments.fedpbc import analyses as fedpbc
from rollcall.benchmark.experiments.sun import analyses as sun
from rollcall.leaderboard.cells import cells
from rollcall.leaderboard.paper.claims import check_claim
from rollcall.leaderboard.paper.experiment import PaperExperiment
from rollcall.leaderboard.runs import Run, unarchive
from rollcall.tasks import ridge

pytestmark = pytest.mark.full

OPTIONS = ("minus", "over", "along", "slope", "at", "either", "printed", "cause", "least", "most")


@cache
def read(name):
    return PaperExperiment.read(name)


def panels_of(experiment, claim):
    """The panels whose runs a claim reads."""
    parts = (claim.where, claim.of, claim.minus or {}, claim.over or {})
    return set(chain.from_iterable(labels.get("panel", ()) for labels in parts)) or set(experiment.panels)


def part(experiment, claim):
    """The experiment with what a claim needs: its panels, and its labels on axes on which nothing is compared."""
    compared = {*(claim.minus or {}), *(claim.over or {})}
    labels = {axis: list(found) for axis, found in (claim.where | claim.of).items() if axis not in compared}
    return experiment.only(labels | {"panel": sorted(panels_of(experiment, claim))})


def kinds(experiment, claim):
    """The analyses that a claim reads, and the options that it has."""
    computed = [experiment.panels[panel].analysis for panel in panels_of(experiment, claim)]
    given = {option for option in OPTIONS if getattr(claim, option) is not None}
    return given | {analysis["name"] if analysis else "training" for analysis in computed}


def cost(experiment, claim):
    """A measure of the time of a claim's runs: their rounds; an analysis counts as 200."""
    every = sorted(places(part(experiment, claim)), key=lambda place: place.rounds)
    return sum({place.digest: 200 if "analysis" in place.spec else place.rounds for place in every}.values())


def ran(experiment, known=None):
    """The runs of an experiment, computed now unless they are known; of equal trials the longest."""
    known = {} if known is None else known
    for place in sorted(places(experiment), key=lambda place: -place.rounds):
        if place.digest not in known or known[place.digest].rounds < place.rounds:
            trial = place.trial
            table = trial.table() if isinstance(trial, Analysis) else simulate(trial).history
            tags = {"seed": str(place.seed), "rollcall.trial": place.digest}
            known[place.digest] = Run(tags, serialised(place.spec), table.set_index("round").astype(float))
    return [known[digest] for digest in {place.digest for place in places(experiment)}]


@cache
def archived(name):
    """The kept runs of an experiment by digest."""
    return {run.tags["rollcall.trial"]: run for run in unarchive(read(name).home)}


@cache
def cells_of(name):
    return cells(read(name), list(archived(name).values()))


def kept(experiment, claim):
    return check_claim(claim, experiment, cells_of(experiment.name)).verdict


def test_a_tenth_of_the_statements_is_run_again():
    """The cheapest claims that have a new kind of analysis or of claim: equal rows and equal verdicts."""
    every = [read(name) for pattern in ("*/statements", "*/quadratics") for name in names(of=pattern)]
    claims = [(one, claim) for one in every for claim in one.claims]
    claims = [
        pair for pair in claims if {place.digest for place in places(part(*pair))} <= archived(pair[0].name).keys()
    ]
    claims.sort(key=lambda pair: cost(*pair))
    chosen, seen = [], set()
    for experiment, claim in claims:
        if kept(experiment, claim) in ("not run", "too short"):
            continue
        if kinds(experiment, claim) - seen or len(chosen) < len(claims) / 10:
            chosen.append((experiment, claim))
            seen |= kinds(experiment, claim)
    known = {}
    for experiment, claim in chosen:
        of = part(experiment, claim)
        runs = ran(of, known)
        for run in runs:
            before = archived(experiment.name)[run.tags["rollcall.trial"]].history.loc[: run.history.index[-1]]
            again = run.history.loc[before.index, before.columns]
            np.testing.assert_allclose(again, before, rtol=1e-5, atol=1e-9, err_msg=f"{experiment.name}: {claim.says}")
        assert check_claim(claim, of, cells(of, runs)).verdict == kept(experiment, claim), claim.says


def only_active(self, state, x, call, work):
    """FedPBC with line 14 as printed: an inactive client loses its progress."""
    update, after = FEDPBC(self, state, x, call, work)
    models = state.models.clone()
    models[call.active] = after.models[call.active]
    return update, LocalModels(models)


def mean_of_trackers(self, state, x, call, work):
    """FOCUS whose server averages the trackers instead of adding them."""
    _, after = FOCUS(self, state, x, call, work)
    y = state.y + (after.y - state.y) / max(1, len(call.active))
    return -call.lr * y, Tracking(y, after.h)


FEDPBC, FOCUS = FedPBC.round, Focus.round


def broadcast_before_averaging(p, at_once=0):
    """FedAvg's matrix: all clients take the mean of the active ones."""
    for chance, W in MIXING(p, at_once):
        active = W.diagonal() < 1
        yield chance, np.tile(active / active.sum(), (len(W), 1)) if active.any() else W


def exact_bound(seed: int, *, probability: np.ndarray, at_once: int = 0) -> pd.DataFrame:
    """The bound on rho of k of m is 1 - (k - 1)/(m - 1)."""
    table = GOSSIP(seed, probability=probability, at_once=at_once)
    return table.assign(excess=table["rho"] - (1 - (at_once - 1) / (len(probability) - 1)) - 1e-12)


def without_waiting(p, R, B=1):
    """Every round draws by p, also those who have just been drawn."""
    return B * p / p.sum()


def with_a_step_of_its_own(transition, law, a, b, x, rates):
    """The moments of a server that adds a step which no client asks for."""
    return MOMENTS(transition, law, a, b + 1, x, rates)


def without_chi_square(
    seed: int, *, stationary: np.ndarray, noise: float, floor: float, gamma: float = 0.0, power: int = 1
) -> pd.DataFrame:
    """Eq. 14 without the bound on the bias."""
    return BOUNDS(seed, stationary=stationary, noise=noise, floor=floor, power=power)


def hundredfold_exponent(x):
    """exp(100 x), a bound that falls too fast."""
    return EXP(100 * x)


MIXING, GOSSIP, EXP = fedpbc._mixing, fedpbc.gossip, np.exp
BOUNDS, MOMENTS = ca_fed.weight_bounds, ca_fed.affine_moments

BREAKS = {
    # Theorems
    "PBC-49": ("fedpbc/statements", "doubly stochastic", "holds", (fedpbc, "_mixing", broadcast_before_averaging), {}),
    "PBC-12 exact": ("fedpbc/quadratics", "squared gradient is O", "holds", (fedpbc, "_mixing", broadcast_before_averaging), {}),
    "PBC-12": ("fedpbc/quadratics", "reaches the optimum as O", "holds", (FedPBC, "round", only_active), {"method": ["FedPBC"]}),
    "SUN-09": ("sun/statements", "(0.3, 0.3, 0.4)", "holds", (sun, "stationary_separation", without_waiting), {}),
    "SUN-11": ("sun/quadratics", "for every R and p", "holds", (FedAvgDebiased, "round", lambda self, state, x, call, work: (FedAvg().round(Nothing(), x, call, work)[0], state)), {"case": ["R = 3, steeper p"]}),
    "PBC-52": ("fedpbc/statements", "summed change of a client", "holds", (fedpbc, "comb", lambda s, j: comb(s, j) if j < 3 else 0), {"analysis.steps": [5], "analysis.lr": [0.1]}),
    "SUN-32": ("sun/quadratics", "ends at the minimiser of the loss", "holds", (FedAvg, "round", LocalSGD.round), {"R": ["2"]}),
    "FOC-05": ("focus/quadratics", "exact for every scheme", "holds", (Focus, "round", mean_of_trackers), {"scheme": ["bernoulli"]}),
    "FOC-03": ("focus/quadratics", "to the last digits", "holds", (Focus, "round", mean_of_trackers), {"local.steps": [1]}),
    "CAF-36": ("ca_fed/quadratics", "alpha/pi the bias vanishes", "holds", (ca_fed, "affine_moments", with_a_step_of_its_own), {"weights": ["q = 1 / pi"], "analysis.rounds": [30000], "seed": [0, 1, 2]}),
    "HAR-12": ("harrak/statements", "chance that the plain share", "holds", (np, "exp", hundredfold_exponent), {"analysis.rounds": [10]}),
    # Counterexamples
    "CAF-41": ("ca_fed/statements", "the rarest client gets no more than the most", "contradicted", None, {"analysis.power": 0}),
    "CAF-43": ("ca_fed/statements", "total bound of Eq. 14", "erratum", (ca_fed, "weight_bounds", without_chi_square), {}),
    "PBC-10": ("fedpbc/statements", "If k of m clients", "erratum", (fedpbc, "gossip", exact_bound), {}),
    "PBC-20": ("fedpbc/statements", "is a lower bound of", "erratum", None, {"analysis.gamma": [0.2, 0.4, 0.5]}),
    "SUN-07": ("sun/statements", "irreducible for all R", "erratum", None, {"case": ["R < M - 1, N = 5, B = 1, R = 2"]}),
    "SUN-10": ("sun/quadratics", "is finite for any", "contradicted", None, {"analysis.rounds": 1000}),
    "FOC-09": ("focus/quadratics", "uniform sampling do not", "holds", (FedAvg, "round", LocalSGD.round), {}),
    "FOC-21": ("focus/quadratics", "even at a falling rate", "holds", (FedAvg, "round", LocalSGD.round), {}),
}  # fmt: skip
"""By statement: experiment, words of the claim, its kept verdict, what is replaced, and what part of the grid is run."""


@pytest.mark.parametrize("statement", BREAKS)
def test_a_fault_turns_the_verdict(statement, monkeypatch):
    name, words, before, fault, changes = BREAKS[statement]
    experiment = read(name)
    claim = next(claim for claim in experiment.claims if words in claim.says)
    assert kept(experiment, claim) == before
    cut = part(experiment, claim)
    for axis, values in changes.items():
        cut = cut.only({axis: values}) if isinstance(values, list) else cut.varied({axis: [values]})
    if any("analysis" not in place.spec for place in places(cut)):
        cut = cut.varied({"seed": [0, 1, 2]})
    if fault is not None:
        target, attribute, replacement = fault
        (monkeypatch.setitem if isinstance(target, dict) else monkeypatch.setattr)(target, attribute, replacement)
    after = check_claim(claim, cut, cells(cut, ran(cut))).verdict
    assert after == {"holds": "contradicted", "contradicted": "holds", "erratum": "holds"}[before]


def test_the_steps_of_debiased_fedavg_vanish_with_the_number_of_clients():
    """SUN-29: nu_t <= t / N, so the error is at least 1 - eta h T (T + 1) / (2 N), h the largest curvature; nu = 1 converges."""
    T, N, eta = 60, 20_000, 0.2
    trial = read("sun/clients").only({"task.clients": [10_000], "seed": [0]})
    settings = serialised(places(trial)[0].spec)
    settings["task"] |= {"clients": N}
    error = {}
    for method in ("fedavg_debiased", "fedavg"):
        result = simulate(settings | {"algorithm": method, "rounds": T, "evaluation": {"every": T}})
        error[method] = result.history["train/relative_error"].iloc[-1]
    _, data = ridge(0, clients=N, samples=10, dimension=1, noise=0.0)
    h = data.splits["train"][0].square().reshape(N, 10).mean(dim=1).max().item()
    assert 0 < 1 - eta * h * T * (T + 1) / (2 * N) <= error["fedavg_debiased"] < 1
    assert error["fedavg"] < 0.01
