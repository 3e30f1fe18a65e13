"""Rollcall for who knows Ray Tune: its objects, its results, and a Tuner of the user's own. One Ray for all."""

import json
import os
from pathlib import Path
from types import SimpleNamespace
from typing import ClassVar
from unittest.mock import Mock

import pytest
from command import TINY
from filelock import FileLock
from rich.console import Console

import rollcall
from rollcall.benchmark.config.experiment import Experiment
from rollcall.benchmark.federation.run_folder import RunFolder

pytestmark = pytest.mark.full

# From round 8 on each round is slow until it may be fast, so that Tune's stopper comes in time.
SLOW = """
import time
from pathlib import Path
from rollcall.algorithms.fedavg import FedAvg


class Slow(FedAvg):
    def round(self, state, x, call, work):
        if call.t > 7 and not Path("FOLDER/fast").exists():
            time.sleep(0.5)
        return super().round(state, x, call, work)
"""


@pytest.fixture(scope="module")
def declared(ray_lock):
    """Ray of the user."""
    ray_executor = pytest.importorskip("rollcall.benchmark.sweep.ray_executor")
    import ray

    with ray_lock, pytest.MonkeyPatch.context() as patch:
        patch.setenv("RAY_worker_niceness", "0")  # as in `one_ray`
        ray_executor.end_ray()  # one that a command of an earlier test of this process has left
        ray.init(address="local", num_cpus=2, include_dashboard=False, log_to_driver=False)
        yield pytest.importorskip("ray.tune")
        assert ray.is_initialized()  # Rollcall leaves the user's Ray alone
        ray.shutdown()


def tiny(**changes) -> Experiment:
    return Experiment.model_validate({"name": "tiny"} | TINY | changes)


def test_a_run_is_an_experiment_of_tune(declared, tmp_path):
    class Seen(declared.Callback):
        rounds: ClassVar[list] = []

        def on_trial_result(self, iteration, trials, trial, result, **info):
            self.rounds.append((trial.config["algorithm"], trial.config["seed"], result["round"]))

    seen, how = Seen(), {"settings": {"evaluation.every": [5], "evaluation.at": [[19]]}, "mlflow": False}
    inline = rollcall.run(tiny(), store=tmp_path / "inline", executor="inline", **how)
    result = rollcall.run(tiny(), store=tmp_path / "ray", callbacks=[seen], **how)
    assert set(result.frame["state"]) == {"finished"}
    assert set(zip(result.frame["algorithm"], result.frame["seed"], strict=True)) == {
        (name, seed) for name in ("fedavg", "fedpbc") for seed in (0, 1)
    }
    for one, other in zip(result.jobs, inline.jobs, strict=True):
        for name in ("metrics.jsonl", "model.npz"):
            assert (one.folder.path / name).read_bytes() == (other.folder.path / name).read_bytes()
    for name in ("fedavg", "fedpbc"):  # every evaluation is reported; the last one with the end of the run
        rounds = [t for algorithm, seed, t in seen.rounds if (algorithm, seed) == (name, 0)]
        assert [t for i, t in enumerate(rounds) if t not in rounds[:i]] == [0, 5, 10, 15, 19, 20]
    best = result.grid.get_best_result("train/distance", "min")
    assert best.metrics["train/distance"] == result.frame["train/distance"].min()
    assert set(best.config) == {"panel", "algorithm", "evaluation.every", "evaluation.at", "seed"}
    again = rollcall.run(tiny(), store=tmp_path / "ray", **how)
    assert (again.grid, again.finished, again.frame.equals(result.frame)) == (None, 0, True)


def test_a_stopper_ends_runs_that_a_second_call_resumes(declared, tmp_path):
    (tmp_path / "slow.py").write_text(SLOW.replace("FOLDER", str(tmp_path)))
    slow = tiny(grid={"algorithm": [f"{tmp_path / 'slow.py'}:Slow"], "seed": [0, 1]})
    how = {"settings": {"evaluation.every": [1], "rounds": [300]}, "mlflow": False}
    stopped = rollcall.run(slow, store=tmp_path / "ray", stop=lambda _, row: row["round"] >= 7, **how)
    assert set(stopped.frame["state"]) == {"interrupted"}
    (tmp_path / "fast").touch()
    whole = rollcall.run(slow, store=tmp_path / "ray", executor="inline", **how)
    alone = rollcall.run(slow, store=tmp_path / "alone", executor="inline", **how)
    assert set(whole.frame["state"]) == {"finished"}
    for one, other in zip(whole.jobs, alone.jobs, strict=True):
        assert (one.folder.path / "model.npz").read_bytes() == (other.folder.path / "model.npz").read_bytes()


@pytest.mark.parametrize(("retries", "state"), [(0, "absent"), (1, "finished")])
def test_a_kill_for_memory_is_a_process_that_died(retries, state, declared, tmp_path, monkeypatch, capsys):
    from ray.exceptions import OutOfMemoryError

    fit, fits = declared.Tuner.fit, []

    def killed(tuner):  # as Tune does after Ray's memory monitor has killed a process
        fits.append(tuner)
        if len(fits) == 1:
            raise RuntimeError("Caught unexpected exception") from OutOfMemoryError("memory")
        return fit(tuner)

    monkeypatch.setattr(declared.Tuner, "fit", killed)
    only, how = {"algorithm": ["fedavg"], "seed": ["0"]}, {"store": tmp_path, "mlflow": False, "console": Console()}
    result = rollcall.run(tiny(), only=only, executor="ray", retries=retries, **how)
    assert (result.frame["state"].tolist(), len(fits)) == ([state], retries + 1)
    assert result.stopped == (retries == 0)
    said = ["Rerun the command to resume", "It starts again; trials resume (retry 1 of 1)"][retries]
    assert f"Ray killed a process, for memory had run out. {said}\n" in capsys.readouterr().out


@pytest.mark.parametrize("scheduler", ["hyperband", "median"])
def test_schedulers_of_tune_find_the_best_sample(scheduler, declared, tmp_path):
    space = {"local.lr": declared.choice([0.001, 0.002, 0.1, 0.2])}
    options = {"metric": "train/distance", "samples": 4, "scheduler": scheduler, "rounds": 27, "mlflow": False}
    tuning = rollcall.tune(tiny(grid={"algorithm": ["fedavg"]}), space, store=tmp_path, seeds=(5, 6), **options)
    assert tuning.best["fedavg"]["settings"]["local.lr"] in (0.1, 0.2)
    assert tuning.best["fedavg"]["rounds"] == 27
    assert len(tuning.grids) == 1
    alone = rollcall.simulate(next(tmp_path.rglob("trial.yaml"))).history  # segments change nothing
    folder = RunFolder(next(tmp_path.rglob("trial.yaml")).parent)
    assert folder.history()["train/distance"].tolist() == alone["train/distance"].tolist()[: len(folder.history())]


@pytest.mark.ray
@pytest.mark.parametrize("name", ["asha", "hyperband", "median"])
def test_schedulers_of_tune_stop_bad_samples(name):
    """Ten samples report side by side, the best one first. Without Ray, for which are stopped depends on its timing."""
    scheduler = pytest.importorskip("rollcall.benchmark.search.samples")._scheduler(name, 27)
    scheduler.set_search_properties("score", "min")
    trials = [Mock(trial_id=str(score), status="RUNNING", is_saving=False) for score in range(10)]
    tune = Mock(stop_trial=lambda trial: setattr(trial, "status", "STOP"), get_live_trials=list)
    for trial in trials:
        scheduler.on_trial_add(tune, trial)
    rounds = dict.fromkeys(range(10), 0)
    for t in range(3, 28, 3):
        for score, trial in enumerate(trials):
            if trial.status != "STOP":
                rounds[score], trial.status = t, "RUNNING"
                decision = scheduler.on_trial_result(tune, trial, {"round": t, "score": score})
                trial.status = "PAUSED" if decision == "PAUSE" else decision
    assert rounds[0] == 27
    assert rounds[9] < 27


def test_tunes_objects_are_copied_for_each_of_its_experiments(declared, tmp_path, monkeypatch):
    """A used scheduler is refused by Tune, and a stopper that has stopped all trials would stop the next cell."""
    import ray

    class Once(declared.Stopper):
        rows = 0

        def __call__(self, trial_id, result):
            self.rows += 1
            return False

        def stop_all(self):
            return self.rows >= 18  # two samples of nine reports

    tuner, fits = declared.Tuner.fit, []

    def dies_once(own):
        fits.append(tuner(own))
        if len(fits) == 1:
            raise RuntimeError from ray.exceptions.OutOfMemoryError("killed")
        return fits[-1]

    monkeypatch.setattr(declared.Tuner, "fit", dies_once)
    options = {"metric": "train/distance", "samples": 2, "rounds": 9, "mlflow": False, "scheduler": "asha"}
    space = {"local.lr": declared.choice([0.1, 0.2])}
    tuning = rollcall.tune(tiny(), space, store=tmp_path, seeds=(5,), stop=Once(), **options)
    assert len(fits) == 3
    assert {cell: one["rounds"] for cell, one in tuning.best.items()} == {"fedavg": 9, "fedpbc": 9}


def test_a_search_whose_own_code_changes_stops(declared, tmp_path):
    """The second cell would have other code than its answer is looked for under."""
    file = tmp_path / "own.py"
    file.write_text("from rollcall.algorithms.fedavg import FedAvg\n\nclass Own(FedAvg):\n    pass\n")
    rewrite = "from pathlib import Path\n\n"
    rewrite += (
        f"class Other(FedAvg):\n    def init(self, x, clients):\n        Path({str(file)!r}).open('a').write('# new')\n"
    )
    rewrite += "        return super().init(x, clients)\n"
    file.write_text(file.read_text() + rewrite)
    methods = tiny(grid={"algorithm": [f"{file}:Other", f"{file}:Own"]})
    options = {"metric": "train/distance", "samples": 2, "rounds": 9, "mlflow": False, "scheduler": "median"}
    with pytest.raises(rollcall.SettingError, match=r"own.py was changed during the search; undo the change"):
        rollcall.tune(methods, {"local.lr": declared.choice([0.1, 0.2])}, store=tmp_path, seeds=(5,), **options)


def test_own_code_finds_files_where_the_command_was_given(declared, tmp_path, monkeypatch):
    """Tune gives every trial a folder of its own."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "rate.txt").write_text("0.5")
    own = "class Own(FedAvg):\n    def init(self, x, clients):\n        float(open('rate.txt').read())\n"
    own += "        return super().init(x, clients)\n"
    (tmp_path / "own.py").write_text(f"from rollcall.algorithms.fedavg import FedAvg\n\n{own}")
    ends = rollcall.run(tiny(grid={"algorithm": ["own.py:Own"]}), store="runs", executor="ray", mlflow=False)
    assert (ends.failed, set(ends.frame["state"])) == ({}, {"finished"})


def test_an_error_outside_a_run_is_told(tmp_path):
    """Such as a full disk under Ray's own files. It is no death of a process."""
    from ray.exceptions import RayTaskError

    ray_executor = pytest.importorskip("rollcall.benchmark.sweep.ray_executor")
    plan = SimpleNamespace(work=lambda config: ray_executor.TuneTrial(["one"], [], [3]))
    errors = {}
    attempt = ray_executor._Attempt(plan, tmp_path, None, bool, errors)
    full = RayTaskError("trial", "trace", OSError(28, "No space left on device"))
    for raised, told in (
        (full, "OSError: [Errno 28] No space left on device. Rerun"),
        (None, "its process died once;"),
    ):
        failed = SimpleNamespace(config={}, num_failures=1, get_pickled_error=lambda raised=raised: raised)
        attempt.on_trial_error(0, [], failed)
        assert errors["one"].startswith(told)


def test_a_searcher_of_tune_and_a_scheduler_that_changes_settings(declared, tmp_path):
    pytest.importorskip("optuna")
    from ray.tune.schedulers import PopulationBasedTraining
    from ray.tune.search.optuna import OptunaSearch

    options = {"metric": "train/distance", "samples": 3, "rounds": 9, "store": tmp_path, "mlflow": False}
    experiment, space = tiny(grid={"algorithm": ["fedavg"]}), {"local.lr": declared.loguniform(1e-3, 0.3)}
    tuning = rollcall.tune(experiment, space, search_alg=OptunaSearch(seed=1), **options)
    assert (len(tuning.samples), tuning.best["fedavg"]["how"]["search"]) == (3, "OptunaSearch")
    assert tuning.best["fedavg"]["score"] == tuning.samples["score"].min()
    changing = PopulationBasedTraining(time_attr="round", hyperparam_mutations={"local.lr": [0.1, 0.2]})
    with pytest.raises(rollcall.SettingError, match=r"^scheduler: PopulationBasedTraining is not allowed"):
        rollcall.tune(experiment, space, scheduler=changing, **options)


def test_a_tuner_of_the_users_own(declared, tmp_path):
    from rollcall.ray import trainable

    experiment = tiny(grid={"algorithm": ["fedavg", "fedpbc"], "seed": [0]})
    space = {"algorithm": "fedpbc", "seed": 3, "local.lr": declared.grid_search([0.05, 0.1]), "evaluation.every": 5}
    grid = declared.Tuner(trainable(experiment, store=tmp_path / "runs"), param_space=space).fit()
    for result in grid:
        spec = TINY["trial"] | {"algorithm": "fedpbc", "seed": 3, "evaluation": {"every": 5}}
        alone = rollcall.simulate(spec | {"local": {"steps": 2, "lr": result.config["local.lr"]}}).history
        assert result.metrics["train/distance"] == alone["train/distance"].iloc[-1]
        rows = map(json.loads, Path(result.path, "result.json").read_text().splitlines())
        assert [row["round"] for row in rows][:5] == [0, 5, 10, 15, 20]
    (error,) = declared.Tuner(trainable(experiment, store=tmp_path / "runs"), param_space={"seed": 3}).fit().errors
    assert "names 2 runs of tiny; must name one. Axes: algorithm" in str(error)


def test_two_trials_of_one_configuration_have_one_result(declared, tmp_path, monkeypatch):
    """The second waits for the first, which holds the lock; and relative paths are those of where it was made."""
    from rollcall import ray as own

    (tmp_path / "away").mkdir()
    monkeypatch.setenv("ROLLCALL_DATA", "data")
    monkeypatch.chdir(tmp_path)
    trial = own.trainable(tiny(grid={"algorithm": ["fedavg", "fedpbc"], "seed": [0]}))
    monkeypatch.chdir(tmp_path / "away")
    told, slept = [], []
    monkeypatch.setattr("ray.tune.report", lambda row, checkpoint=None: told.append(row))
    trial({"algorithm": "fedpbc", "seed": 0})
    assert (Path.cwd(), os.environ["ROLLCALL_DATA"]) == (tmp_path, str(tmp_path / "data"))
    (folder,) = (tmp_path / "runs" / "tiny").glob("fedpbc-*")
    run, rows = RunFolder(folder), len(told)
    run.metrics.unlink()
    (folder / "last.ckpt").unlink()
    (folder / "status.json").unlink()
    lock = FileLock(folder / "lock")
    lock.acquire()
    monkeypatch.setattr(own, "sleep", lambda seconds: slept.append(lock.release()))
    trial({"algorithm": "fedpbc", "seed": 0})
    assert (len(slept), told[rows:]) == (1, told[:rows])
