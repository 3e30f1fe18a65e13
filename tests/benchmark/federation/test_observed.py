"""Observed work returns what the engine returns, and counts gradients: against counts by hand."""

import numpy as np
import torch

from benchmark.conformance.subject import Quadratics
from benchmark.federation.observed import Observed

CLIENTS = torch.tensor([0, 2])


def quadratics():
    u, h = torch.tensor([[1.0], [2.0], [4.0]]), torch.tensor([1.0, 2.0, 0.5])
    return Quadratics(u, h, torch.from_numpy(np.array([3, 1, 2])), 0.1)


def test_gradients_and_losses_are_counted_and_passed_on():
    observed, x = Observed(quadratics()), torch.zeros(2, 1)
    gradients, losses = observed.gradients(CLIENTS, x, 0)
    assert gradients.tolist() == [[-1.0], [-2.0]]
    assert losses.tolist() == [0.5, 4.0]
    assert observed.gradient_count == 2
    held_out = observed.losses(CLIENTS[1:], x[1:], "test")
    assert observed.gradient_count == 2  # a loss on held-out samples needs no gradient
    assert [call.tolist() for call in observed.loss_calls] == [[0.5, 4.0], held_out.tolist()]


def test_local_sgd_counts_the_steps_of_each_client():
    observed, x = Observed(quadratics()), torch.zeros(2, 1)
    assert torch.equal(observed.sgd(CLIENTS, x), quadratics().sgd(CLIENTS, x))
    assert observed.gradient_count == 3 + 2
    assert observed.steps == 3
    assert observed.steps_of(CLIENTS).tolist() == [3, 2]
