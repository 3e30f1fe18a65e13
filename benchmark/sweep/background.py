"""A sweep's callback in a thread of its own, so that the sweep does not wait for it."""

from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from types import TracebackType
from typing import TYPE_CHECKING, Generic, TypeVar

if TYPE_CHECKING:
    from benchmark.sweep.jobs import Job, Outcome, SweepCallback

C = TypeVar("C", bound="SweepCallback")


class Background(Generic[C]):
    """Passes all calls to another callback, one after another, in one thread. A `SweepCallback`.

    At the end of its `with` block it waits for the last call, and raises the first exception of the calls.

    Args:
        make: makes the other callback, in that thread.
    """

    def __init__(self, make: Callable[[], C]) -> None:
        self.thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix="sweep-callback")
        self.made = self.thread.submit(make)
        self.calls: list[Future[None]] = []

    def __enter__(self) -> "Background[C]":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.thread.shutdown()
        if error is None:
            for call in self.calls:
                call.result()

    def started(self, job: "Job") -> None:
        self.call(lambda callback: callback.started(job))

    def progressed(self, job: "Job", rounds: int) -> None:
        self.call(lambda callback: callback.progressed(job, rounds))

    def retried(self, job: "Job", reason: str) -> None:
        self.call(lambda callback: callback.retried(job, reason))

    def ended(self, job: "Job", outcome: "Outcome") -> None:
        self.call(lambda callback: callback.ended(job, outcome))

    def call(self, function: Callable[[C], None]) -> None:
        """Call a function with the other callback, in its thread, after all calls before."""
        # Only calls that are still to come or raised something are kept.
        self.calls = [call for call in self.calls if not call.done() or call.exception()]
        self.calls.append(self.thread.submit(lambda: function(self.made.result())))
