"""The learning rates of CA-Fed's figures are those that their rule takes from the kept search."""

import numpy as np
import pytest

from rollcall.benchmark.config.experiment import Experiment, places
from rollcall.leaderboard.runs import unarchive

ACCURACY = {"leaf_synthetic": "validation/accuracy/per_client", "mnist": "validation/accuracy"}
TIE = 0.005


def kind(settings):
    """Whose rates: the task and its labelling, the method, and kappa2 where it was searched."""
    searched = ["algorithm.kappa2"] if settings["task"] == "leaf_synthetic" else []
    return tuple(settings.get(key, "") for key in ("task", "task.labelling", "algorithm", *searched))


def rates(settings):
    return float(settings["local.lr"]), float(settings["server.lr"])


@pytest.fixture(scope="module")
def found():
    """For each method its rates by the rule: of the pairs within half a point, the one that is ahead at round 40."""
    searched = {}
    for run in unarchive("ca_fed/rates"):
        if run.settings.get("local.steps"):  # not as released
            accuracy = run.history[ACCURACY[run.settings["task"]]]
            values = (accuracy[accuracy.index > 160].mean(), accuracy[40])
            searched.setdefault(kind(run.settings), {}).setdefault(rates(run.settings), []).append(values)
    chosen = {}
    for method, pairs in searched.items():
        means = {pair: np.mean(values, axis=0) for pair, values in pairs.items() if len(values) == 2}
        best = max(late for late, _ in means.values())
        chosen[method] = max((pair for pair in means if means[pair][0] >= best - TIE), key=lambda pair: means[pair][1])
    return chosen


FIGURES = [f"ca_fed/fig{number}" for number in (1, 2, 3, 4, 5)]


@pytest.mark.parametrize(
    "experiment",
    [Experiment.read(name) for name in FIGURES] + [Experiment.read(name).as_("shared") for name in FIGURES[:2]],
    ids=lambda experiment: f"{experiment.name} {experiment.variant}",
)
def test_each_method_has_the_rates_that_its_rule_takes_from_the_search(experiment, found):
    compared = [place for place in places(experiment) if place.settings["task"] in ACCURACY]
    assert len(compared) >= 100
    for place in compared:
        assert rates(place.settings) == found[kind(place.settings)], place.labels
