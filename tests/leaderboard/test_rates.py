"""The learning rates of CA-Fed's figures on Synthetic are those that their rule takes from the kept search."""

import numpy as np
import pytest

from rollcall.benchmark.config.experiment import Experiment, places
from rollcall.leaderboard.runs import unarchive

ACCURACY = "validation/accuracy/per_client"
TIE = 0.005


def kind(settings):
    """Whose rates: the labelling of the task, the method and kappa2."""
    return tuple(settings.get(key, "") for key in ("task.labelling", "algorithm", "algorithm.kappa2"))


def rates(settings):
    return float(settings["local.lr"]), float(settings["server.lr"])


@pytest.fixture(scope="module")
def found():
    """For each method its rates by the rule: of the pairs within half a point, the one that is ahead at round 40."""
    searched = {}
    for run in unarchive("ca_fed/rates"):
        if run.settings["task"] == "leaf_synthetic":
            accuracy = run.history[ACCURACY]
            values = (accuracy[accuracy.index > 160].mean(), accuracy[40])
            searched.setdefault(kind(run.settings), {}).setdefault(rates(run.settings), []).append(values)
    chosen = {}
    for method, pairs in searched.items():
        means = {pair: np.mean(values, axis=0) for pair, values in pairs.items() if len(values) == 2}
        best = max(late for late, _ in means.values())
        chosen[method] = max((pair for pair in means if means[pair][0] >= best - TIE), key=lambda pair: means[pair][1])
    return chosen


@pytest.mark.parametrize("name", ["ca_fed/fig1", "ca_fed/fig2", "ca_fed/fig3"])
def test_each_method_has_the_rates_that_its_rule_takes_from_the_search(name, found):
    compared = 0
    for place in places(Experiment.read(name)):
        settings = place.settings
        if settings["task"] == "leaf_synthetic":
            assert rates(settings) == found[kind(settings)], place.labels
            compared += 1
    assert compared >= 100
