"""The share of pixels in which CA-Fed leaves out a client, against Algorithm 1 written out."""

import numpy as np
import pytest
from lightning.pytorch import Callback

from rollcall import simulate
from rollcall.benchmark.experiments.ca_fed import analyses
from rollcall.benchmark.experiments.ca_fed.analyses import decisions, summary

PI = np.repeat([0.9, 0.1], 50)
LAMBDA = np.repeat([0, 0, 0, 0, 0, 0.5, 0.6, 0.7, 0.8, 0.9], 10)


class States(Callback):
    def __init__(self):
        self.gaps, self.active, self.alpha = [], [], None

    def on_train_batch_end(self, trainer, federation, *_):
        state = federation.state.get()
        self.alpha = federation.alpha
        self.gaps.append((state.Fh - state.least).double().numpy())
        self.active.append(federation.participation.active(federation.t - 1))


def by_the_algorithm(gap, alpha, kappa2):
    """Algorithm 1, lines 5 to 7; a client is kept if eps stays the same."""

    def eps(q):
        p = PI * q / (PI * q).sum()
        return gap @ p + 4 * kappa2 * (np.abs(alpha - p).sum() / 2) ** 2 * gap.max()

    q = alpha / PI
    for order in (np.argsort(-LAMBDA, kind="stable"), np.argsort(PI, kind="stable")):
        for k in order:
            without = np.where(np.arange(100) == k, 0, q)
            if without.any() and eps(q) - eps(without) > 1e-12:
                q = without
    return q == 0


@pytest.mark.parametrize("kappa2", [0.01, 1.0])
def test_decisions_are_those_of_algorithm_1(monkeypatch, kappa2):
    states, simulate = States(), analyses.simulate
    monkeypatch.setattr(analyses, "simulate", lambda trial, callbacks: simulate(trial, callbacks=[*callbacks, states]))
    table = decisions(3, distributions="clusters", algorithm={"kappa2": kappa2}, rounds=6, task="digits")
    assert all(len(active) for active in states.active)
    left_out = np.array([by_the_algorithm(gap, states.alpha, kappa2) for gap in states.gaps])
    share = left_out.mean(axis=0)
    assert share.max() > 0
    away = np.array([np.isin(np.arange(100), active, invert=True) for active in states.active])
    assert (left_out & away).any() or kappa2 == 1  # a client that is away counts, too
    assert table["left_out/often"][0] == pytest.approx(share[:50].mean(), abs=2e-3)  # rounding decides ties otherwise
    for c in range(5, 10):
        assert table[f"left_out/{c}"][0] == pytest.approx(share[10 * c : 10 * c + 10].mean(), abs=0.02)


def test_the_summary_by_hand():
    left_out = np.zeros((4, 20), dtype=bool)  # clusters of two
    left_out[0, 18] = left_out[:, 19] = True  # cluster 9: 5 of 8 pixels
    left_out[1:3, 16] = True  # cluster 8: 2 of 8
    left_out[:, 0] = left_out[0, 9] = True  # clusters 0 and 4: 5 of 40
    row = summary(left_out).iloc[0].to_dict()
    shares = {f"left_out/{c}": 0.0 for c in (5, 6, 7)} | {"left_out/8": 0.25, "left_out/9": 0.625}
    assert row == pytest.approx({"round": 0, "left_out/often": 0.125, "least_of_6_to_9": 0.0, "rare": 7 / 12, **shares})
    assert summary(np.zeros((3, 20), dtype=bool))["rare"][0] == 1


def test_a_client_that_is_never_available_counts_as_left_out():
    """Its estimated loss stays at that of round 0. pi_i = 0, so that alpha_i / pi_i is infinite."""
    trial = {
        "task": {"name": "quadratic", "targets": [1.0, 1.0, 5.0]},
        "participation": {
            "name": "trace", "mask": [[1, 1, 0], [1, 0, 0]], "stationary": [1.0, 0.5, 0.0], "correlation": [0.1, 0.2, 0.9],
        },
        "algorithm": {"name": "ca_fed", "kappa2": 0.001, "least": "zero"},
        "local": {"lr": 0.5},
        "rounds": 20,
    }  # fmt: skip
    recorded = analyses.Decisions()
    simulate(trial, callbacks=[recorded])
    assert recorded.left_out[-1][2]
