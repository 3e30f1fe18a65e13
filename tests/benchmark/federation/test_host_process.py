"""The host process: `simulate` restores what it changes; only the command line and Ray workers set malloc."""

import logging
import os
import platform
import signal
import subprocess
import sys
import threading
import warnings

import numpy as np
import pytest
import torch
from lightning.pytorch import Callback

from rollcall import simulate
from rollcall.benchmark.process import Interrupted

pytestmark = pytest.mark.full

TRIAL = {
    "task": {"name": "digits", "clients": 4},
    "algorithm": "fedavg",
    "local": {"steps": 2, "batch_size": 16},
    "rounds": 3,
}


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


@pytest.mark.parametrize("own_stop", [True, False])
@pytest.mark.parametrize("error", [RuntimeError("failed"), KeyboardInterrupt(), Interrupted("stopped")], ids=repr)
def test_a_run_that_fails_restores_the_process(error, own_stop):
    before = process()
    with pytest.raises((RuntimeError, Interrupted, KeyboardInterrupt, SystemExit)):
        simulate(TRIAL, callbacks=[Raise(error)], stop=(lambda: False) if own_stop else None)
    assert process() == before


# 64 MiB are taken, touched and freed ten times: 16,384 pages of 4 KiB each time, unless freed memory is kept.
FAULTS = """
import resource, sys
import numpy as np

def faults():
    np.ones(2**23)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    for _ in range(10):
        np.ones(2**23)
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before
"""

SIMULATE_THEN_COMMAND_LINE = """
from rollcall import simulate
simulate({"task": {"name": "quadratic", "targets": [[0.0], [1.0]]}, "algorithm": "fedavg", "rounds": 2})
after_simulate = faults()
from rollcall.cli import main
sys.argv = ["rollcall", "--help"]
try:
    main()
except SystemExit:
    pass
print(after_simulate, faults())
"""


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="another C library")
def test_the_command_line_keeps_freed_memory_and_simulate_does_not(tmp_path):
    code = FAULTS + SIMULATE_THEN_COMMAND_LINE
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=tmp_path, check=True)
    left, kept = map(int, done.stdout.split()[-2:])
    assert left > 300  # 163,840, or 320 if the kernel uses pages of 2 MiB
    assert kept < 50
