"""The C library's allocator, told to keep what is freed.

glibc takes a large block from the kernel and hands it back as soon as it is freed, so that every evaluation and every
local step meets fresh pages, each of which the kernel must first clear.
"""

import ctypes
import sys

SETTINGS = {
    -4: 0,  # M_MMAP_MAX: large blocks come from the heap too, where they can be used again
    -1: -1,  # M_TRIM_THRESHOLD: the heap's free end is never handed back
    -2: 256 * 2**20,  # M_TOP_PAD: the heap grows by so many bytes at once; pages that are not touched cost nothing
}
"""Parameters of mallopt(3), numbered as in malloc.h."""


def keep_freed_memory() -> bool:
    """From now on this process keeps freed memory for its next allocations.

    Returns:
        Whether it took effect: on Linux with glibc. Elsewhere nothing is done.
    """
    if sys.platform != "linux":
        return False
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)  # other C libraries have none
    return mallopt is not None and all(mallopt(parameter, value) == 1 for parameter, value in SETTINGS.items())
