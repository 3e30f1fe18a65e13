"""The learning rates and the fitted labelling of CA-Fed's figures are those that their rules take from the kept search."""

import numpy as np
import pytest

from rollcall.benchmark.config.experiment import places
from rollcall.leaderboard.paper.experiment import PaperExperiment
from rollcall.leaderboard.runs import unarchive

ACCURACY = {"leaf_synthetic": "validation/accuracy/per_client", "mnist": "validation/accuracy"}
JUDGED = {"ca_fed/fig4": (40, 60), "ca_fed/fig5": (80, 100)}
"""Evaluations of the search nearest to those that a figure judges; by default the last 40 of 200 rounds."""


def kind(settings):
    """Whose rates: the task and its labelling, the method, and kappa2 where it was searched."""
    searched = ["algorithm.kappa2"] if settings["task"] == "leaf_synthetic" else []
    return tuple(settings.get(key, "") for key in ("task", "task.labelling", "algorithm", *searched))


def rates(settings):
    return float(settings["local.lr"]), float(settings["server.lr"])


@pytest.fixture(scope="module")
def searched():
    """For each method and pair the accuracies of the search by seed; a run that diverged has fewer rounds."""
    found = {}
    for run in unarchive("ca_fed/rates"):
        if run.settings.get("local.steps"):  # not as released
            accuracy = run.history[ACCURACY[run.settings["task"]]].dropna()
            seeds = found.setdefault(kind(run.settings), {}).setdefault(rates(run.settings), {})
            seeds[run.settings["seed"]] = accuracy
    return found


def means(pairs, evaluations):
    """The mean over these evaluations, by pair and seed; only of pairs that have all seeds and never diverged."""
    most = max(map(len, pairs.values()))
    return {
        pair: {seed: accuracy[list(evaluations)].mean() for seed, accuracy in seeds.items()}
        for pair, seeds in pairs.items()
        if len(seeds) == most >= 2 and all(accuracy.index.max() == 200 for accuracy in seeds.values())
    }


FIGURES = [PaperExperiment.read(f"ca_fed/fig{number}") for number in (1, 2, 3, 4, 5)]
READINGS = [one.as_(variant) for one in FIGURES[:2] for variant in ("shared", "fitted")]


@pytest.mark.parametrize("experiment", FIGURES + READINGS, ids=lambda one: f"{one.name} {one.variant}")
def test_each_method_has_the_rates_with_the_best_mean_of_the_measure_that_is_judged(experiment, searched):
    compared = 0
    for place in places(experiment):
        pairs = searched.get(kind(place.settings)) if place.settings["task"] in ACCURACY else None
        if pairs:
            by_pair = means(pairs, JUDGED.get(experiment.name, (180, 200)))
            best = max(by_pair, key=lambda pair: np.mean(list(by_pair[pair].values())))
            assert rates(place.settings) == best, place.labels
            compared += 1
    assert compared >= 80


@pytest.mark.parametrize("number", [1, 2, 3])
def test_the_faster_pairs_cannot_be_told_from_the_best(number, searched):
    """Their mean is within two standard errors of the best pair's, over the same seeds; after 40 rounds they are ahead."""
    faster, best = places(FIGURES[number - 1].as_("faster")), places(FIGURES[number - 1])
    changed = 0
    for place, other in zip(faster, best, strict=True):
        if place.settings["task"] in ACCURACY and rates(place.settings) != rates(other.settings):
            pairs = searched[kind(place.settings)]
            final, early = means(pairs, (180, 200)), means(pairs, (40,))
            mine, theirs = rates(place.settings), rates(other.settings)
            behind = np.array([final[theirs][seed] - final[mine][seed] for seed in final[mine]])
            assert behind.mean() <= 2 * behind.std(ddof=1) / np.sqrt(len(behind)), place.labels
            assert np.mean([early[mine][seed] - early[theirs][seed] for seed in early[mine]]) > 0
            changed += 1
    assert changed >= 60


def test_the_fitted_labelling_has_the_gap_nearest_to_the_printed_one():
    """After 500 rounds kappa2 = 100 is 3.8 points above More available, each at its best rates, on validation data."""
    found = {}
    for run in unarchive("ca_fed/labelling"):
        accuracy = run.history["validation/accuracy/per_client"]
        key = float(run.settings["task.labelling"]), run.settings["algorithm"]
        found.setdefault(key, {}).setdefault(rates(run.settings), []).append(accuracy[accuracy.index > 400].mean())
    best = {key: max(np.mean(seeds) for seeds in pairs.values()) for key, pairs in found.items()}
    gaps = {step: best[step, "ca_fed"] - best[step, "more_available"] for step, _ in best}
    assert len(gaps) == 4
    fitted = places(PaperExperiment.read("ca_fed/fig2").as_("fitted"))[0].settings["task.labelling"]
    assert min(gaps, key=lambda step: abs(gaps[step] - 0.038)) == float(fitted)
