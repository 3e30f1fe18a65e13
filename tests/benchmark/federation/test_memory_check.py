"""A run whose state cannot fit in memory is refused before it begins, against sizes written out."""

from types import SimpleNamespace

import numpy as np
import pytest
import torch

from rollcall import SettingError, simulate
from rollcall.algorithms import ALGORITHMS
from rollcall.benchmark.federation.state import refuse_what_cannot_fit

FULL = {"task": {"name": "quadratic", "targets": np.zeros((40, 30))}, "numerics": {"dtype": "float64"}, "rounds": 3}
ROW = 30 * 8  # bytes


def machine(patch, size):
    """A machine of so many bytes."""
    patch.setattr("os.sysconf", {"SC_PAGE_SIZE": 1, "SC_PHYS_PAGES": size}.__getitem__)


def test_a_state_that_cannot_fit_is_refused(monkeypatch):
    trial = FULL | {"algorithm": "fedpbc", "participation": {"name": "uniform", "per_round": 4}}
    machine(monkeypatch, 2 * 40 * ROW)
    simulate(trial)
    machine(monkeypatch, 2 * 40 * ROW - 1)
    with pytest.raises(SettingError) as refusal:
        simulate(trial)
    assert str(refusal.value) == (
        "algorithm.name: 'fedpbc' is not allowed with 40 clients and 30 parameters: its state needs 0.0 GiB (for two "
        "rounds), and the machine has 0.0 GiB; must be a method that stores less, or fewer clients"
    )


@pytest.mark.parametrize(
    ("gpu", "host", "device", "complaint"),
    [
        (2 * 40 * ROW, 0, "auto", None),
        (2 * 39 * ROW, 10**6, "auto", "the GPU has .* fewer clients$"),
        (0, 2 * 40 * ROW, "cpu", None),
        (10**6, 2 * 39 * ROW, "cpu", "the machine has"),
    ],
)
def test_on_a_machine_with_a_gpu(monkeypatch, gpu, host, device, complaint):
    machine(monkeypatch, host)
    monkeypatch.setattr("torch.cuda.is_available", lambda: True)
    monkeypatch.setattr("torch.cuda.get_device_properties", lambda index: SimpleNamespace(total_memory=gpu))
    state = ALGORITHMS["fedpbc"]().init(torch.empty(30, dtype=torch.float64, device="meta"), 40)
    if complaint is None:
        refuse_what_cannot_fit([state], "fedpbc", 30, 40, device)
    else:
        with pytest.raises(SettingError, match=complaint):
            refuse_what_cannot_fit([state], "fedpbc", 30, 40, device)
