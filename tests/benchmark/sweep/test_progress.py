"""The live view's counts, from events in a fixed order."""

import io

from rich.console import Console

from rollcall import Trial, simulate
from rollcall.benchmark.sweep.jobs import Job, Outcome
from rollcall.benchmark.sweep.progress import View

TRIAL = {"task": {"name": "quadratic", "targets": [[0.0], [1.0]]}, "algorithm": "fedavg", "rounds": 10}


def test_every_trial_is_counted_once(tmp_path):
    console = Console(file=io.StringIO(), width=200)
    jobs = [Job(Trial.read(TRIAL | {"seed": seed}), "tiny", tmp_path) for seed in range(5)]
    before, good, bad, cut, _ = jobs
    simulate(before.trial, folder=before.folder.path)
    with View(jobs, console) as view:
        assert (view.done, view.waiting) == (1, 4)
        for each in (good, bad, cut):
            view.started(each)
        view.progressed(good, 4)
        assert sum(view.rounds.values()) == 14
        view.ended(good, Outcome("finished"))
        view.ended(bad, Outcome("failed", "ValueError: x"))
        assert (view.running, view.waiting, view.stopped) == (1, 1, True)
        view.ended(cut, Outcome("interrupted"))
    assert (view.finished, view.interrupted, view.waiting, view.failed) == (1, 1, 1, {bad.trial.name: "ValueError: x"})
    assert view.done == 3
    lines = [line.split()[:2] for line in console.file.getvalue().splitlines()]
    assert lines == [[f"{n}/5", each.trial.name] for n, each in ((2, good), (3, bad), (3, cut))]


def test_diverged_and_restarted_trials_are_said(tmp_path):
    console = Console(file=io.StringIO(), width=200)
    wild = {"task": {"name": "quadratic", "targets": [[1.0], [1.0]]}, "local": {"lr": 1e13}}
    before, now = (Job(Trial.read(TRIAL | wild | {"seed": seed}), "tiny", tmp_path) for seed in range(2))
    simulate(before.trial, folder=before.folder.path)
    assert (before.finished, before.diverged, before.ended) == (False, True, True)
    with View([before, now], console) as view:
        assert (view.done, view.waiting) == (1, 1)
        view.started(now)
        view.retried(now, "its process died")
        view.ended(now, Outcome("diverged", "diverged: parameters are not finite after round 3"))
        assert "2 diverged" in view._description()
    assert (view.finished, view.failed, view.stopped) == (0, {}, False)
    assert list(view.diverged) == [before.trial.name, now.trial.name]
    assert console.file.getvalue().splitlines() == [
        f"{now.trial.name}  its process died",
        f"   2/2  {now.trial.name}  diverged: parameters are not finite after round 3",
    ]


def test_outside_a_terminal_there_is_a_line_now_and_then(tmp_path, monkeypatch):
    clock = [100.0]
    monkeypatch.setattr("rollcall.benchmark.sweep.progress.monotonic", lambda: clock[0])
    console = Console(file=io.StringIO(), width=40)
    jobs = [Job(Trial.read(TRIAL | {"seed": seed}), "tiny", tmp_path) for seed in range(2)]
    with View(jobs, console, watch=True, metric="train/loss") as view:
        view.started(jobs[0])
        folder = jobs[0].folder
        with folder.running(jobs[0].trial, device="cpu", threads=1):
            folder.append({"round": 0, "train/loss": 0.25, "test/accuracy": 0.5})
            view.progressed(jobs[0], 2)
            assert console.file.getvalue() == ""
            clock[0] += 31
            view.progressed(jobs[0], 5)
            view.progressed(jobs[0], 6)
    whole, row = console.file.getvalue().splitlines()
    assert whole.startswith("0/2 trials, 1 running, 25 %, ")
    assert row.split()[:6] == [jobs[0].trial.name, "running", "5", "of", "10", "train/loss"]
    assert row.split()[6] == "0.25"


def test_a_row_for_each_running_trial_and_those_that_ended_last(tmp_path):
    console = Console(file=io.StringIO(), width=200)
    jobs = [Job(Trial.read(TRIAL | {"seed": seed}), "tiny", tmp_path) for seed in range(9)]
    view = View(jobs, console, watch=True)
    for job in jobs[:8]:
        view.started(job)
        simulate(job.trial, folder=job.folder.path)
        view.ended(job, Outcome("finished"))
    view.started(jobs[8])
    view.looked = float("-inf")  # it looks at the run folders once a second
    with jobs[8].folder.running(jobs[8].trial, device="cpu", threads=1):
        console.print(view._rendered())
    rows = [line.split()[:5] for line in console.file.getvalue().splitlines()]
    assert rows[9:15] == [
        *([job.trial.name, "finished", "10", "of", "10"] for job in jobs[3:8]),
        [jobs[8].trial.name, "running", "0", "of", "10"],
    ]
