"""A run has the label of the trial that its settings are those of."""

import pytest

from rollcall.benchmark.config.digest import flatten, plain
from rollcall.benchmark.config.experiment import places
from rollcall.leaderboard.ranking.axes import axes
from tests.support.results import experiment

GRID = {
    "seed": [0, 1],
    "participation": {
        "often": {"name": "bernoulli", "probability": [0.9, 0.8]},
        "rarely": {"name": "bernoulli", "probability": [0.1, 0.2]},
        "night": {"name": "cyclic", "probability": [0.1, 0.2]},
    },
    "pace": {"slow": {"local.lr": 0.1, "local.steps": 1}, "fast": {"local.lr": 0.5, "local.steps": 4}},
    "algorithm": ["fedavg", "mifa"],
}


@pytest.fixture(scope="module")
def mine():
    return experiment(grid=GRID)


def settings_of(mine):
    """The settings of each place, as a run folder has them, with the labels of the place."""
    return [(flatten(plain(place.spec)), place.labels) for place in places(mine)]


def test_every_trial_has_its_labels(mine):
    made = {axis.name: axis for axis in axes(mine)}
    assert list(made) == ["panel", "participation", "pace", "algorithm"]  # seeds are averaged over
    every = settings_of(mine)
    assert len(every) == 24
    for settings, labels in every:
        assert {name: axis.label(settings) for name, axis in made.items()} == labels


def test_a_run_with_other_settings_has_no_label_on_the_axis_that_sets_them(mine):
    settings, labels = settings_of(mine)[0]
    off = {axis.name: axis.label(settings | {"local.lr": "0.3"}) for axis in axes(mine)}
    assert off == labels | {"pace": None, "panel": None}
    assert {axis.name: axis.label(settings | {"rounds": "7", "seed": "9"}) for axis in axes(mine)} == labels


def test_an_axis_that_names_its_values_is_told_from_a_list(mine):
    assert [axis.name for axis in axes(mine) if axis.named] == ["participation", "pace"]


def test_panels_are_told_apart_by_their_settings():
    panels = {"one": {"trial": {"local": {"lr": 0.1}}}, "two": {"trial": {"local": {"lr": 0.2}}}}
    mine = experiment(grid={"seed": [0], "algorithm": ["fedavg"]}, panels=panels)
    panel = axes(mine)[0]
    assert [panel.label(settings) for settings, _ in settings_of(mine)] == ["one", "two"]


def test_an_axis_covers_a_setting_and_what_is_below_it():
    axis = axes(experiment(grid={"seed": [0], "local.lr": [0.1, 0.2], "algorithm": ["fedavg"]}))[1]
    covered = [name for name in ("local.lr", "local.lr.decay", "local.lr_decay", "local", "lr") if axis.covers(name)]
    assert (axis.name, covered) == ("local.lr", ["local.lr", "local.lr.decay"])
