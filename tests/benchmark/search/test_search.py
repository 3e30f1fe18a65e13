"""`tune`: cells, fairness, which data are read, stopping early, resuming, and the answer."""

import itertools
import math

import pandas as pd
import pytest
import yaml
from command import TINY, write

import rollcall
from rollcall.benchmark.config.errors import SettingError
from rollcall.benchmark.config.experiment import Experiment
from rollcall.benchmark.federation.run_folder import RunFolder
from rollcall.benchmark.process import Interrupted
from rollcall.benchmark.search.answer import Tuned
from rollcall.benchmark.sweep import jobs
from rollcall.benchmark.sweep.jobs import run_job
from rollcall.tasks.base import Batches

QUIET = {"executor": "inline", "mlflow": False}
DISTANCE = QUIET | {"metric": "train/distance"}
RATES = {"local.lr": [0.001, 0.01, 0.1, 100.0]}


def tiny(**changes) -> Experiment:
    return Experiment.model_validate({"name": "tiny"} | TINY | changes)


def tune(store, experiment=None, space=None, **options):
    return rollcall.tune(experiment or tiny(), space or RATES, store=store, **DISTANCE | options)


def table(tuning) -> dict:
    return {(row["cell"], row["local.lr"]): row for row in tuning.samples.to_dict("records")}


def test_every_method_has_a_search_of_its_own_and_the_best_sample_wins(store):
    tuning = tune(store, samples="grid")
    rows = table(tuning)
    assert sorted(rows) == [(name, rate) for name in ("fedavg", "fedpbc") for rate in (0.001, 0.01, 0.1, 100.0)]
    for (name, rate), row in rows.items():
        # The oracle: the trial by itself. The score is the mean over the last half of the rounds, as in the table.
        spec = TINY["trial"] | {"seed": 1000, "algorithm": name, "local": {"steps": 2, "lr": rate}}
        alone = rollcall.simulate(spec | {"evaluation": {"every": 10}}).history
        expected = alone[alone["round"] > 10]["train/distance"].mean()
        if math.isfinite(expected):
            assert row["score"] == expected
        else:
            assert row["state"] == "failed"
    for name, best in tuning.best.items():
        scores = {
            rate: rows[name, rate]["score"] for rate in RATES["local.lr"] if rows[name, rate]["state"] != "failed"
        }
        assert best["settings"] == {"local.lr": min(scores, key=scores.get)}
        assert (best["samples"], best["score"]) == (4, min(scores.values()))
    assert (tuning.file, tuning.file.parent.name) == (store / "tiny" / "tuned.yaml", "tiny")
    assert yaml.safe_load(tuning.file.read_text())["best"] == tuning.best
    assert {path.parts[-4:-2] for path in store.rglob("trial.yaml")} == {("tiny", "search")}  # not in the table


def test_a_sample_is_judged_by_the_mean_over_seeds_with_their_spread(store):
    tuning = tune(store, tiny(grid={"seed": [0], "algorithm": ["fedavg"]}), {"local.lr": [0.1]}, seeds=(5, 6, 7))
    finals = [RunFolder(path.parent).history()["train/distance"].iloc[-1] for path in store.rglob("status.json")]
    mean, sd = pd.Series(finals).mean(), pd.Series(finals).std()
    best = tuning.best["fedavg"]
    assert best["score"] == pytest.approx(mean)
    assert best["spread"] == pytest.approx(sd)
    assert tune(store, tiny(grid={"algorithm": ["fedavg"]}), {"local.lr": [0.1]}).best["fedavg"]["spread"] is None


@pytest.mark.fault
@pytest.mark.full
@pytest.mark.parametrize("options", [{"samples": 4}, {"samples": "grid"}])
def test_a_killed_search_ends_with_the_same_samples_and_answer(options, tmp_path, monkeypatch):
    space = RATES if options["samples"] == "grid" else {"local.lr": "loguniform(1e-3,0.3)"}
    experiment = tiny(grid={"algorithm": ["fedavg"]})
    whole = tune(tmp_path / "whole", experiment, space, **options)
    calls, ran = itertools.count(1), []

    def dying(trial, *more):
        if next(calls) == 3:
            raise KeyboardInterrupt
        ran.append(trial)
        return run_job(trial, *more)

    monkeypatch.setattr(jobs, "run_job", dying)
    with pytest.raises(Interrupted):
        tune(tmp_path / "killed", experiment, space, **options)
    again = tune(tmp_path / "killed", experiment, space, **options)
    kept = ["cell", "index", "local.lr", "score", "rounds", "state", "gradients"]
    pd.testing.assert_frame_equal(again.samples[kept], whole.samples[kept])
    assert again.best == whole.best
    ran.clear()
    tune(tmp_path / "killed", experiment, space, **options)
    assert not ran


class Touched(Exception):
    pass


def poison(monkeypatch):
    """Reading a sample of the test split of digits raises."""
    whole = Batches.__iter__

    def iterated(self):
        if len(self.samples[0]) == TEST:
            raise Touched
        return whole(self)

    monkeypatch.setattr(Batches, "__iter__", iterated)


TEST = 360
"""Test samples of digits; no other split has so many."""


def digits(**settings) -> Experiment:
    task = {"name": "digits", "clients": 4, "model": "linear"}
    trial = {"task": task, "local": {"steps": 1, "lr": 0.1, "batch_size": 4}, "rounds": 2, "algorithm": "fedavg"}
    trial |= settings
    return Experiment.model_validate({"name": "small", "title": "Small", "trial": trial})


def test_no_test_sample_is_read_unless_the_metric_is_of_the_test_split(store, monkeypatch):
    _, data = rollcall.Trial.read(digits().trial).task.build(0)
    assert {split: len(columns[0]) for split, columns in data.splits.items()}["test"] == TEST
    poison(monkeypatch)
    options = QUIET | {"store": store, "samples": 1}
    tuning = rollcall.tune(digits(), RATES, **options)
    assert 0 <= tuning.best["all"]["score"] <= 1
    spec = yaml.safe_load(next(store.rglob("trial.yaml")).read_text())
    assert (spec["task"]["validation"], spec["evaluation"]["splits"]) == (0.2, ["validation"])
    held_out = "The search held out 20% of the training samples (task.validation: 0.2)."
    assert held_out in tuning.notes
    assert held_out not in rollcall.tune(digits().varied({"task.validation": [0.3]}), RATES, **options).notes
    with pytest.raises(SettingError, match=r"^metric: 'test/accuracy' is not allowed; .* make test results too good"):
        rollcall.tune(digits(), RATES, metric="test/accuracy", **options)


def test_settings_that_a_method_lacks_are_left_out_of_its_space(store):
    space = {"local.lr": [0.1], "server.lr": [0.5, 1.0], "fedavg": {"server.momentum": [0.3]}}
    tuning = tune(store, space=space, samples="grid", rounds=2)
    assert set(tuning.best["fedavg"]["settings"]) == {"local.lr", "server.lr", "server.momentum"}
    assert set(tuning.best["fedpbc"]["settings"]) == {"local.lr"}
    assert "fedpbc: has no server.lr; left out of its space." in tuning.notes


@pytest.mark.parametrize(
    ("space", "message"),
    [
        ({"local.lrr": [1]}, r"space: local\.lrr: no method has this setting \(local\.lrr: is not a setting"),
        ({"algorithm.cutoff": [1]}, r"space: algorithm\.cutoff: no method .*cutoff: is not an option of fedavg"),
        ({"fedavg": {"algorithm.cutoff": [1]}}, r"space: fedavg: algorithm\.cutoff: is not an option of fedavg"),
        ({"fedau": {"local.lr": [1]}}, r"space: 'fedau' is not allowed; must be a method .*: fedavg, fedpbc"),
        ({"local.lr": [0.2, -1]}, r"space: fedavg: local\.lr: -1 is not allowed"),
    ],
)
def test_errors_name_the_setting(space, message, store):
    with pytest.raises(SettingError, match=f"^{message}"):
        tune(store, space=space)
    assert not store.exists()


def test_an_edge_is_a_warning(store):
    tuning = tune(store, tiny(grid={"algorithm": ["fedavg"]}), {"local.lr": [0.001, 0.002]}, samples="grid")
    assert tuning.best["fedavg"]["at_edge"] == ["local.lr"]
    assert "Warning: fedavg: the best local.lr, 0.002, is at the edge of its space. Widen the space." in tuning.notes


def test_a_search_keeps_the_answers_of_earlier_ones(store):
    other = {"metric": "train/loss", "seeds": [2000]}
    first = tune(store, samples="grid")
    second = tune(store, tiny(grid={"algorithm": ["fedavg"]}), {"local.lr": [0.05]}, **other)
    assert list(second.best) == ["fedavg"]
    kept = Tuned.read(second.file)
    assert list(kept.best) == ["fedpbc", "fedavg"]  # the last search at the end: its overrides have the last word
    assert kept.best["fedpbc"] == first.tuned.best["fedpbc"]
    assert kept.best["fedavg"].settings == {"local.lr": 0.05}
    lines = [one.found for one in kept.overrides(tiny())]
    assert ["4 samples by train/distance" in line for line in lines] == [True, False]
    assert ["1 samples by train/loss" in line for line in lines] == [False, True]
    for seed in (1000, 2000):
        with pytest.raises(SettingError, match=rf"^seeds: {seed} is not allowed with --tuned"):
            kept.check_seeds(tiny().varied({"seed": [0, seed]}))
    steps = tiny(grid={"algorithm": ["fedavg"], "local.steps": [1, 2]})
    tune(store, steps, {"local.lr": [0.05]})
    tune(store, steps, {"local.lr": [0.05]}, per=["algorithm"])  # covers the cells of each number of steps
    assert list(Tuned.read(second.file).best) == ["fedpbc", "fedavg"]


def test_experiments_that_share_runs_have_their_own_answers(store, tmp_path):
    file = write(tmp_path, name="more", base=write(tmp_path), grid={"algorithm": ["fedavg"]})
    first, second = tune(store, Experiment.read(str(tmp_path / "tiny.yaml"))), tune(store, Experiment.read(file))
    assert (first.file, second.file) == (store / "tiny" / "tuned.yaml", store / "more" / "tuned.yaml")
    first.tuned.applied(Experiment.read(file))  # the answers of the base are allowed for the other
    assert {path.parts[-4] for path in store.rglob("status.json")} == {"tiny"}


def test_per_chooses_what_is_searched_together(store):
    grid = {"algorithm": ["fedavg"], "local.steps": [1, 2]}
    together = tune(store, tiny(grid=grid), {"local.lr": [0.1]}, per=["algorithm"])
    apart = tune(store, tiny(grid=grid), {"local.lr": [0.1]})
    assert list(apart.best) == ["fedavg/1", "fedavg/2"]
    mean = (apart.best["fedavg/1"]["score"] + apart.best["fedavg/2"]["score"]) / 2
    assert together.best["fedavg"]["score"] == pytest.approx(mean)
    with pytest.raises(
        SettingError, match=r"^per: 'task' is not allowed; must be one of panel, algorithm, local\.steps$"
    ):
        tune(store, tiny(grid=grid), {"local.lr": [0.1]}, per=["task"])


def test_seeds_of_the_table_are_refused(store):
    with pytest.raises(SettingError, match=r"^seeds: 1 is not allowed in a search"):
        tune(store, seeds=(1, 2))
    with pytest.raises(SettingError, match=r"^seeds: 1000 is not allowed in a search"):
        tune(store, tiny(panels={"a": {"trial": {"seed": 1000}}, "b": {}}, grid={"algorithm": ["fedavg"]}))
    validation = tiny(report={"metrics": {"validation/loss": "min"}})  # itself a search
    assert tune(store, validation, samples=1, rounds=1, seeds=(1, 2), mode="min").best["fedavg"]["how"]["seeds"] == [
        1,
        2,
    ]


OWN_TASK = """
from rollcall.tasks import TASKS
from rollcall.tasks.models import MODELS

def own(seed):
    task, data = TASKS["digits"](seed, clients=4, model=MODELS["linear"])
    data.splits["SPLIT"] = data.splits.pop("test")
    return task, data
"""


def test_a_task_of_ones_own_may_have_a_validation_split(store, tmp_path):
    (tmp_path / "own.py").write_text(OWN_TASK.replace("SPLIT", "validation"))
    experiment = digits(task=f"{tmp_path}/own.py:own")
    options = QUIET | {"store": store}
    tuning = rollcall.tune(experiment, {"local.lr": [0.1]}, **options)
    assert tuning.best["all"]["score"] > 0
    assert tuning.notes == ()
    (tmp_path / "own.py").write_text(OWN_TASK.replace("SPLIT", "other"))
    with pytest.raises(
        SettingError, match=r"evaluation\.splits: 'validation' is not allowed with .*; must be one of train, other"
    ):
        rollcall.tune(digits(task=f"{tmp_path}/own.py:own"), {"local.lr": [0.1]}, **options)


def test_unequal_costs_are_named(store):
    steps = tiny(grid={"algorithm": ["fedavg"], "local.steps": [1, 4]})
    tuning = tune(store, steps, samples=1, rounds=2)
    low, high = (tuning.best[f"fedavg/{steps}"]["gradients"] for steps in (1, 4))
    assert high == 4 * low
    assert [note for note in tuning.notes if note.startswith("The cells took")] == [
        f"The cells took unequal numbers of client gradients: fedavg/1 {low:.2g}, fedavg/4 {high:.2g}."
    ]


def test_cells_without_validation_data_of_their_own_are_refused(store):
    with pytest.raises(SettingError, match=r"^task: quadratic cannot hold out validation data"):
        tune(store, metric="validation/accuracy")
    reading = digits().varied({"algorithm": [{"name": "ca_fed", "losses": "test"}]})
    with pytest.raises(SettingError, match=r"^algorithm: ca_fed trains with the test split"):
        rollcall.tune(reading, RATES, store=store, **QUIET)


@pytest.mark.parametrize("metric", ["train/accuracy", "train/los"])
def test_a_metric_that_is_not_measured_is_refused_before_anything_runs(metric, store):
    with pytest.raises(SettingError, match=rf"^metric: '{metric}' is not allowed; .*: train/loss, train/distance"):
        tune(store, samples=1, metric=metric, mode="min", rounds=1)
    assert not list(store.rglob("status.json"))


def test_samples_without_the_metric_have_no_score(store):
    tuning = tune(store, tiny(grid={"algorithm": ["fedavg"]}), samples=1, metric="train/distance/client0", mode="min")
    assert tuning.samples["error"].tolist() == ["no trial records train/distance/client0"]
    assert tuning.best == {}


def test_a_metric_of_unknown_direction_needs_a_mode(store):
    experiment = digits(evaluation={"metrics": ["f1"]})
    options = QUIET | {"metric": "validation/f1", "store": store}
    with pytest.raises(
        SettingError, match=r"^mode: is missing; which end of validation/f1 is better\? Add --mode max or"
    ):
        rollcall.tune(experiment, RATES, **options)
    assert not store.exists()
    reported = Experiment.model_validate(experiment.model_dump() | {"report": {"metrics": {"test/f1": "max"}}})
    assert rollcall.tune(reported, {"local.lr": [0.1]}, **options).best["all"]["how"]["mode"] == "max"


@pytest.mark.parametrize(
    "metric", ["validation/f1", "validation/accuracy/class0", "train/worst_10_accuracy", "train/loss/per_client"]
)
def test_further_metrics_and_groups_of_the_experiment_can_be_searched(metric, store):
    experiment = digits(evaluation={"metrics": ["auroc", "f1", "worst_10_accuracy"], "by": ["class", "client"]})
    tuning = rollcall.tune(experiment, {"local.lr": [0.1]}, metric=metric, mode="max", store=store, **QUIET)
    history = RunFolder(next(store.rglob("status.json")).parent).history()
    assert tuning.best["all"]["score"] == history[metric].iloc[-1]
    assert "validation/auroc" not in history
