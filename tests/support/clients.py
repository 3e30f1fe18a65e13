"""The local work of clients with quadratic losses, one client and one step after another."""

import torch


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
