"""Verdicts of the suite's own experiments, and the break of a formula or of the code that turns each of them."""

import numpy as np
import pytest

from rollcall import simulate
from rollcall.algorithms import FedAvgDebiased
from rollcall.benchmark.config.analysis import Analysis
from rollcall.benchmark.config.digest import flatten, plain
from rollcall.benchmark.config.experiment import Experiment, places
from rollcall.leaderboard.cells import cells
from rollcall.leaderboard.paper.claims import check_claim, weakest
from rollcall.leaderboard.runs import Run
from rollcall.participation import statements
from rollcall.participation.theory import chains


def verdict(statement, name, **only):
    """The verdict on a statement after its analyses and trials are computed anew, for a part of the grid."""
    experiment = Experiment.read(name).only(only)
    made = []
    for place in places(experiment):
        trial = place.trial
        table = trial.table() if isinstance(trial, Analysis) else simulate(trial).history
        made.append(Run({"seed": str(place.seed)}, flatten(plain(place.spec)), table.set_index("round", drop=False)))
    results = [
        check_claim(claim, experiment, cells(experiment, made))
        for claim in experiment.claims
        if claim.statement == statement
    ]
    return weakest(result.verdict for result in results if result.places)


@pytest.mark.full
def test_theorem_the_limit_of_fixed_weights(monkeypatch):
    """CAF-36: weights alpha / pi leave no bias. A step of its own in each round would leave one."""

    def decided():
        return verdict("CAF-36", "ca_fed/quadratics", panel=["limit"], **{"analysis.rounds": ["30000"]}, seed=[0, 1, 2])

    assert decided() == "holds"
    exact = chains.affine_moments

    def wrong(transition, law, a, b, x, rates):
        return exact(transition, law, a, b + 1, x, rates)

    monkeypatch.setattr(statements, "affine_moments", wrong)
    assert decided() == "contradicted"


def test_theorem_the_tail_of_the_shares(monkeypatch):
    """HAR-12: Hoeffding's bound holds; a bound with a hundred times its exponent would not."""

    def decided():
        return verdict("HAR-12", "harrak/statements", panel=["tail"], **{"analysis.rounds": ["10"]})

    assert decided() == "holds"
    monkeypatch.setattr(statements.np, "exp", lambda x: np.expm1(100 * x) + 1)
    assert decided() == "contradicted"


def test_counterexample_the_weights_that_minimise_equation_13():
    """CAF-41 is contradicted by the factor pi_k of Sigma; without it the best weights are linear in pi, rarer clients last."""
    case = Experiment.read("ca_fed/statements").panels["weights"].grid["case"]["Eq. 13, sigma^2 = 1,000"]
    assert verdict("CAF-41", "ca_fed/statements", panel=["weights"]) == "contradicted"
    options = {name.removeprefix("analysis."): value for name, value in case.items()}
    for power, worse in ((1, True), (0, False)):
        (found,) = statements.weight_bounds(0, stationary=[0.1, 0.5, 0.9], **options, power=power).to_dict("records")
        assert (found["rarest"] > 0) == (found["curved"] > 0.001) == worse


@pytest.mark.full
def test_counterexample_the_number_of_clients(monkeypatch):
    """SUN-29: the error after 200 rounds grows with N; it would not if the method knew pi (nu = 1)."""

    def decided():
        return verdict("SUN-29", "sun/clients", seed=[0, 1, 2], **{"task.clients": [10, 1000]})

    assert decided() == "contradicted"
    monkeypatch.setattr(
        FedAvgDebiased,
        "round",
        lambda self, state, x, call, work: (
            work.sgd(call.active, x.expand(len(call.active), -1)).mean(dim=0) - x,
            state,
        ),
    )
    assert decided() != "contradicted"
