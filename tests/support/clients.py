"""The local work of clients with quadratic losses, one client and one step after another; and rounds without the suite."""

import numpy as np
import torch

from rollcall.algorithms import Round


class Clients:
    """F_i(x) = 0.5 h_i ||x - u_i||^2, whose client i takes K_i gradient steps at the rate eta, with momentum."""

    def __init__(self, u, h, K, eta, momentum=0.0):
        self.u, self.h = torch.as_tensor(u), torch.as_tensor(h)
        self.K, self.eta, self.momentum = torch.as_tensor(K).expand(len(self.u)), eta, momentum

    @property
    def steps(self):
        return int(self.K.max())

    def steps_of(self, clients):
        return self.K[clients]

    def gradients(self, clients, x, step):
        away, h = x - self.u[clients], self.h[clients]
        return h[:, None] * away, 0.5 * h * away.square().sum(dim=1)

    def losses(self, clients, x, split):
        return self.gradients(clients, x, 0)[1]

    def sgd(self, clients, start, *, scale=None, correct=None):
        ends = start.clone()
        for row, i in enumerate(clients.tolist()):
            velocity = torch.zeros_like(ends[row])
            for _ in range(int(self.K[i])):
                slope = self.h[i] * (ends[row] - self.u[i]) + (0 if correct is None else correct[row])
                velocity = self.momentum * velocity + slope
                ends[row] = ends[row] - self.eta * (1 if scale is None else scale[row]) * velocity
        return ends


def rounds_of(method, u, h, active, K, eta, *, alpha=None, start=None, momentum=0.0, weighted=False, **known):
    """Run a method without the suite; after each round: what `round` returned, the server's model [d] and the state.

    Args:
        active: ids of the active clients, round by round.
        eta: the local rate, or a function of the round.
        alpha: by default equal weights.
        start: by default 0.
        known: oracle knowledge: [m], or a row for each round [T, m].
    """
    m = len(u)
    x = torch.zeros(u.shape[1], dtype=torch.float64) if start is None else start
    alpha = torch.as_tensor(np.full(m, 1 / m) if alpha is None else alpha, dtype=torch.float64)
    known = {name: torch.as_tensor(value, dtype=torch.float64) for name, value in known.items()}
    state = method.init(x, m)
    for t, A in enumerate(active):
        lr = eta(t) if callable(eta) else eta
        told = {name: value[t] if value.ndim == 2 else value for name, value in known.items()}
        call = Round(t, torch.as_tensor(A), lr, alpha, weighted=weighted, **told)
        update, state = method.round(state, x, call, Clients(u, h, K, lr, momentum))
        x = x if update is None else x + update
        yield update, x, state
