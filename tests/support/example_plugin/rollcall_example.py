"""A method and a partition that an installed package offers to Rollcall."""

from dataclasses import dataclass

import numpy as np

from rollcall.algorithms import Memoryless


@dataclass(frozen=True)
class SquareRoot(Memoryless):
    """Weights each update by p_i to the power of -1/2."""

    power: float = 0.5
    requires = ("probability",)

    def round(self, state, x, call, work):
        A = call.active
        if len(A) == 0:
            return None, state
        D = work.sgd(A, x.expand(len(A), -1)) - x
        weights = call.probability[A] ** -self.power / call.clients
        return weights @ D, state


def every_nth(labels, clients, seed):
    """Sample n belongs to client n mod m."""
    return [np.arange(client, len(labels), clients) for client in range(clients)]
