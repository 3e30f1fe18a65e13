"""The host process: `simulate` restores what it changes; only the command line and Ray workers set malloc."""

import logging
import os
import signal
import sys
import threading
import warnings
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from command import rollcall
from lightning.pytorch import Callback

from rollcall import simulate
from rollcall.benchmark import process as memory
from rollcall.benchmark.process import Interrupted, keep_freed_memory

pytestmark = pytest.mark.full

TRIAL = {"task": {"name": "digits", "clients": 4}, "algorithm": "fedavg", "rounds": 3}
TRIAL |= {"local": {"steps": 2, "batch_size": 16}}


def threads_of_a_new_thread():
    seen = []
    thread = threading.Thread(target=lambda: seen.append(torch.get_num_threads()))
    thread.start()
    thread.join()
    return seen[0]


def process():
    """What a run could change in this process. Not Python's `random`: the type checker of the tests draws from it."""
    return {
        "environment": dict(os.environ),
        "folder": os.getcwd(),
        "path": list(sys.path),
        "hook": sys.excepthook,
        "numpy": str(np.random.get_state()),  # noqa: NPY002
        "numpy errors": np.geterr(),
        "torch": torch.get_rng_state().tolist(),
        "dtype": torch.get_default_dtype(),
        "gradients": (torch.is_grad_enabled(), torch.is_inference_mode_enabled(), torch.is_autocast_enabled("cpu")),
        "deterministic": torch.are_deterministic_algorithms_enabled(),
        "products": torch.get_float32_matmul_precision(),
        "cudnn": (torch.backends.cudnn.benchmark, torch.backends.cudnn.deterministic),
        "threads": (torch.get_num_threads(), threads_of_a_new_thread()),
        "warnings": list(warnings.filters),
        "loggers": {name: logging.getLogger(name).level for name in ("", "lightning", "lightning.pytorch")},
        "handlers": list(logging.getLogger().handlers),
        "signals": [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)],
    }


class Raise(Callback):
    def __init__(self, error):
        self.error = error

    def on_train_batch_end(self, trainer, federation, *_):
        raise self.error


@pytest.mark.parametrize("numerics", [{"dtype": "float64", "engine": "vectorised"}, {"dtype": "tf32"}, {"dtype": "bf16_mixed"}], ids=str)  # fmt: skip
def test_simulate_restores_the_process(numerics):
    torch.set_num_threads(2)
    trial = TRIAL | {"numerics": numerics | {"device": "cpu"}}
    simulate(trial)  # parts of torch set variables of their own when they are first imported
    try:
        before = process()
        simulate(trial)
        assert process() == before
    finally:
        torch.set_num_threads(1)


@pytest.mark.parametrize("error", [RuntimeError("failed"), KeyboardInterrupt(), Interrupted("stopped")], ids=repr)
def test_a_run_that_fails_restores_the_process(error):
    before = process()
    with pytest.raises((RuntimeError, Interrupted, KeyboardInterrupt, SystemExit)):
        simulate(TRIAL, callbacks=[Raise(error)])
    assert process() == before


def test_the_command_line_sets_malloc_and_simulate_does_not(store, capsys, monkeypatch):
    calls = []
    libc = SimpleNamespace(mallopt=lambda parameter, value: calls.append((parameter, value)))
    monkeypatch.setattr(memory, "ctypes", SimpleNamespace(CDLL=lambda _: libc))
    monkeypatch.setattr("rollcall.cli.app.keep_freed_memory", keep_freed_memory)  # which the tests leave out elsewhere
    simulate(TRIAL)
    assert calls == []
    assert rollcall(capsys, "list")[0] == 0
    assert calls == [(-4, 0), (-1, -1), (-2, 2**28)]  # M_MMAP_MAX, M_TRIM_THRESHOLD and M_TOP_PAD of malloc.h
