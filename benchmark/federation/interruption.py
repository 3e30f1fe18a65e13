"""Stopping on request: a run that is asked to stop finishes its round, saves a checkpoint and ends."""

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from time import monotonic
from types import FrameType


class Interrupted(Exception):
    """A run was asked to stop and did, after a whole round."""


@contextmanager
def stop_requests() -> Iterator[Callable[[], bool]]:
    """Turn the first SIGINT (Ctrl-C) or SIGTERM into a request; yields whether there was one.

    A signal that comes more than a second later raises KeyboardInterrupt at once; before, it counts as the same one,
    because some tools signal a process and then its group. Only the main thread can receive signals; in another thread
    there are no requests.
    """
    if threading.current_thread() is not threading.main_thread():
        yield lambda: False
        return
    since: float | None = None

    def note(number: int, frame: FrameType | None) -> None:
        nonlocal since
        if since is None:
            since = monotonic()
        elif monotonic() - since > 1:
            raise KeyboardInterrupt

    before = {number: signal.signal(number, note) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield lambda: since is not None
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
