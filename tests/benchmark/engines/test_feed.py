"""The feed of minibatches."""

import numpy as np
import torch

from rollcall.benchmark.engines import Feed
from rollcall.tasks import Minibatches, Task


class Plain(Task):
    def loss(self, batch):
        raise AssertionError

    metrics = loss


def test_only_a_task_that_augments_gets_keys():
    class Shifted(Plain):
        def augment(self, batch, keys):
            assert keys.tolist() == [[1, 2, 0], [1, 2, 1]]
            return batch[0] + 1, batch[1]

    samples = (torch.arange(12.0).reshape(4, 3), torch.arange(4.0))
    minibatches = Minibatches([np.array([0]), np.array([3, 1])], "full", seed=0)
    for task, shift in ((Plain(lr=0.1), 0), (Shifted(lr=0.1), 1)):
        x, y = Feed(task, samples, minibatches).batch(1, 2)
        assert x.tolist() == [[9 + shift, 10 + shift, 11 + shift], [3 + shift, 4 + shift, 5 + shift]]
        assert y.tolist() == [3, 1]
