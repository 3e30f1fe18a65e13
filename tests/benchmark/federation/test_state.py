"""States as buffers: a checkpoint brings its own number of rows; a state that cannot fit in memory is refused."""

from dataclasses import dataclass, field, replace

import numpy as np
import pytest
import torch
from torch import Tensor

from rollcall import SettingError, simulate
from rollcall.algorithms import Rows
from rollcall.benchmark.federation.state import StateBuffers, refuse_what_cannot_fit


@dataclass(frozen=True)
class Outer:
    rows: Rows
    dense: Tensor


def outer(*clients):
    """Five clients, of which these have taken part."""
    these, news = torch.tensor(clients, dtype=torch.int64), torch.arange(2.0 * len(clients)).view(-1, 2)
    return Outer(Rows.begin(torch.full((2,), -1.0), 5).put(these, news), torch.ones(5, 3))


@pytest.mark.parametrize("already", [(), (0, 1, 2, 3)])
def test_a_checkpoint_brings_its_own_number_of_rows(already):
    saved = StateBuffers(outer(1, 4)).state_dict()
    buffers = StateBuffers(replace(outer(*already), dense=torch.zeros(5, 3)))
    buffers.load_state_dict(saved)
    assert buffers.get().rows.values.tolist() == [[-1, -1], [0, 1], [2, 3]]
    assert buffers.get().rows.place.tolist() == [0, 1, 0, 0, 2]
    assert buffers.get().dense.tolist() == [[1] * 3] * 5


@dataclass(frozen=True, kw_only=True)
class Named:
    """Fields with names that modules have, by keyword, and one that follows from another."""

    type: Tensor
    get: Rows
    sum: float = field(init=False)

    def __post_init__(self):
        object.__setattr__(self, "sum", self.type.sum().item())


def test_fields_may_have_any_names():
    buffers = StateBuffers(Named(type=torch.ones(2), get=outer(1).rows))
    buffers.set(Named(type=torch.tensor([2.0, 3.0]), get=outer(1, 4).rows))
    state = buffers.get()
    assert (state.type.tolist(), state.get.place.tolist(), state.sum) == ([2.0, 3.0], [0, 1, 0, 0, 2], 5.0)


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


def test_the_error_gives_the_sizes_in_gib(monkeypatch):
    machine(monkeypatch, 3 * 2**30)
    two = replace(outer(), dense=torch.empty(2**29, device="meta"))  # GiB, in float32
    with pytest.raises(
        SettingError, match=r"its state needs 4\.0 GiB \(for two rounds\), and the machine has 3\.0 GiB"
    ):
        refuse_what_cannot_fit([two], "mine", 7, 5, "cpu")
