"""States as buffers: how many rows of clients a checkpoint brings; then runs that store few of many."""

from dataclasses import dataclass, replace

import pytest
import torch
from torch import Tensor

from rollcall.algorithms import Rows
from rollcall.benchmark.federation.state import StateBuffers


def stored_rows(state):
    """The buffers with a row for each client that has taken part, and one row for all others."""
    return [part.get_buffer("values") for part in state.modules() if getattr(part, "_kind", None) is Rows]


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
    assert [len(part) for part in stored_rows(buffers)] == [3]
