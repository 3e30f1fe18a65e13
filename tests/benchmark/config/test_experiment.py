"""Experiments: from the file to the points of the grid, and how the command line changes them."""

from dataclasses import replace
from itertools import product

import numpy as np
import pytest
import yaml

from rollcall import SettingError
from rollcall.benchmark.config.axes import selected
from rollcall.benchmark.config.base import validated
from rollcall.benchmark.config.dotted import merged
from rollcall.benchmark.config.experiment import Experiment
from rollcall.benchmark.config.grid import grid_points, unique_runs

BASE = {
    "name": "e",
    "title": "E",
    "trial": {"task": {"name": "quadratic", "targets": [[0.0], [1.0]]}, "rounds": 3},
    "grid": {"seed": [0, 1], "algorithm": ["fedavg", {"name": "mifa", "wait_for_all": True}]},
}


def trials(experiment):
    return [point.trial for point in unique_runs(grid_points(experiment))]


def cells(experiment):
    return [(trial.seed, trial.algorithm.name) for trial in trials(experiment)]


def test_grid_points_are_the_product_of_the_grid_and_of_equal_trials_the_longest_is_run():
    panels = {"short": {"trial": {"local": {"lr": 0.1}}}, "long": {"trial": {"rounds": 5, "local": {"lr": 0.1}}}}
    overrides = [{"when": {"algorithm": "mifa", "panel": "long"}, "set": {"local.lr": 0.5}}]
    found = grid_points(Experiment.model_validate(BASE | {"panels": panels, "overrides": overrides}))
    assert [(*point.labels.values(), point.seed, point.rounds, point.spec["local"]["lr"]) for point in found] == [
        (panel, method, seed, rounds, 0.5 if (panel, method) == ("long", "mifa") else 0.1)
        for panel, rounds in (("short", 3), ("long", 5))
        for seed in (0, 1)
        for method in ("fedavg", "mifa")
    ]
    run = [point.trial for point in unique_runs(found)]
    assert [(trial.seed, trial.algorithm.name, trial.rounds, trial.local.lr) for trial in run] == [
        (0, "fedavg", 5, 0.1), (0, "mifa", 3, 0.1), (1, "fedavg", 5, 0.1), (1, "mifa", 3, 0.1), (0, "mifa", 5, 0.5), (1, "mifa", 5, 0.5),
    ]  # fmt: skip
    assert unique_runs(found)[1].trial.algorithm.options["wait_for_all"] is True


def test_an_override_of_a_whole_part_loses_no_axis():
    overrides = [{"when": {"algorithm": "mifa"}, "set": {"local": {"steps": 3, "lr": 0.05}}}]
    whole = Experiment.model_validate(BASE | {"overrides": overrides}).varied({"local.lr": [0.7, 0.9]})
    made = {(*point.labels.values(), *point.spec["local"].items()) for point in grid_points(whole)}
    assert made == {
        *(("", "fedavg", str(lr), ("lr", lr)) for lr in (0.7, 0.9)),
        *(("", "mifa", str(lr), ("steps", 3), ("lr", lr)) for lr in (0.7, 0.9)),
    }


def test_a_whole_part_that_is_varied_stays_as_it_is_given():
    overrides = [{"when": {"algorithm": "mifa"}, "set": {"local.lr": 0.5, "local.momentum": 0.9}}]
    given = {"lr": 0.01, "steps": 3}
    whole = Experiment.model_validate(BASE | {"overrides": overrides}).varied({"local": [given], "seed": [0]})
    assert [point.spec["local"] for point in grid_points(whole)] == [given, given | {"momentum": 0.9}]


def test_settings_can_be_varied_also_below_an_axis():
    experiment = Experiment.model_validate(BASE).varied({"seed": [7], "local.lr": [0.1, 0.2]})
    assert [(t.seed, t.algorithm.name, t.local.lr) for t in trials(experiment)] == [
        (7, method, lr) for method in ("fedavg", "mifa") for lr in (0.1, 0.2)
    ]
    below = Experiment.model_validate(BASE).only({"algorithm": ["mifa"]}).varied({"algorithm.memory": ["updates"]})
    assert [t.algorithm.options for t in trials(below)] == [{"wait_for_all": True, "memory": "updates"}] * 2

    panel = {"grid": {"T": {"few": {"rounds": 4, "local.lr": 0.3}, "many": {"rounds": 9, "local.lr": 0.1}}}}
    varied = Experiment.model_validate(BASE | {"panels": {"one": panel}}).varied({"seed": [7], "rounds": [2]})
    assert [(t.rounds, t.local.lr) for t in trials(varied)] == [(2, 0.3), (2, 0.1)] * 2  # of two methods


@pytest.mark.parametrize("axes", [["algorithm.wait_for_all", "algorithm"], ["algorithm", "algorithm.wait_for_all"]])
def test_the_options_of_a_part_are_set_after_the_part_in_any_order_of_the_axes(axes):
    values = {"algorithm": [{"name": "mifa", "memory": "updates"}], "algorithm.wait_for_all": [True, False]}
    found = trials(Experiment.model_validate(BASE | {"grid": {axis: values[axis] for axis in axes}}))
    assert [t.algorithm.options for t in found] == [
        {"memory": "updates", "wait_for_all": wait} for wait in (True, False)
    ]


def test_a_method_of_the_same_name_takes_the_place_of_none():
    joined = Experiment.model_validate(BASE).joined("algorithm", [{"name": "mifa", "memory": "updates"}])
    assert list(joined.axes["algorithm"]) == ["fedavg", "mifa", "mifa#2"]
    assert list(joined.joined("algorithm", ["fedavg"]).axes["algorithm"]) == [
        "fedavg",
        "mifa",
        "mifa#2",
    ]  # there already
    memories = [t.algorithm.options.get("memory") for t in trials(joined.only({"seed": [0]}))]
    assert memories == [None, "gradients", "updates"]


def test_an_axis_is_joined_where_it_stands():
    joined = Experiment.model_validate(BASE).joined("algorithm", ["fedpbc"]).only({"seed": [0]})
    assert [(t.algorithm.name, t.algorithm.options.get("wait_for_all")) for t in trials(joined)] == [
        ("fedavg", None),
        ("mifa", True),  # with its options
        ("fedpbc", None),
    ]
    panels = {"a": {"grid": {"algorithm": ["fedavg"]}}, "b": {"trial": {"algorithm": "mifa"}}}
    below = Experiment.model_validate(BASE | {"grid": {}, "panels": panels}).joined("algorithm", ["fedpbc"])
    assert cells(below) == [(0, "fedavg"), (0, "fedpbc"), (0, "mifa")]
    alone = {**BASE["trial"], "algorithm": "fedau"}
    nowhere = Experiment.model_validate(BASE | {"trial": alone, "grid": {}}).joined("algorithm", ["fedpbc"])
    assert cells(nowhere) == [(0, "fedau"), (0, "fedpbc")]


def override(**when):
    return {"overrides": [{"when": {}, "set": {"rounds": 2}}, {"when": when, "set": {"rounds": 3}}]}


@pytest.mark.parametrize(
    ("change", "complaint"),
    [
        ({"report": {"columns": ["algorthm"]}}, "report.columns: 'algorthm' is not allowed; must be one of panel, algorithm, local.lr"),
        ({"report": {"x": "foo"}}, "report.x: 'foo' is not allowed; must be one of round, gradients, floats, seconds, panel, algorithm, local.lr"),
        ({"variants": {"v": {"about": "more", "grid": {"local.steps": [1]}}}}, "variants.v.grid: 'local.steps' is not allowed; must be one of seed, algorithm, local.lr"),
        (override(algorithm="fedav"), "overrides.1.when.algorithm: 'fedav' is not allowed; must be one of fedavg, mifa"),
        (override(algo="fedavg"), "overrides.1.when: 'algo' is not allowed; must be one of panel, algorithm, local.lr"),
        (override(panel="a") | {"panels": {"": {}}}, "overrides.1.when: 'panel' is not allowed; must be one of algorithm"),
        (override(algorithm=[]), "overrides.1.when: is met by no point of the grid"),
        (override(panel="a", **{"local.lr": "0.1"}), "overrides.1.when: is met by no point of the grid"),
        ({"grid": {"seed": []}}, "grid.seed: [] is not allowed; must have 1 or more values"),
        ({"grid": {"local.lr": {1: 0.01, "1": 0.5}}}, "grid.local.lr: {1: 0.01, '1': 0.5} is not allowed; must have labels that differ as text, unlike the two '1'"),
        ({"grid": {"panel": {"a": {"rounds": 2}}}}, "grid: 'panel' is not allowed; must be another name, as panels have this one"),
    ],
)  # fmt: skip
def test_an_axis_or_a_label_that_no_grid_has_is_refused(change, complaint):
    content = BASE | {"panels": {"a": {}, "b": {"grid": {"local.lr": [0.1, 0.2]}}}} | change
    with pytest.raises(SettingError) as caught:
        validated(Experiment, content)
    assert str(caught.value).partition(". Did you mean ")[0] == complaint


def test_an_override_of_a_label_that_a_variant_adds_is_met_there():
    variant = {"about": "more", "grid": {"algorithm": {"fedau": "fedau"}}}
    made = validated(Experiment, BASE | {"variants": {"v": variant}} | override(algorithm="fedau"))
    assert [point.rounds for point in grid_points(made.as_("v")) if point.labels["algorithm"] == "fedau"] == [3, 3]


def test_two_axes_cannot_set_the_same_setting():
    axes = {"set": {"a": {"algorithm": "fedau"}, "b": {"local.lr": 0.1}}}
    with pytest.raises(SettingError, match=r"^grid\.set: is not allowed beside algorithm; both set algorithm$"):
        grid_points(validated(Experiment, BASE | {"grid": BASE["grid"] | axes}))


def test_only_a_panel_that_an_experiment_without_panels_lacks():
    with pytest.raises(SettingError, match=r"^only: 'panel' is not allowed; must be an axis of the grid: seed, algor"):
        validated(Experiment, BASE).only({"panel": ["a"]})


@pytest.mark.parametrize("seed", ["one", -1, 0.5, float("nan"), True, None])
def test_a_seed_is_refused_before_a_trial_is_read(seed):
    (first, *_) = grid_points(
        validated(Experiment, BASE | {"grid": {"algorithm": ["fedavg"]}}).varied({"seed": [seed]})
    )
    with pytest.raises(SettingError, match=f"^seed: {seed!r} is not allowed; must be a whole number from 0"):
        first.seed  # noqa: B018
    assert replace(first, spec={"seed": np.int64(3)}).seed == replace(first, spec={"seed": 3.0}).seed == 3


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("tite: T", "tite: is not a setting; allowed: name, title, .*. Did you mean title?"),
        ("title: [", "is not YAML"),
        ("- 1", "holds no settings"),
        ("title: Half", "trial: is missing"),
        ("base: 3", "base: 3 is not allowed; must be another experiment's name or file"),
    ],
)
def test_readable_errors(text, complaint, tmp_path):
    (tmp_path / "mine.yaml").write_text(text)
    with pytest.raises(SettingError, match=rf"mine.yaml: {complaint}"):
        Experiment.read(str(tmp_path / "mine.yaml"))


def test_an_experiment_made_of_anothers_trials(tmp_path):
    base = {key: value for key, value in BASE.items() if key != "name"}
    (tmp_path / "base.yaml").write_text(yaml.safe_dump(base))
    other = {"title": "O", "base": str(tmp_path / "base.yaml"), "subset": {"algorithm": "mifa"}}
    (tmp_path / "base.yaml").write_text(yaml.safe_dump({"base": str(tmp_path / "other.yaml")}))
    (tmp_path / "other.yaml").write_text(yaml.safe_dump(other))
    with pytest.raises(
        SettingError, match=r"^other.yaml: base.yaml: base: .*other.yaml' is not allowed; must be another "
    ):
        Experiment.read(str(tmp_path / "other.yaml"))
    (tmp_path / "base.yaml").write_text(yaml.safe_dump(base))
    (tmp_path / "other.yaml").write_text(yaml.safe_dump(other))
    found = Experiment.read(str(tmp_path / "other.yaml"))
    assert cells(found) == [(0, "mifa"), (1, "mifa")]
    assert (found.title, found.home) == ("O", "base")
    one_seed = {"title": "O", "base": str(tmp_path / "base.yaml"), "grid": {"seed": [5]}}  # the other axis stays
    (tmp_path / "other.yaml").write_text(yaml.safe_dump(one_seed))
    assert cells(Experiment.read(str(tmp_path / "other.yaml"))) == [(5, "fedavg"), (5, "mifa")]
    third = {"title": "T", "base": str(tmp_path / "other.yaml"), "grid": {"algorithm": ["fedavg", "mifa"]}}
    (tmp_path / "third.yaml").write_text(yaml.safe_dump(third))
    (tmp_path / "other.yaml").write_text(yaml.safe_dump(other))
    assert {*cells(Experiment.read(str(tmp_path / "third.yaml")))} == {*product((0, 1), ("fedavg", "mifa"))}
    varied = other | {"variants": {"raw": {}}}  # `raw` as the base has it; `long` is left out
    algorithms = {"fedavg": "fedprox", "mifa": {"name": "mifa", "memory": "updates"}}
    raw = {"about": "raw updates", "grid": {"algorithm": algorithms}}
    variants = {"raw": raw, "long": {"about": "long", "trial": {"rounds": 9}}}
    (tmp_path / "base.yaml").write_text(yaml.safe_dump(base | {"variants": variants}))
    (tmp_path / "other.yaml").write_text(yaml.safe_dump(varied))
    found = Experiment.read(str(tmp_path / "other.yaml"))
    assert [*found.variants] == ["raw"]
    assert cells(found.as_("raw")) == [(0, "mifa"), (1, "mifa")]  # its fedavg is outside the subset
    assert {trial.algorithm.options["memory"] for trial in trials(found.as_("raw"))} == {"updates"}
    (tmp_path / "other.yaml").write_text(yaml.safe_dump(other | {"subset": {"algorithm": "scaffold"}}))
    message = "other.yaml: only algorithm: 'scaffold' is not allowed; must be one of fedavg, mifa"
    with pytest.raises(SettingError, match=message):
        Experiment.read(str(tmp_path / "other.yaml"))


@pytest.mark.parametrize("name", ["../../../x", "/x", "a/../b", "a\\b", "."])
def test_a_name_that_leads_out_of_the_store_is_refused(name):
    with pytest.raises(SettingError, match=r"^name: .* is not allowed; must be a relative path without"):
        validated(Experiment, BASE | {"name": name})
    assert validated(Experiment, BASE | {"name": "a/b c.2"}).home == "a/b c.2"
    with pytest.raises(SettingError, match=r"^variants\.a/b: 'a/b' is not allowed; must be a name without /"):
        validated(Experiment, BASE | {"variants": {"a/b": {"about": "x"}}})


def test_a_name_selects_all_values_with_this_name_in_the_order_of_the_axis():
    axis = {"full": 1, "bernoulli": 2, "markov": 3, "bernoulli#2": 4}
    assert selected("participation", axis, ["bernoulli", "full"]) == {"full": 1, "bernoulli": 2, "bernoulli#2": 4}
    assert selected("participation", axis, ["bernoulli#2"]) == {"bernoulli#2": 4}
    assert selected("panel", {"": 1, "a": 2, "a#2": 3}, [""]) == {"": 1}
    message = "only participation: 'bern' is not allowed; must be one of full, bernoulli,"
    with pytest.raises(SettingError, match=message):
        selected("only participation", axis, ["bern"])


def test_merged_keeps_what_is_not_named_and_replaces_another_choice_whole():
    base = {"local": {"steps": 2, "lr": 0.1}, "task": {"name": "digits", "clients": 3}, "algorithm": "mifa"}
    assert merged(base, {"local": {"lr": 0.5}}) == base | {"local": {"steps": 2, "lr": 0.5}}
    assert merged(base, {"task": {"clients": 5}})["task"] == {"name": "digits", "clients": 5}
    assert merged(base, {"task": {"name": "mnist", "labels": [1]}})["task"] == {"name": "mnist", "labels": [1]}
    assert merged(base, {"algorithm": {"memory": "updates"}})["algorithm"] == {"name": "mifa", "memory": "updates"}
    assert merged(base, {"algorithm": {"name": "fedavg"}})["algorithm"] == {"name": "fedavg"}
    assert base["local"] == {"steps": 2, "lr": 0.1}
