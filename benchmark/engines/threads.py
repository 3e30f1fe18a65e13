"""Threads: the number of threads must not change a result."""

from collections.abc import Iterator
from contextlib import contextmanager

import torch


@contextmanager
def kernels_of_one_thread() -> Iterator[int]:
    """Run every kernel on one thread. Yields how many threads torch may use, for work that is divided among them.

    A kernel that divides a sum among threads adds in another order, which changes the last digit of its result. The
    number of threads is restored at the end.
    """
    threads = torch.get_num_threads()
    if threads == 1:
        yield 1
        return
    torch.set_num_threads(1)
    try:
        yield threads
    finally:
        torch.set_num_threads(threads)


def prepare_thread() -> None:
    """Initialise a new worker thread; torch keeps both settings for each thread separately."""
    torch.set_num_threads(1)
    torch.set_grad_enabled(False)
