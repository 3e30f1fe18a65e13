"""Estimates of availability, counted by hand."""

import pytest
import torch

from rollcall.algorithms.availability import Watch


def test_estimates_by_hand():
    seen = Watch.begin(2, torch.device("cpu"))
    assert seen.stationary.tolist() == [0.5, 0.5]
    assert seen.correlation.tolist() == [0, 0]
    for active in ([0], [0, 1], [], [0]):  # client 0: 1 1 0 1; client 1: 0 1 0 0
        seen = seen.observe(torch.tensor(active, dtype=torch.int64))
    assert seen.stationary.tolist() == pytest.approx([4 / 6, 2 / 6])
    # Client 0: from on twice, stayed once; from off once, stayed never. Client 1: from on once, stayed never; from off
    # twice, stayed once.
    assert seen.correlation.tolist() == pytest.approx([2 / 4 + 1 / 3 - 1, 1 / 3 + 2 / 4 - 1])


def test_a_client_that_begins_on_did_not_come_from_off():
    seen = Watch.begin(1, torch.device("cpu")).observe(torch.tensor([0])).observe(torch.tensor([0]))
    assert (seen.from_on.item(), seen.stayed.item(), seen.came.item()) == (1, 1, 0)
