"""The clustered Synthetic data of [CAF]'s released code: two clusters of clients, one of which has noisier labels."""

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from rollcall.tasks.base import ClientData, natural_clients, need_least
from rollcall.tasks.leaf_synthetic import SoftmaxRegression
from rollcall.tasks.streams import stream, torch_stream

DIMENSION = 10


class LogisticRegression(SoftmaxRegression):
    """Logistic loss of one linear logit z: the cross-entropy of the two logits (0, z)."""

    def __init__(self, ridge: float) -> None:
        super().__init__(ridge, DIMENSION, 1)

    def forward(self, features: Float[Tensor, "n d"]) -> Float[Tensor, "n 2"]:
        """Logits (0, z)."""
        z = self.logits(features)
        return torch.cat([torch.zeros_like(z), z], dim=1)


def synthetic_clustered(
    seed: int, *, clients: int = 24, train: int = 50, test: int = 150, flipped: float = 0.2, ridge: float = 0.0
) -> tuple[LogisticRegression, ClientData]:
    """Logistic regression on x ~ N(0, I) in ten dimensions with labels 1 with probability p = sigmoid(theta . x).

    theta ~ N(0, I) is drawn once. A random half of the clients has labels with probability (1 - flipped) p + flipped (1
    - p) instead. The defaults are those of the experiment that [CAF]'s released code scripts. There all seeds share one
    draw of the data; here a seed draws the data, too.

    Args:
        seed: of all draws.
        clients: m, the number of clients.
        train: training samples of each client.
        test: test samples of each client.
        flipped: share of labels that are flipped in the second cluster.
        ridge: weight of the penalty ridge/2 ||x||^2.

    Raises:
        ValueError: an option out of range.
    """
    need_least(1, clients=clients, train=train, test=test)
    need_least(0, ridge=ridge)
    if not 0 <= flipped <= 1:
        raise ValueError(f"flipped: {flipped} is not allowed; must be in [0, 1]")
    draw = stream(seed, "clustered")
    theta = draw.standard_normal(DIMENSION)
    noise = np.where(draw.permutation(clients) < clients // 2, 0.0, flipped)
    x = draw.standard_normal((clients, train + test, DIMENSION))
    p = 1 / (1 + np.exp(-x @ theta))
    p += noise[:, None] * (1 - 2 * p)
    y = (draw.random(p.shape) < p).astype(np.int64)
    rows = np.arange(y.size).reshape(y.shape)
    with torch_stream(seed, "init"):
        task = LogisticRegression(ridge)
    columns = [x.reshape(-1, DIMENSION), y.ravel()]
    return task, natural_clients(columns, {"train": [*rows[:, :train]], "test": [*rows[:, train:]]}, 2, seed)
