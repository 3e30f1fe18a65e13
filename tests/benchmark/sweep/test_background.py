import threading
from pathlib import Path

import pytest

from rollcall.benchmark.config.trial import Trial
from rollcall.benchmark.sweep.jobs import Background, Job, Outcome

TASK = {"name": "quadratic", "targets": [[1.0], [2.0]], "curvature": [1.0, 1.0]}
JOB = Job(Trial.read({"task": TASK, "algorithm": "fedavg", "rounds": 5}), "paper/table", Path("runs"))
FINISHED = Outcome("finished")


class Slow:
    """Records its calls; each waits until it may end."""

    def __init__(self, may_end: threading.Event) -> None:
        self.may_end = may_end
        self.calls: list[tuple[object, ...]] = []
        self.threads = {threading.get_ident()}

    def _note(self, *call: object) -> None:
        assert self.may_end.wait(20)
        self.calls.append(call)
        self.threads.add(threading.get_ident())

    def started(self, job: Job) -> None:
        self._note("started", job)

    def progressed(self, job: Job, rounds: int) -> None:
        if rounds < 0:
            raise ValueError("no such round")
        self._note("progressed", job, rounds)

    def retried(self, job: Job, reason: str) -> None:
        self._note("retried", job, reason)

    def ended(self, job: Job, outcome: Outcome) -> None:
        self._note("ended", job, outcome)


def test_calls_return_at_once_and_happen_in_order_in_one_other_thread() -> None:
    may_end, made = threading.Event(), []

    def make() -> Slow:
        assert may_end.wait(20)  # making it may take long, too
        made.append(Slow(may_end))
        return made[0]

    with Background(make) as background:
        background.started(JOB)
        background.progressed(JOB, 3)
        background.retried(JOB, "died")
        background.ended(JOB, FINISHED)
        assert not made
        may_end.set()
    (slow,) = made
    assert slow.calls == [("started", JOB), ("progressed", JOB, 3), ("retried", JOB, "died"), ("ended", JOB, FINISHED)]
    assert len(slow.threads) == 1
    assert threading.get_ident() not in slow.threads


def test_the_end_raises_what_a_call_raised() -> None:
    may_end = threading.Event()
    may_end.set()
    slow = Slow(may_end)

    def sweep() -> None:
        with Background(lambda: slow) as background:
            background.progressed(JOB, -1)
            background.ended(JOB, FINISHED)

    with pytest.raises(ValueError, match="no such round"):
        sweep()
    assert slow.calls == [("ended", JOB, FINISHED)]
