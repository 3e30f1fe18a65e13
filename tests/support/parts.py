"""Parts of every kind but methods for `rollcall check`: sound ones, and ones that are broken in one way."""

import numpy as np
import torch
import torchmetrics
from torch import nn

from rollcall import participation as roll_calls
from rollcall.participation import Participation
from rollcall.tasks import ClientData, Task
from rollcall.tasks.metrics import OverClients
from rollcall.tasks.streams import stream


class Accuracy:
    """A sound metric: counts, divided at the end."""

    def __init__(self):
        self.reset()

    def reset(self):
        self.right = self.seen = 0

    def update(self, predictions, targets):
        self.right += int((predictions.argmax(dim=1) == targets).sum())
        self.seen += len(targets)

    def compute(self):
        return {"share": self.right / self.seen, "count": np.array([self.right, self.seen])}


class OfBatches(Accuracy):
    def reset(self):
        self.values = []

    def update(self, predictions, targets):
        self.values.append((predictions.argmax(dim=1) == targets).double().mean().item())

    def compute(self):
        return np.mean(self.values)


class Remembering(Accuracy):
    def __init__(self):
        self.right = self.seen = 0

    def reset(self):
        pass


def first(values):
    return float(values[0])


of_the_first = OverClients("accuracy", first)
kappa = torchmetrics.CohenKappa("multiclass", num_classes=3)


class Halves(Participation):
    """A sound participation model: each client is available with probability 1/2."""

    def __init__(self, population):
        self.clients, self.seed = population.clients, population.seed

    def active(self, t):
        return np.flatnonzero(roll_calls.stream(self.seed, "participation", t).random(self.clients) < 0.5)

    def probability(self, t):
        return np.full(self.clients, 0.5)

    @property
    def stationary(self):
        return np.full(self.clients, 0.5)


class Descending(Halves):
    def active(self, t):
        return super().active(t)[::-1]


class Counting(Halves):
    """Draws the next numbers of a generator, whichever round is asked for."""

    def __init__(self, population):
        super().__init__(population)
        self.next = roll_calls.stream(self.seed, "participation", 0)

    def active(self, t):
        return np.flatnonzero(self.next.random(self.clients) < 0.5)


class Percent(Halves):
    def probability(self, t):
        return np.full(self.clients, 50.0)


class OverstatedNow(Halves):
    def probability(self, t):
        return np.full(self.clients, 0.6)


class OverstatedLater(Halves):
    @property
    def stationary(self):
        return np.full(self.clients, 0.6)


def percent(population):
    return np.full(population.clients, 50.0)


def overlapping(labels, clients, seed):
    return [np.array([7, 10 + client]) for client in range(clients)]


def no_classes(shape, classes):
    return nn.Sequential(nn.Flatten(), nn.Linear(int(np.prod(shape)), 2))


class Dropping(nn.Module):
    """Draws in evaluation too."""

    def __init__(self, shape, classes):
        super().__init__()
        self.layer = nn.Linear(int(np.prod(shape)), classes)

    def forward(self, x):
        return nn.functional.dropout(self.layer(x.flatten(1)), training=True)


class Slope(Task):
    """A sound task: least squares."""

    def __init__(self):
        super().__init__(lr=0.1)
        self.x = nn.Parameter(torch.zeros(2))

    def loss(self, batch):
        return self.metrics(batch)["loss"].mean()

    def metrics(self, batch):
        return {"loss": (batch[0] @ self.x - batch[1]) ** 2}


def _data(seed):
    draw = stream(seed, "points")
    columns = torch.from_numpy(draw.normal(size=(12, 2))).float(), torch.from_numpy(draw.normal(size=12)).float()
    return ClientData({"train": columns}, np.split(np.arange(12), 3), seed=seed)


def slope(seed):
    return Slope(), _data(seed)


class Unnamed(Slope):
    def metrics(self, batch):
        return {"error": super().metrics(batch)["loss"]}

    def loss(self, batch):
        return self.metrics(batch)["error"].mean()


class Summed(Slope):
    def loss(self, batch):
        return self.metrics(batch)["loss"].sum()


def unnamed(seed):
    return Unnamed(), _data(seed)


def of_three(seed):
    """Three samples in float64, as NumPy gives them; the model is in float32."""
    draw = stream(seed, "points")
    columns = torch.from_numpy(draw.normal(size=(3, 2))), torch.from_numpy(draw.normal(size=3))
    return Slope(), ClientData({"train": columns}, [np.arange(3)], seed=seed)


def idle(seed):
    """The second of three clients has no samples."""
    data = _data(seed)
    return Slope(), ClientData(data.splits, [np.arange(8), np.arange(0), np.arange(8, 12)], seed=seed)


def holed(seed):
    """Two of the test samples hold a value that is not finite."""
    data = _data(seed)
    inputs, targets = (column.clone() for column in data.splits["train"])
    inputs[3, 1], targets[5] = torch.nan, torch.inf
    return Slope(), ClientData({**data.splits, "test": (inputs, targets)}, np.split(np.arange(12), 3), seed=seed)


def summed(seed):
    return Summed(), _data(seed)
