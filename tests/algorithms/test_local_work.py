"""Iteration over local steps, by hand."""

import torch

from rollcall.algorithms import local_steps


def test_clients_stop_after_their_own_number_of_steps():
    clients = torch.tensor([7, 3, 9])
    steps = [
        (k, ids.tolist(), clients[rows].tolist()) for k, ids, rows in local_steps(clients, torch.tensor([2, 4, 1]))
    ]
    assert steps == [(0, [7, 3, 9], [7, 3, 9]), (1, [7, 3], [7, 3]), (2, [3], [3]), (3, [3], [3])]


def test_no_clients_take_no_steps():
    assert list(local_steps(torch.tensor([], dtype=torch.int64), torch.tensor([], dtype=torch.int64))) == []
