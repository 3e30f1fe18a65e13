"""A file of a user's own, with a choice of every kind: used by tests from the command line and from Python."""

import numpy as np
import torch
from torch import nn

from rollcall.algorithms import FedAvg
from rollcall.participation import Participation


def network(shape, classes, *, width=8):
    """A small network."""
    inputs = int(np.prod(shape))
    return nn.Sequential(nn.Flatten(), nn.Linear(inputs, width), nn.Tanh(), nn.Linear(width, classes))


def stripes(labels, clients, seed, *, offset: int = 0):
    """Sample n belongs to client (n + offset) mod m."""
    return [np.flatnonzero((np.arange(len(labels)) + offset) % clients == client) for client in range(clients)]


def ramp(population, *, low: float = 0.2):
    """Probabilities from `low` to 1 with equal steps."""
    return np.linspace(low, 1.0, population.clients)


class Alternating(Participation):
    """Clients of even id in even rounds, those of odd id in odd rounds."""

    def __init__(self, population, *, first: int = 0):
        self.clients = population.clients
        self.first = first

    def active(self, t):
        return np.arange((t + self.first) % 2, self.clients, 2)


class SignSGD(torch.optim.Optimizer):
    """Adds lr times the sign of the update."""

    def __init__(self, params, lr, *, scale: float = 1.0):
        super().__init__(params, {"lr": lr, "scale": scale})

    @torch.no_grad()
    def step(self, closure=None):
        for group in self.param_groups:
            for x in group["params"]:
                if x.grad is not None:
                    x -= group["lr"] * group["scale"] * x.grad.sign()


def slower(t, *, rate: float = 0.5):
    """1 / (1 + rate t)."""
    return 1 / (1 + rate * t)


class Halved(FedAvg):
    """FedAvg with half of the update."""

    def round(self, state, x, call, work):
        update, state = super().round(state, x, call, work)
        return None if update is None else update / 2, state
