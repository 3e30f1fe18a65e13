"""A run whose state cannot fit in memory is refused before it begins, against sizes written out."""

import numpy as np
import pytest

from rollcall import SettingError, simulate

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
