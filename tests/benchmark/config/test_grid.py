"""From an experiment to its places: labels, nested settings, the grid."""

import subprocess
import sys

import pytest

from rollcall import SettingError
from rollcall.benchmark.config.experiment import (
    Experiment,
    distinct,
    label_of,
    labelled,
    merged,
    places,
    put,
    selected,
    trials,
)

EXPERIMENT = {
    "name": "e",
    "title": "E",
    "trial": {"task": {"name": "quadratic", "targets": [[0.0], [1.0]]}, "rounds": 3, "local": {"lr": 0.1}},
    "grid": {"seed": [0, 1], "algorithm": ["fedavg", "mifa"]},
    "panels": {"short": {}, "long": {"trial": {"rounds": 5}}},
    "overrides": [{"when": {"algorithm": "mifa", "panel": "long"}, "set": {"local.lr": 0.5}}],
}


def test_places_have_the_plain_settings():
    experiment = Experiment.model_validate(EXPERIMENT)
    settings = [
        (draft.labels["panel"], draft.spec["seed"], draft.spec["algorithm"], draft.spec["rounds"], draft.spec["local"]["lr"])
        for draft in places(experiment)
    ]  # fmt: skip
    assert settings == [
        ("short", 0, "fedavg", 3, 0.1),
        ("short", 0, "mifa", 3, 0.1),
        ("short", 1, "fedavg", 3, 0.1),
        ("short", 1, "mifa", 3, 0.1),
        ("long", 0, "fedavg", 5, 0.1),
        ("long", 0, "mifa", 5, 0.5),
        ("long", 1, "fedavg", 5, 0.1),
        ("long", 1, "mifa", 5, 0.5),
    ]
    assert "seed" not in places(experiment)[0].labels


def test_of_equal_trials_the_longest_is_run():
    trials = distinct(places(Experiment.model_validate(EXPERIMENT)))
    assert [(trial.seed, trial.algorithm.name, trial.rounds, trial.local.lr) for trial in trials] == [
        (0, "fedavg", 5, 0.1),
        (0, "mifa", 3, 0.1),
        (1, "fedavg", 5, 0.1),
        (1, "mifa", 3, 0.1),
        (0, "mifa", 5, 0.5),
        (1, "mifa", 5, 0.5),
    ]


def test_an_error_names_the_panel():
    wrong = EXPERIMENT | {"panels": {"short": {}, "long": {"trial": {"rounds": 0}}}}
    with pytest.raises(SettingError, match=r"^panel long: rounds: 0 is not allowed; must be greater than 0"):
        trials(Experiment.model_validate(wrong))


def test_places_need_no_heavy_import():
    code = (
        "import sys\n"
        "from rollcall.benchmark.config.experiment import Experiment, places\n"
        "assert all(place.name for place in places(Experiment.read('fedpbc/table1')))\n"
        "print([name for name in ('torch', 'lightning', 'pandas', 'scipy') if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_values_of_a_list_are_labelled_in_order():
    values = [{"name": "bernoulli", "probability": 0.5}, "full", {"name": "bernoulli"}, 0.1, "my/file.py:Mine"]
    axis = labelled(values)
    assert list(axis) == ["bernoulli", "full", "bernoulli#2", "0.1", "Mine"]
    assert list(axis.values()) == values
    assert labelled({1: "a", "b": 2}) == {"1": "a", "b": 2}
    assert [label_of(value) for value in (None, True, 3)] == ["None", "True", "3"]


def test_a_name_selects_all_values_with_this_name_in_the_order_of_the_axis():
    axis = {"full": 1, "bernoulli": 2, "markov": 3, "bernoulli#2": 4}
    assert selected("participation", axis, ["bernoulli", "full"]) == {"full": 1, "bernoulli": 2, "bernoulli#2": 4}
    assert selected("participation", axis, ["bernoulli#2"]) == {"bernoulli#2": 4}
    with pytest.raises(
        SettingError, match="only participation: 'bern' is not allowed; must be one of full, bernoulli,"
    ):
        selected("participation", axis, ["bern"])


def test_merged_keeps_what_is_not_named_and_replaces_another_choice_whole():
    base = {"local": {"steps": 2, "lr": 0.1}, "task": {"name": "digits", "clients": 3}, "algorithm": "mifa"}
    assert merged(base, {"local": {"lr": 0.5}}) == base | {"local": {"steps": 2, "lr": 0.5}}
    assert merged(base, {"task": {"clients": 5}})["task"] == {"name": "digits", "clients": 5}
    assert merged(base, {"task": {"name": "mnist", "labels": [1]}})["task"] == {"name": "mnist", "labels": [1]}
    assert merged(base, {"algorithm": {"memory": "updates"}})["algorithm"] == {"name": "mifa", "memory": "updates"}
    assert merged(base, {"algorithm": {"name": "fedavg"}})["algorithm"] == {"name": "fedavg"}
    assert base["local"] == {"steps": 2, "lr": 0.1}


def test_put():
    spec = {"a": "name", "b": {"c": 1}}
    assert put(spec, "a.x", 2) == {"a": {"name": "name", "x": 2}, "b": {"c": 1}}
    assert put(spec, "b.d.e", 2) == {"a": "name", "b": {"c": 1, "d": {"e": 2}}}
    assert spec == {"a": "name", "b": {"c": 1}}
    with pytest.raises(SettingError, match=r"c\.d: cannot be set; c is 1"):
        put(spec, "b.c.d", 2)
