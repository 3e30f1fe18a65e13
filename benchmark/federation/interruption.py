"""Stopping on request: the run finishes its round, saves a checkpoint and ends."""

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from time import monotonic
from types import FrameType


class Interrupted(Exception):
    """A run stopped after a whole round because it was asked to."""


@contextmanager
def stop_requests() -> Iterator[Callable[[], bool]]:
    """Turn the first SIGINT (Ctrl-C) or SIGTERM into a request to stop. Yields whether there was one.

    A further signal more than a second later raises KeyboardInterrupt at once. An earlier one counts as the same
    request, because some tools signal a process and then its group. Only the main thread can receive signals; in
    another thread there are no requests.
    """
    if threading.current_thread() is not threading.main_thread():
        yield lambda: False
        return
    requested_at: float | None = None

    def note(number: int, frame: FrameType | None) -> None:
        nonlocal requested_at
        if requested_at is None:
            requested_at = monotonic()
        elif monotonic() - requested_at > 1:
            raise KeyboardInterrupt

    before = {number: signal.signal(number, note) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield lambda: requested_at is not None
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
