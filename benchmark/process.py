"""What belongs to a whole process: its memory settings, and requests to stop it.

By default glibc returns a large block to the kernel as soon as it is freed. Every evaluation and every local step then
gets fresh pages, which the kernel must clear first. Keeping freed memory avoids this cost.

Python looks for unreachable cycles of objects after every 700 new objects. Importing torch and Lightning creates a
million, and a quarter of the time of the imports goes into these searches.

The command line and the Ray workers change the memory settings; `simulate` does not. This module imports no torch, so
that the command line starts fast.
"""

import ctypes
import gc
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from time import monotonic
from types import FrameType

SETTINGS = {
    -4: 0,  # M_MMAP_MAX: large blocks come from the heap too, where they can be used again
    -1: -1,  # M_TRIM_THRESHOLD: the free end of the heap is never returned
    -2: 256 * 2**20,  # M_TOP_PAD: the heap grows by this many bytes at once; untouched pages cost nothing
}
"""Parameters of mallopt(3), numbered as in malloc.h."""


def keep_freed_memory() -> None:
    """Make this process keep freed memory for its next allocations, on Linux with glibc; elsewhere nothing happens."""
    # Other C libraries have no mallopt.
    if sys.platform == "linux" and (mallopt := getattr(ctypes.CDLL(None), "mallopt", None)) is not None:
        for parameter, value in SETTINGS.items():
            mallopt(parameter, value)


def return_freed_memory() -> None:
    """Return freed memory to the kernel. It is in pieces, so that the next large blocks cannot use all of it again."""
    if sys.platform == "linux" and (malloc_trim := getattr(ctypes.CDLL(None), "malloc_trim", None)) is not None:
        malloc_trim(0)


def collect_garbage_seldom() -> None:
    """Make Python look for unreachable cycles after 100,000 new objects, and seldom among the old ones."""
    gc.set_threshold(100_000, 50, 100)


@contextmanager
def free_cycles() -> Iterator[None]:
    """Free at the end of the block the cycles of objects that it leaves.

    With `collect_garbage_seldom`, Python finds them so late that memory may run out before.
    """
    gc.freeze()
    gc.unfreeze()  # all objects are in the old generation now, so that those of the block are found in a millisecond
    try:
        yield
    finally:
        gc.collect(1)


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
