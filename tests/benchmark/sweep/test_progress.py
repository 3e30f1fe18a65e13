"""The live view of a sweep, and how it ended, from run folders that change in a fixed order."""

import io

import pytest
from rich.console import Console

from rollcall import Trial, simulate
from rollcall.benchmark.process import Interrupted
from rollcall.benchmark.sweep.jobs import Job, Sweep
from rollcall.benchmark.sweep.progress import View

TRIAL = {"task": {"name": "quadratic", "targets": [[0.0], [1.0]]}, "algorithm": "fedavg", "rounds": 10}
WILD = {"task": {"name": "quadratic", "targets": [[1.0], [1.0]]}, "local": {"lr": 1e13}}


@pytest.fixture
def console():
    return Console(file=io.StringIO(), width=200, markup=False)  # as the commands do


def jobs_of(store, count, **changes):
    return [Job(Trial.read(TRIAL | changes | {"seed": seed}), "tiny", store) for seed in range(count)]


def test_every_trial_is_counted_once(tmp_path, console):
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


def test_diverged_trials_are_said(tmp_path, console):
    before, now = jobs = jobs_of(tmp_path, 2, **WILD)
    simulate(before.trial, folder=before.folder.path)
    assert (before.finished, before.diverged, before.ended) == (False, True, True)
    view = View(jobs, console)
    simulate(now.trial, folder=now.folder.path)
    view.end({})
    assert "2 diverged" in view.progress.tasks[0].description
    ends = Sweep(jobs, [now])
    assert (ends.finished, ends.failed, ends.stopped) == (0, {}, False)
    assert list(ends.diverged) == [before.trial.name, now.trial.name]
    assert console.file.getvalue() == f"   2/2  {now.trial.name}  {ends.diverged[now.trial.name]}\n"


def test_outside_a_terminal_there_is_a_line_now_and_then(tmp_path, console, monkeypatch):
    clock = [100.0]
    monkeypatch.setattr("rollcall.benchmark.sweep.progress.monotonic", lambda: clock[0])
    jobs = jobs_of(tmp_path, 2)
    folder, view = jobs[0].folder, View(jobs, console)
    with folder.running(jobs[0].trial, device="cpu", threads=1):
        folder.append({"round": 0, "train/loss": 0.25, "test/accuracy": 0.5})
        view.look()
        assert console.file.getvalue() == ""
        clock[0] += 31
        folder.sign(5)
        view.look()
        view.look()
    (line,) = console.file.getvalue().splitlines()
    assert line.startswith("0/2 trials, 1 running, 25 %, ")
