"""The live view of a sweep, and how it ended, from run folders that change in a fixed order."""

import io

import pytest
from rich.console import Console

from rollcall import Trial, simulate
from rollcall.benchmark.federation.run_folder import RunFolder
from rollcall.benchmark.process import Interrupted
from rollcall.benchmark.sweep.jobs import Job, Sweep
from rollcall.benchmark.sweep.progress import View

TRIAL = {"task": {"name": "quadratic", "targets": [[0.0], [1.0]]}, "algorithm": "fedavg", "rounds": 10}


@pytest.fixture
def console():
    return Console(file=io.StringIO(), width=200, markup=False)  # as the commands do


def jobs_of(store, count, **changes):
    return [Job(Trial.read(TRIAL | changes | {"seed": seed}), "tiny", store) for seed in range(count)]


def test_every_trial_is_counted_once(tmp_path, console, monkeypatch):
    jobs = jobs_of(tmp_path, 6)
    before, good, bad, cut, away, _ = jobs
    simulate(before.trial, folder=before.folder.path)
    todo, errors = jobs[1:], {bad.trial.name: "file.py:3: ValueError: x"}
    view = View(jobs, console)
    (task,) = view.progress.tasks
    assert task.completed == 10
    folder = good.folder
    with folder.running(good.trial, device="cpu", threads=1):
        folder.sign(4)
        view.look()
        assert (task.completed, task.description) == (14, "1/6 trials, 1 running")
    bad.folder.fail("ValueError: x", "trace", bad.trial)
    with monkeypatch.context() as patch:  # a network folder is away for a moment
        patch.setattr(RunFolder, "status", property(lambda folder: (_ for _ in ()).throw(OSError(116, "Stale"))))
        view.look()
    view.look()
    view.look()  # nothing has changed, so nothing is told twice
    with pytest.raises(Interrupted), cut.folder.running(cut.trial, device="cpu", threads=1):
        raise Interrupted
    with away.folder.running(away.trial, device="cpu", threads=1):  # as by another process
        view.end(errors)
        ends = Sweep(jobs, todo, errors)
    assert (ends.finished, ends.interrupted, ends.elsewhere, ends.waiting) == (1, 1, 1, 1)
    assert (ends.failed, ends.stopped) == (errors, True)
    assert console.file.getvalue().splitlines() == [
        f"   2/6  {good.trial.name}  finished",
        f"   3/6  {bad.trial.name}  ValueError: x",
        f"   3/6  {cut.trial.name}  interrupted",
        f"   3/6  {away.trial.name}  running elsewhere",
    ]
