"""A sweep's callback in a thread of its own, so that the sweep does not wait for it."""

from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from types import TracebackType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from benchmark.sweep.jobs import Job, Outcome, SweepCallback


class Background:
    """Passes all calls to another callback, one after another, in one thread. A `SweepCallback`.

    At the end of its `with` block it waits for the last call, and raises the first exception of the calls.

    Args:
        make: makes the other callback, in that thread; None for no callback.
    """

    def __init__(self, make: Callable[[], "SweepCallback | None"]) -> None:
        self.thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix="sweep-callback")
        self.made = self.thread.submit(make)
        self.calls: list[Future[None]] = []

    def __enter__(self) -> "Background":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.thread.shutdown()
        if error is None:
            for call in self.calls:
                call.result()

    def started(self, job: "Job") -> None:
        self._call("started", job)

    def progressed(self, job: "Job", rounds: int) -> None:
        self._call("progressed", job, rounds)

    def retried(self, job: "Job", reason: str) -> None:
        self._call("retried", job, reason)

    def ended(self, job: "Job", outcome: "Outcome") -> None:
        self._call("ended", job, outcome)

    def _call(self, name: str, *arguments: Any) -> None:
        def call() -> None:
            callback = self.made.result()
            if callback is not None:
                getattr(callback, name)(*arguments)

        # Only calls that are still to come or raised something are kept.
        self.calls = [call for call in self.calls if not call.done() or call.exception()]
        self.calls.append(self.thread.submit(call))
