"""A traced function gives the same bits as the function itself."""

import pytest
import torch
from engine_rigs import WRAPS, rigs

from benchmark.engines import traced


@pytest.mark.parametrize("wrap", WRAPS)
def test_a_recording_gives_the_same_bits(wrap, monkeypatch):
    clients, found = torch.tensor([5, 4, 3]), []
    for worth in (2, 10**9):
        monkeypatch.setattr(traced, "CALLS_BEFORE_TRACING", worth)
        _, work, x = rigs(wrap=WRAPS[wrap])
        ends = [work.sgd(clients, x.expand(3, -1)) for _ in range(3)]
        found.append([*ends, *work.buffers(clients)])
        kinds = sum(len(f.traces) for f in (work.engine.of_whole_batches, work.engine.of_padded_batches))
        assert (kinds > 0) == (worth == 2)
    assert all(map(torch.equal, *found))


def test_what_was_recorded_is_played_back(monkeypatch):
    monkeypatch.setattr(traced, "CALLS_BEFORE_TRACING", 2)
    calls = []

    def slope(x):
        calls.append(len(x))
        return torch.func.grad(lambda y: (y**3).sum())(x)

    played = traced.Traced(slope)
    for n in (2, 3, 2, 2, 3, 2):
        x = torch.arange(n, dtype=torch.float64)
        assert played(x).tolist() == [3.0 * i**2 for i in range(n)]
    assert calls == [2, 3, 2, 2, 3, 3]  # twice when it is traced, then no more
    assert played(torch.tensor([2.0])).dtype == torch.float32
