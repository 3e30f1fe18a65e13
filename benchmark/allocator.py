"""The memory settings of a process: those of the C library's allocator (malloc), and of Python's garbage collector.

By default glibc returns a large block to the kernel as soon as it is freed. Every evaluation and every local step then
gets fresh pages, which the kernel must clear first. Keeping freed memory avoids this cost.

Python looks for unreachable cycles of objects after every 700 new objects. Importing torch and Lightning creates a
million, and a quarter of the time of the imports goes into these searches.

The settings belong to a whole process. The command line and the Ray workers set them; `simulate` does not. This module
imports no torch, so that the command line starts fast.
"""

import ctypes
import gc
import sys
from collections.abc import Iterator
from contextlib import contextmanager

SETTINGS = {
    -4: 0,  # M_MMAP_MAX: large blocks come from the heap too, where they can be used again
    -1: -1,  # M_TRIM_THRESHOLD: the free end of the heap is never returned
    -2: 256 * 2**20,  # M_TOP_PAD: the heap grows by this many bytes at once; untouched pages cost nothing
}
"""Parameters of mallopt(3), numbered as in malloc.h."""


def keep_freed_memory() -> bool:
    """Make this process keep freed memory for its next allocations.

    Returns:
        Whether it took effect. It does on Linux with glibc; elsewhere nothing happens.
    """
    if sys.platform != "linux":
        return False
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)  # other C libraries do not have it
    return mallopt is not None and all(mallopt(parameter, value) == 1 for parameter, value in SETTINGS.items())


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
