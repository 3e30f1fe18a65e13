"""A method's own draws, estimates of availability, and iteration over local steps."""

import pytest
import torch

from rollcall.algorithms import Round, local_steps
from rollcall.algorithms.availability import Watch


def test_a_methods_own_draws_depend_on_the_seed_and_the_round():
    def draw(seed, t):
        call = Round(t, torch.tensor([0]), 0.1, torch.ones(1), seed=seed)
        return tuple(torch.rand(3, generator=call.generator()).tolist())

    draws = {(seed, t): draw(seed, t) for seed in range(3) for t in range(3)}
    assert len(set(draws.values())) == 9
    assert all(draw(*key) == numbers for key, numbers in draws.items())


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


def test_clients_stop_after_their_own_number_of_steps():
    clients = torch.tensor([7, 3, 9])
    steps = [
        (k, ids.tolist(), clients[rows].tolist()) for k, ids, rows in local_steps(clients, torch.tensor([2, 4, 1]))
    ]
    assert steps == [(0, [7, 3, 9], [7, 3, 9]), (1, [7, 3], [7, 3]), (2, [3], [3]), (3, [3], [3])]
