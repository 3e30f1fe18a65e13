"""Experiments: grids and how the command line changes them."""

import pytest
import yaml
from pydantic import ValidationError

from rollcall import SettingError
from rollcall.benchmark.config.base import validated
from rollcall.benchmark.config.experiment import LIBRARY, Experiment, names, places, trials

BASE = {
    "name": "e",
    "title": "E",
    "trial": {"task": {"name": "quadratic", "targets": [[0.0], [1.0]]}, "rounds": 3},
    "grid": {"seed": [0, 1], "algorithm": ["fedavg", {"name": "mifa", "wait_for_all": True}]},
}


def cells(experiment):
    return [(trial.seed, trial.algorithm.name) for trial in trials(experiment)]


def test_trials_are_the_product_of_the_grid():
    experiment = Experiment.model_validate(BASE)
    assert cells(experiment) == [(0, "fedavg"), (0, "mifa"), (1, "fedavg"), (1, "mifa")]
    assert trials(experiment)[1].algorithm.options["wait_for_all"] is True


def test_settings_can_be_varied_also_below_an_axis():
    experiment = Experiment.model_validate(BASE).varied({"seed": [7], "local.lr": [0.1, 0.2]})
    assert [(t.seed, t.algorithm.name, t.local.lr) for t in trials(experiment)] == [
        (7, method, lr) for method in ("fedavg", "mifa") for lr in (0.1, 0.2)
    ]
    below = Experiment.model_validate(BASE).only({"algorithm": ["mifa"]}).varied({"algorithm.memory": ["updates"]})
    assert [t.algorithm.options for t in trials(below)] == [{"wait_for_all": True, "memory": "updates"}] * 2


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


def test_axes_can_be_cut_by_name():
    experiment = Experiment.model_validate(BASE).only({"algorithm": ["mifa"], "seed": [1]})
    assert cells(experiment) == [(1, "mifa")]
    with pytest.raises(SettingError, match="only seed: 5 is not allowed; must be one of 0, 1"):
        Experiment.model_validate(BASE).only({"seed": [5]})


def test_panels_share_an_axis_that_is_no_setting():
    panels = {
        "measured": {"grid": {"far": {"1": {"rounds": 5, "local.lr": 0.1}, "2": {"rounds": 6, "local.lr": 0.2}}}},
        "limit": {
            "analysis": {"name": "prop1_limit", "targets": [0, 1]},
            "grid": {"far": {"1": {"analysis.probability": [1, 0.5]}, "2": {"analysis.probability": [1, 0.25]}}},
        },
    }
    found = places(Experiment.model_validate(BASE | {"grid": {"algorithm": ["fedavg"]}, "panels": panels}))
    assert [place.labels for place in found] == [
        {"panel": "measured", "algorithm": "fedavg", "far": "1"},
        {"panel": "measured", "algorithm": "fedavg", "far": "2"},
        {"panel": "limit", "far": "1"},
        {"panel": "limit", "far": "2"},
    ]
    assert [(place.trial.rounds, place.trial.local.lr) for place in found[:2]] == [(5, 0.1), (6, 0.2)]
    assert [place.trial.analysis.options["probability"][1] for place in found[2:]] == [0.5, 0.25]


def test_a_mistyped_axis_is_named():
    with pytest.raises(SettingError, match="algoritm: is not a setting"):
        trials(Experiment.model_validate(BASE).varied({"algoritm": ["mifa"]}))


CLAIM = {"says": "so", "tag": "ours", "least": 0, "along": "algorthm"}


@pytest.mark.parametrize(
    ("change", "error"),
    [
        (
            {"report": {"columns": ["algorthm"]}},
            "report.columns: 'algorthm' .* must be one of panel, algorithm, local.lr",
        ),
        ({"report": {"pictures": ["seed"]}}, "report.pictures: 'seed' .* must be one of panel, algorithm, local.lr"),
        ({"report": {"x": "foo"}}, "report.x: 'foo' is not allowed; must be one of round, local.lr$"),
        ({"report": {"x": "algorithm"}}, "report.x: 'algorithm' is not allowed; must be one of round, local.lr$"),
        ({"claims": [CLAIM]}, "claims: along: 'algorthm' .* must be one of panel, algorithm, local.lr"),
        (
            {"variants": {"v": {"about": "", "claims": [CLAIM]}}},
            "claims: along: 'algorthm' .* must be one of panel, algorithm, local.lr",
        ),
        (
            {"variants": {"v": {"about": "", "grid": {"local.steps": [1]}}}},
            "variants.v.grid: 'local.steps' .* must be one of seed, algorithm, local.lr",
        ),
    ],
)
def test_an_axis_that_no_grid_has_is_refused(change, error):
    content = BASE | {"panels": {"a": {}, "b": {"grid": {"local.lr": [0.1, 0.2]}}}}
    with pytest.raises(SettingError, match=error):
        validated(Experiment, content | change)
    report = {"columns": ["panel"], "pictures": ["algorithm"], "x": "local.lr"}
    claims = [CLAIM | {"along": "local.lr"}]
    variants = {"v": {"about": "", "grid": {"local.lr": {"0.1": 0.3}}, "claims": claims}}
    allowed = validated(Experiment, content | {"report": report, "claims": claims, "variants": variants})
    assert [trial.local.lr for trial in trials(allowed.as_("v"))][4:] == [0.3, 0.2] * 4


@pytest.mark.parametrize("name", names())
def test_every_experiment_of_the_suite_is_valid(name):
    experiment = Experiment.read(name)
    assert len({trial.digest for trial in trials(experiment)}) == len(trials(experiment)) > 0
    assert (LIBRARY / f"{name}.yaml").exists()
    assert experiment.about


@pytest.mark.parametrize(
    ("when", "complaint"),
    [
        ({"algorithm": "fedav"}, "when.algorithm: 'fedav' is not allowed; must be one of fedavg, fedpbc"),
        ({"algo": "fedavg"}, "when: 'algo' is not allowed; must be one of algorithm, seed"),
        ({"panel": "a"}, "when: 'panel' is not allowed; must be one of algorithm, seed"),
        ({"seed": 2}, "when.seed: '2' is not allowed; must be one of 0, 1"),
    ],
)
def test_an_override_of_nothing_is_refused(when, complaint):
    """In the experiment and in its variants: it would never apply."""
    content = {
        "name": "e",
        "title": "E",
        "trial": {"rounds": 1},
        "grid": {"algorithm": ["fedavg", "fedpbc"], "seed": [0, 1]},
    }
    overrides = [{"when": {"seed": 0}, "set": {"rounds": 2}}, {"when": when, "set": {"rounds": 3}}]
    for place, changes in (
        ("overrides.1.", {"overrides": overrides}),
        ("variants.v.overrides.1.", {"variants": {"v": {"about": "more", "overrides": overrides}}}),
    ):
        with pytest.raises(SettingError) as caught:
            validated(Experiment, content | changes)
        assert str(caught.value) == place + complaint


def test_readable_errors(tmp_path):
    (tmp_path / "broken.yaml").write_text("title: [")
    with pytest.raises(SettingError, match=r"broken.yaml: is not YAML"):
        Experiment.read(str(tmp_path / "broken.yaml"))
    (tmp_path / "list.yaml").write_text("- 1")
    with pytest.raises(SettingError, match=r"list.yaml: holds no settings"):
        Experiment.read(str(tmp_path / "list.yaml"))
    (tmp_path / "half.yaml").write_text("title: Half")
    with pytest.raises(SettingError, match=r"half.yaml: trial: is missing"):
        Experiment.read(str(tmp_path / "half.yaml"))


def test_an_experiment_made_of_anothers_trials(tmp_path):
    base = {key: value for key, value in BASE.items() if key != "name"} | {
        "claims": [{"says": "so", "tag": "ours", "least": 0}]
    }
    (tmp_path / "base.yaml").write_text(yaml.safe_dump(base))
    other = {"title": "O", "base": str(tmp_path / "base.yaml"), "subset": {"algorithm": "mifa"}, "claims": []}
    (tmp_path / "other.yaml").write_text(yaml.safe_dump(other))
    found = Experiment.read(str(tmp_path / "other.yaml"))
    assert cells(found) == [(0, "mifa"), (1, "mifa")]
    assert (found.title, found.claims, found.home) == ("O", (), "base")
    (tmp_path / "other.yaml").write_text(yaml.safe_dump(other | {"subset": {"algorithm": "scaffold"}}))
    with pytest.raises(
        SettingError, match=r"other.yaml: only algorithm: 'scaffold' is not allowed; must be one of fedavg, mifa"
    ):
        Experiment.read(str(tmp_path / "other.yaml"))


@pytest.mark.parametrize("name", ["../../../x", "/x", "a/../b", "a\\b", "."])
def test_a_name_that_leads_out_of_the_store_is_refused(name):
    with pytest.raises(SettingError, match=r"^name: .* is not allowed; must be a relative path without"):
        validated(Experiment, BASE | {"name": name})
    assert validated(Experiment, BASE | {"name": "a/b c.2"}).home == "a/b c.2"


def test_the_name_of_a_variant_is_part_of_a_file_name():
    with pytest.raises(SettingError, match=r"^variants\.a/b: 'a/b' is not allowed; must be a name without /"):
        validated(Experiment, BASE | {"variants": {"a/b": {"about": "x"}}})


@pytest.mark.parametrize("empty", [[], {}])
def test_an_axis_without_values_is_refused(empty):
    with pytest.raises(SettingError, match=r"^grid.seed: .* is not allowed; must have at least one value"):
        validated(Experiment, BASE | {"grid": {"seed": empty}})


def test_numbers_of_a_trial_are_numbers():
    for local, field in (({"steps": True}, "steps: true"), ({"momentum": False}, "momentum: false")):
        with pytest.raises(SettingError, match=f"^local.{field} is not allowed; must be a number"):
            trials(Experiment.model_validate(BASE | {"trial": BASE["trial"] | {"local": local}}))


def test_an_analysis_may_be_a_bare_name():
    def analyses(analysis):
        panels = {"law": {"analysis": analysis, "grid": {"analysis.classes": [3, 4]}}}
        return trials(Experiment.model_validate({"name": "law", "title": "Law", "panels": panels}))

    bare = analyses("class_weights_sorted")
    assert [one.analysis.options["classes"] for one in bare] == [3, 4]
    assert [one.digest for one in bare] == [one.digest for one in analyses({"name": "class_weights_sorted"})]
    with pytest.raises(
        SettingError, match=r"^panel law: analysis.name: 'class_weigths' is not allowed; must be one of"
    ):
        analyses("class_weigths")
    with pytest.raises(ValidationError, match=r"panels\.law\.analysis"):
        analyses(3)


def test_the_columns_that_are_read_are_those_of_the_table_the_figure_and_all_claims():
    def claim(**metrics):
        return {"says": "So.", "tag": "ours", "least": 0} | metrics

    experiment = validated(
        Experiment,
        BASE
        | {
            "report": {"metrics": {"test/accuracy": "max"}, "drawn": ["test/loss"]},
            "claims": [claim(metric="round_of:train/loss>=2")],
            "variants": {"more": {"about": "More.", "claims": [claim(at=3, per="cost/floats_up")]}},
        },
    )
    columns = ["test/accuracy", "test/loss", "train/loss", "cost/floats_up"]
    assert experiment.metrics == experiment.as_("more").metrics == columns
