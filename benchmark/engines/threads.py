"""Threads: how many compute side by side must not show in a result."""

from collections.abc import Iterator
from contextlib import contextmanager

import torch


@contextmanager
def kernels_of_one_thread() -> Iterator[int]:
    """Run every kernel on one thread; yields how many threads torch may use, for work that is shared out among them.

    A kernel that shares a sum among threads adds in another order, and its result changes in the last digit.
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
    """For a new thread that computes: both are a thread's own settings."""
    torch.set_num_threads(1)
    torch.set_grad_enabled(False)
