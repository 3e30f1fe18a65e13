"""`tune`: cells, fairness, which data are read, stopping early, resuming, and the answer."""

import itertools
import math
from types import SimpleNamespace

import pandas as pd
import pytest
import yaml
from command import TINY

import rollcall
from rollcall.benchmark.config.errors import SettingError
from rollcall.benchmark.config.experiment import Experiment
from rollcall.benchmark.config.metric import Metric
from rollcall.benchmark.federation.run_folder import RunFolder
from rollcall.benchmark.process import Interrupted
from rollcall.benchmark.search import tune as search
from rollcall.benchmark.search.answer import Best, Tuned
from rollcall.benchmark.sweep import jobs
from rollcall.benchmark.sweep.jobs import run_job
from rollcall.benchmark.sweep.run import Execution
from rollcall.leaderboard.figures import searched
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
        scores = {rate: row["score"] for (cell, rate), row in rows.items() if cell == name and row["state"] != "failed"}
        assert best["settings"] == {"local.lr": min(scores, key=scores.get)}
        assert (best["samples"], best["score"]) == (4, min(scores.values()))
    # The figure has the samples that did not fail, and the best one of each cell is large.
    drawn = [row for rows in searched(tuning).to_dict()["datasets"].values() for row in rows]
    assert {(row["line"].lower(), row["x"]): row["value"] for row in drawn} == {
        key: row["score"] for key, row in rows.items() if row["state"] != "failed"
    }
    assert {row["line"].lower(): row["x"] for row in drawn if row["best"]} == {
        name: best["settings"]["local.lr"] for name, best in tuning.best.items()
    }
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


def test_the_spread_of_a_cell_with_several_points_is_that_of_the_means_of_its_seeds(store):
    """By hand; the spread of all four runs is larger."""
    points = tiny(grid={"seed": [0], "algorithm": ["fedavg"], "server.lr": [1.0, 0.1]})
    best = tune(store, points, {"local.lr": [0.1]}, seeds=(5, 6), per=("algorithm",)).best["fedavg"]
    folders = [RunFolder(path.parent) for path in store.rglob("status.json")]
    seeds = [yaml.safe_load(one.settings.read_text())["seed"] for one in folders]
    runs = pd.DataFrame(zip(seeds, [one.history()["train/distance"].iloc[-1] for one in folders], strict=True))
    assert len(runs) == 4
    assert best["score"] == pytest.approx(runs[1].mean())
    assert best["spread"] == pytest.approx(runs.groupby(0)[1].mean().std())
    assert best["spread"] < runs[1].std()


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


def digits(**settings) -> Experiment:
    task = {"name": "digits", "clients": 4, "model": "linear"}
    trial = {"task": task, "local": {"steps": 1, "lr": 0.1, "batch_size": 4}, "rounds": 2, "algorithm": "fedavg"}
    trial |= settings
    return Experiment.model_validate({"name": "small", "title": "Small", "trial": trial})


def test_no_test_sample_is_read_unless_the_metric_is_of_the_test_split(store, monkeypatch):
    _, data = rollcall.Trial.read(digits().trial).task.build(0)
    whole, test = Batches.__iter__, len(data.splits["test"][0])
    assert len(data.splits["train"][0]) != test

    def iterated(self):
        if len(self.samples[0]) == test:
            raise Touched
        return whole(self)

    monkeypatch.setattr(Batches, "__iter__", iterated)
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


@pytest.mark.parametrize(
    ("space", "message"),
    [
        ({"local.lrr": [1]}, r"space: local\.lrr: no method allows it \(local\.lrr: is not a setting"),
        ({"algorithm.cutoff": [1]}, r"space: algorithm\.cutoff: no method .*cutoff: is not an option of fedavg"),
        ({"fedavg": {"algorithm.cutoff": [1]}}, r"space: fedavg: algorithm\.cutoff: is not an option of fedavg"),
        ({"fedau": {"local.lr": [1]}}, r"space: 'fedau' is not allowed; must be a method .*: fedavg, fedpbc"),
        ({"local.lr": [0.2, -1]}, r"space: local\.lr: no method allows it \(local\.lr: -1 is not allowed"),
    ],
)
def test_errors_name_the_setting(space, message, store):
    with pytest.raises(SettingError, match=f"^{message}"):
        tune(store, space=space)
    assert not store.exists()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"mode": "maximize"}, "mode: 'maximize' is not allowed; must be one of max, min"),
        ({"execution": Execution()}, "store: is not allowed beside execution; must be left out"),
    ],
)
def test_arguments_that_would_be_ignored_are_refused(options, message, store):
    with pytest.raises(SettingError, match=f"^{message}"):
        tune(store, **options)


OWN = """
from pathlib import Path
import numpy as np
from rollcall import tasks

def moved(seed):
    shift = float(Path(__file__).with_name("shift.txt").read_text())
    return tasks.quadratic(seed, targets=np.array([[0.0], [1.0]]) + shift)
"""


def test_samples_of_other_data_are_not_compared(store, tmp_path):
    (tmp_path / "own.py").write_text(OWN)
    (tmp_path / "shift.txt").write_text("0")
    trial = TINY["trial"] | {"task": f"{tmp_path / 'own.py'}:moved"}
    experiment = tiny(trial=trial, grid={"algorithm": ["fedavg"]})
    tune(store, experiment, {"local.lr": [0.01, 0.1]})
    (tmp_path / "shift.txt").write_text("100")
    with pytest.raises(SettingError, match="makes other data now than for"):
        tune(store, experiment, {"local.lr": [0.01, 0.1, 0.3]})


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


def test_a_longer_search_does_not_change_the_answer_of_a_shorter_one(store):
    """At the rate 1,000 the distance grows by a factor each round; after more rounds it is no number any more."""
    rates = {"local.lr": [0.1, 1000.0]}
    short = tune(store, space=rates, samples="grid", rounds=2)
    assert {*short.samples["state"]} == {"finished"}
    assert "failed" in {*tune(store, space=rates, samples="grid", rounds=30).samples["state"]}
    again = tune(store, space=rates, samples="grid", rounds=2)
    pd.testing.assert_frame_equal(again.samples, short.samples)


def test_a_sample_that_cannot_run_says_why(store, monkeypatch):
    """Its run was left after five rounds, and cannot be a run of three."""
    often = tiny(trial=TINY["trial"] | {"evaluation": {"every": 1}})

    def left(trial, folder, stop, *more):
        rounds = itertools.count(1)
        return run_job(trial, folder, lambda: trial.local.lr == 0.01 and next(rounds) == 5, *more)

    monkeypatch.setattr(jobs, "run_job", left)
    with pytest.raises(Interrupted):
        tune(store, often, rounds=8, samples="grid")
    monkeypatch.undo()
    rows = table(tune(store, often, rounds=3, samples="grid"))
    assert (rows["fedavg", 0.01]["state"], rows["fedavg", 0.1]["state"]) == ("failed", "finished")
    assert "must be at least 5" in rows["fedavg", 0.01]["error"]


TOGETHER = {"server.optimizer": ["adam", "sgd"], "server.momentum": [0.9, 0.0], "local.lr": [0.1]}
REFUSED = "server.momentum: 0.9 is not allowed with adam; must be left out"


def outcomes(tuning) -> dict:
    """The state and the error of each sample of FedAvg, by its settings."""
    return {
        (row["server.optimizer"], row["server.momentum"]): (row["state"], row["error"])
        for row in tuning.samples.to_dict("records")
    }


@pytest.mark.parametrize("samples", ["grid", 4])
def test_a_sample_whose_settings_are_not_allowed_together_counts_as_failed(samples, store):
    """Each value is allowed alone."""
    one = tiny(grid={"algorithm": ["fedavg"]})
    tuning = tune(store, one, TOGETHER, samples=samples)
    ends = outcomes(tuning)
    state, error = ends.pop(("adam", 0.9))
    assert (state, REFUSED in error) == ("failed", True)
    assert ends == dict.fromkeys([("adam", 0.0), ("sgd", 0.9), ("sgd", 0.0)], ("finished", ""))
    assert (tuning.best["fedavg"]["samples"], tuning.best["fedavg"]["failed"]) == (4, 1)
    scores = {row["score"] for row in tuning.samples.to_dict("records") if row["state"] == "finished"}
    assert tuning.best["fedavg"]["score"] == min(scores)
    pd.testing.assert_frame_equal(tune(store, one, TOGETHER, samples=samples).samples, tuning.samples)
    with pytest.raises(SettingError, match=REFUSED):  # there is no other sample
        tune(store, one, {"server.optimizer": ["adam"], "server.momentum": [0.9]}, samples=samples)


def test_a_searcher_goes_on_after_a_sample_whose_settings_are_not_allowed_together(store, monkeypatch):
    """Tune's part is played: what a searcher proposes, and what Tune's callback hears."""
    samples = pytest.importorskip("rollcall.benchmark.search.samples")
    from rollcall.benchmark.config.grid import read_trial
    from rollcall.benchmark.sweep.jobs import Job, run_inline
    from rollcall.benchmark.sweep.ray_executor import _Attempt

    class Grid(list):
        pass

    def played(plan, home, execution, space, **tuning):
        ran, errors = Grid(), {}
        attempt = _Attempt(plan, home, execution, bool, errors)
        for optimizer, momentum in itertools.product((0, 1), (0, 1)):  # numbers in the lists of TOGETHER
            config = {"cell": "fedavg", "server.optimizer": optimizer, "server.momentum": momentum, "local.lr": 0}
            work, error = plan.work(config), ""
            try:
                jobs = [Job(read_trial(spec), str(home.relative_to(store)), store) for spec in work.specs]
                assert [job.trial.name for job in jobs] == work.folders
                run_inline(jobs)
            except SettingError as wrong:
                error = f"{type(wrong).__name__}: {wrong}"
            ran.append(SimpleNamespace(config=config))
            attempt.on_trial_complete(0, [], SimpleNamespace(config=config, last_result={"error": error}))
        return ran, errors, False

    monkeypatch.setattr(samples, "run_plan", played)
    how = {"search_alg": "optuna", "executor": "ray", "samples": 4}
    tuning = tune(store, tiny(grid={"algorithm": ["fedavg"]}), TOGETHER, **how)
    ends = outcomes(tuning)
    assert list(ends) == [("adam", 0.9), ("adam", 0.0), ("sgd", 0.9), ("sgd", 0.0)]
    assert [state for state, _ in ends.values()] == ["failed", "finished", "finished", "finished"]
    assert REFUSED in ends["adam", 0.9][1]
    assert (tuning.best["fedavg"]["samples"], tuning.best["fedavg"]["failed"]) == (4, 1)


def test_answers_that_another_search_wrote_meanwhile_are_kept(store, monkeypatch):
    one, other = (tiny().only({"algorithm": [name]}) for name in ("fedavg", "fedpbc"))
    run_jobs = search.run_jobs

    def slow(*args):
        monkeypatch.setattr(search, "run_jobs", run_jobs)
        tune(store, other, samples="grid")
        return run_jobs(*args)

    monkeypatch.setattr(search, "run_jobs", slow)
    tuning = tune(store, one, samples="grid")
    assert list(Tuned.read(tuning.file).best) == ["fedpbc", "fedavg"]
    tuning.file.write_text("experiment: t")
    with pytest.raises(SettingError, match=r"tuned\.yaml: .*\. Delete it and rerun the command: all samples are kept"):
        tune(store, one, samples="grid")


BOTH = {"local.lr": None, "server.lr": None}
HOW = {"space": BOTH | {"a:algorithm.mu": [1]}, "date": "", "mode": "max", "search": "grid"}
BEST = {"when": {}, "settings": {"local.lr": 0.1, "server.lr": 2}, "score": 0.5, "rounds": 9, "samples": 4, "gradients": 100, "how": HOW}  # fmt: skip
ROW = {"state": "finished", "error": "", "start": 0.1, "first": 0.2}
STOPPED, CHANCE = ROW | {"state": "stopped"}, ROW | {"first": 0.109}  # a gain of 9 %
FAILED = [ROW | {"state": "failed", "error": error, "first": math.nan} for error in ("It broke.", "Again.")]
BY_CHANCE = "Warning: after the first comparison, 3 rounds, {} samples are less than 10% better than the untrained model: samples are stopped by chance. Use more rounds (--rounds)."  # fmt: skip


@pytest.mark.parametrize(
    ("cell", "best", "rows", "mode", "line"),
    [
        ({}, {}, [ROW], "max", None),
        ({"held_out": True}, {}, [ROW], "max", "The search held out 20% of the training samples (task.validation: 0.2)."),
        ({"space": {"local.lr": None}}, {}, [ROW], "max", "b: has no server.lr; left out of its space."),
        ({}, None, FAILED, "max", "Warning: b: all samples failed; there is no answer. The first: It broke."),
        ({}, {"at_edge": ("server.lr",)}, [ROW], "max", "Warning: b: the best server.lr, 2, is at the edge of its space. Widen the space."),
        ({}, {"failed": 2}, [ROW], "max", "b: 2 of 4 samples failed or diverged."),
        ({}, {"gradients": 150}, [ROW], "max", None),
        ({}, {"gradients": 151}, [ROW], "max", "The cells took unequal numbers of client gradients: a 1e+02, b 1.5e+02."),
        ({}, {}, [CHANCE, CHANCE, CHANCE | {"state": "stopped"}], "max", BY_CHANCE.format("3 of 4")),
        ({}, {}, [STOPPED, CHANCE, CHANCE], "max", None),  # two of four
        ({}, {}, [CHANCE, CHANCE, CHANCE], "max", None),  # none was stopped
        ({}, {}, [STOPPED, CHANCE, *FAILED], "min", BY_CHANCE.format("3 of 3")),  # a higher loss is no gain
        ({}, {}, [STOPPED | {"first": 0.089}, ROW | {"first": 0.089}], "min", None),
    ],
)  # fmt: skip
def test_notes(cell, best, rows, mode, line):
    """On a cell that has nothing to note, and another one."""
    plain = {"held_out": False, "milestones": [2, 9], "space": BOTH}
    cells = [SimpleNamespace(name="a", **plain), SimpleNamespace(**{"name": "b", **plain, "milestones": [3, 9]} | cell)]
    answers = {"a": Best(**BEST)} | ({} if best is None else {"b": Best(**BEST | best)})
    frame = pd.DataFrame([ROW | {"cell": "a"}, *(row | {"cell": "b"} for row in rows)])
    tuned = Tuned(experiment="tiny", best=answers)
    assert search.notes(cells, frame, tuned, Metric("validation/accuracy", mode)) == ((line,) if line else ())
