"""Samples that clients hold but do not train on, such as a validation split."""

from collections.abc import Mapping
from dataclasses import dataclass
from math import nan

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor

from rollcall.benchmark.engines.flat_task import FlatTask
from rollcall.tasks import ClientData, Samples
from rollcall.tasks.base import Holdings


@dataclass(frozen=True)
class HeldOut:
    """A split that the clients hold but do not train on.

    Attributes:
        samples: of the split, on the device of the work.
        holdings: the rows of each client.
    """

    samples: Samples
    holdings: Holdings


def held_out_splits(data: ClientData, device: torch.device) -> dict[str, HeldOut]:
    """The splits besides `train` whose samples belong to clients, by name."""
    splits = {}
    for name, samples in data.splits.items():
        owner = None if name == "train" else data.owner(name)
        if owner is not None:
            rows, sizes = owner.argsort(kind="stable"), np.bincount(owner, minlength=data.clients)
            splits[name] = HeldOut(tuple(column.to(device) for column in samples), Holdings(rows, sizes))
    return splits


@torch.no_grad()
def held_out_losses(
    model: FlatTask,
    splits: Mapping[str, HeldOut],
    clients: Int[Tensor, "a"],
    x: Float[Tensor, "a d"],
    split: str,
) -> Float[Tensor, "a"]:
    """The loss of each client's model on its samples of a split: see `rollcall.algorithms.LocalWork.losses`.

    Clients are computed one after another, in evaluation mode. The loss of a client without samples is NaN.

    Raises:
        ValueError: the clients hold no samples of this split.
    """
    if split not in splits:
        if not splits:
            raise ValueError(f"losses: {split!r} is not allowed; the clients of this task hold out no samples")
        raise ValueError(f"losses: {split!r} is not allowed with this task; must be {', '.join(splits)}")
    samples, holdings = splits[split].samples, splits[split].holdings
    losses = x.new_full((len(clients),), nan)
    loaded = False
    training = model.task.training
    model.task.eval()
    for row, client in enumerate(clients.tolist()):
        if not holdings.sizes[client]:  # the loss of no samples may be anything, or raise an error
            continue
        if not loaded or x.stride(0):  # stride 0: all clients have the same model, which is loaded once
            model.move(x[row])
            loaded = True
        client_rows = torch.from_numpy(holdings[client]).to(x.device)
        losses[row] = model.task.loss(tuple(column.index_select(0, client_rows) for column in samples))
    model.task.train(training)
    return losses
