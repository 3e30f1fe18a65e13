"""Kernels of one thread: the number of threads is one inside, and restored after it, also after an error."""

import threading

import pytest
import torch

from rollcall.benchmark.engines.threads import kernels_of_one_thread, prepare_thread


@pytest.mark.parametrize("threads", [1, 2])
def test_the_number_of_threads_is_restored(threads):
    torch.set_num_threads(threads)
    try:
        with kernels_of_one_thread() as allowed:
            assert (allowed, torch.get_num_threads()) == (threads, 1)
        assert torch.get_num_threads() == threads
        with pytest.raises(ZeroDivisionError), kernels_of_one_thread():
            _ = 1 / 0
        assert torch.get_num_threads() == threads
    finally:
        torch.set_num_threads(1)


def test_a_worker_thread_computes_no_gradients():
    seen = []

    def work():
        prepare_thread()
        seen.append((torch.get_num_threads(), torch.is_grad_enabled()))

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert seen == [(1, False)]
    assert torch.is_grad_enabled()
