"""Yogi, by hand: two steps on a vector of two numbers."""

from math import sqrt

import pytest
import torch
from torch import nn

from rollcall.benchmark.federation.server_optimizers import Yogi


def test_two_steps_by_hand():
    x = nn.Parameter(torch.tensor([1.0, -2.0], dtype=torch.float64))
    optimizer = Yogi([x], lr=0.5, betas=(0.9, 0.75), eps=0.1)
    expected, m, v = [1.0, -2.0], [0.0, 0.0], [0.01, 0.01]
    for gradient in ([0.2, -0.05], [-0.04, 0.3]):
        x.grad = torch.tensor(gradient, dtype=torch.float64)
        optimizer.step()
        for i, g in enumerate(gradient):
            m[i] = 0.9 * m[i] + 0.1 * g
            v[i] -= 0.25 * g**2 * (1 if v[i] > g**2 else -1)
            expected[i] -= 0.5 * m[i] / (sqrt(v[i]) + 0.1)
        assert x.tolist() == pytest.approx(expected, rel=1e-12)
