"""Checks of partitions, models and tasks.

Each check takes the choice and returns a remark or nothing, or raises `CheckFailed`. Its docstring is its title.
"""

from collections.abc import Sequence
from copy import deepcopy
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from rollcall.benchmark.config.choice import Choice
from rollcall.benchmark.conformance.failure import CheckFailed, twice
from rollcall.benchmark.federation.checked import check_loss, check_metrics
from rollcall.tasks import ClientData, Task
from rollcall.tasks.base import not_finite
from rollcall.tasks.partitions import Parts

LABELS = np.random.default_rng(5).integers(0, 4, size=400)
"""Labels of the samples that partitions divide."""

CLIENTS = (1, 4, 10)
STREAM = "stream(seed, PURPOSE) of tasks.streams"
SHAPES = ((1, 8, 8), (1, 28, 28), (3, 32, 32))
"""Shapes of inputs: those of digits, MNIST and CIFAR-10."""


def every_sample_once(choice: Choice) -> None:
    """every client has samples, and no sample belongs to two clients"""
    for clients in CLIENTS:
        parts: Parts = choice.build(LABELS, clients, 7)
        if len(parts.rows) != clients:
            raise CheckFailed(f"{clients} parts, one for each client", f"{len(parts.rows)} parts")
        taken = np.concatenate([np.asarray(rows) for rows in parts.rows])
        _nobody_without(parts.rows)
        if taken.dtype.kind not in "iu" or taken.min() < 0 or taken.max() >= len(LABELS):
            seen = f"{taken.dtype}, {taken.min()} to {taken.max()}"
            raise CheckFailed(f"whole numbers from 0 to {len(LABELS) - 1}", seen)
        samples, counts = np.unique(taken, return_counts=True)
        if counts.max() > 1:
            seen = f"sample {samples[counts.argmax()]} at {counts.max()} clients"
            raise CheckFailed("each sample at one client", seen)
        if parts.classes.shape[0] != clients:
            raise CheckFailed(f"classes [{clients}, C]", f"{list(parts.classes.shape)}")


def _nobody_without(parts: Sequence[Any]) -> None:
    """Fail if a client has no samples."""
    for client, rows in enumerate(parts):
        if len(rows) == 0:
            raise CheckFailed("a sample for every client", f"client {client} of {len(parts)} has none")


def same_partition(choice: Choice) -> None:
    """the same seed gives the same partition, without global random generators, and labels are not changed"""
    labels = LABELS.copy()
    one, other = twice(lambda: choice.build(labels, 4, 7), STREAM)
    if not np.array_equal(labels, LABELS):
        raise CheckFailed("labels not to change; work on labels.copy()", "they were modified")
    if any(not np.array_equal(a, b) for a, b in zip(one.rows, other.rows, strict=True)):
        raise CheckFailed(f"random numbers from {STREAM}", "two partitions of one seed differ")


def logits(choice: Choice) -> str:
    """the network maps inputs [n, ...] to finite logits [n, classes]"""
    network, shape = _fitting(choice)
    for n in (1, 5):
        out = _run(network, _inputs(n, shape))
        if not isinstance(out, Tensor) or out.shape != (n, 10):
            seen = list(out.shape) if isinstance(out, Tensor) else type(out).__name__
            raise CheckFailed(f"logits [{n}, 10] for {n} inputs {list(shape)} of 10 classes", str(seen))
        if not out.isfinite().all():
            raise CheckFailed("finite logits", f"{out.flatten()[:4].tolist()}")
    return f"inputs {list(shape)}"


def same_network(choice: Choice) -> None:
    """a network draws its weights from torch's generator only, and its output for a sample from the input only"""
    (one, shape), (other, _) = _fitting(choice), _fitting(choice)
    for (name, a), b in zip(one.named_parameters(), other.parameters(), strict=True):
        if not torch.equal(a, b):
            raise CheckFailed(
                "initial weights from torch (nn.init), seeded by the suite", f"{name} differs in two draws"
            )
    x = _inputs(5, shape)
    copy = x.clone()
    one.eval()
    first, second = twice(lambda: _run(one, x), "nothing in `eval` mode: forward must be a function of the input")
    if not torch.equal(x, copy):
        raise CheckFailed("inputs not to change; avoid in-place operations", "they were modified")
    single = torch.cat([_run(one, x[row : row + 1]) for row in range(5)])
    if not torch.allclose(first, second) or not torch.allclose(first, single, rtol=1e-4, atol=1e-5):
        raise CheckFailed("the same logits for a sample alone and in a batch", "different logits")


def task_and_data(choice: Choice) -> None:
    """the task and its data fit together: every client has samples, no sample has two clients, values are finite"""
    task, data = _task(choice)
    for split, columns in data.splits.items():
        if len({len(column) for column in columns}) != 1:
            raise CheckFailed(f"columns of equal length in {split}", str([len(column) for column in columns]))
    samples = len(data.splits["train"][0])
    parts = [np.asarray(data.parts[client]) for client in range(data.clients)]
    _nobody_without(parts)
    rows = np.concatenate(parts)
    if len(np.unique(rows)) < len(rows) or rows.max() >= samples:
        raise CheckFailed(f"each of the {samples} training samples at one client", "a sample at two clients, or none")
    for split, columns in data.splits.items():
        bad = not_finite(task.eval(), split, columns)
        if bad:
            raise CheckFailed("samples with finite values, or finite losses of samples without", bad)
    batch = _batch(data, 3)
    check_metrics(task, task.metrics(batch), batch)
    check_loss(task, task.loss(batch), batch)


def mean_loss(choice: Choice) -> None:
    """the loss of a batch is the mean of the losses of its samples, and finite"""
    task, data = _task(choice)
    for n in (1, 2, 5):
        batch = _batch(data, n)
        with torch.no_grad():
            together = task.loss(batch)
            singles = torch.stack([task.loss(tuple(c[i : i + 1] for c in batch)) for i in range(len(batch[0]))])
        if not together.isfinite():
            raise CheckFailed("a finite loss", f"{together.item()}; look for log(0), a division by 0, or bad inputs")
        if not torch.allclose(together.double(), singles.double().mean(), rtol=1e-4, atol=1e-6):
            raise CheckFailed(
                f"the mean over samples, {singles.mean().item():.6g}; use .mean(), not .sum()",
                f"{together.item():.6g} for {len(batch[0])} samples",
            )


def pure_loss(choice: Choice) -> None:
    """the loss is a function of parameters and batch: nothing is changed, nothing is drawn"""
    task, data = _task(choice)
    batch = _batch(data, 4)
    before = deepcopy([*task.state_dict().values(), *batch])
    first, second = twice(lambda: task.loss(batch).detach(), "nothing: the loss is a function of its inputs")
    if any(not _same(a, b) for a, b in zip(before, [*task.state_dict().values(), *batch], strict=True)):
        raise CheckFailed("parameters, buffers and the batch not to change", "one of them was modified in place")
    if not torch.equal(first, second):
        raise CheckFailed("the same loss twice", f"{first.item()} and {second.item()}")


def same_task(choice: Choice) -> None:
    """the same seed gives the same data and initial model, without global random generators"""
    (one, data), (other, again) = twice(lambda: _task(choice), f"{STREAM}, and torch_stream for the initial model")
    for a, b in zip(one.parameters(), other.parameters(), strict=True):
        if not torch.equal(a, b):
            raise CheckFailed("the initial model inside `with torch_stream(seed, 'init')`", "two initial models differ")
    for split in data.splits:
        if any(not _same(a, b) for a, b in zip(data.splits[split], again.splits[split], strict=True)):
            raise CheckFailed(f"random numbers from {STREAM}", f"two draws of the split {split} differ")


def _same(one: Tensor, other: Tensor) -> bool:
    """Whether two tensors are equal, where NaN equals NaN: it may stand for a missing value."""
    return one.shape == other.shape and bool(((one == other) | (one.isnan() & other.isnan())).all())


def _fitting(choice: Choice) -> tuple[nn.Module, tuple[int, ...]]:
    """A network for 10 classes, and the first shape of inputs that it accepts."""
    for shape in SHAPES:
        try:
            with torch.random.fork_rng(devices=[]):
                torch.manual_seed(1)
                return choice.build(shape, 10), shape
        except ValueError as error:
            refusal = str(error)
    raise CheckFailed(f"a network for inputs of one of the shapes {[list(shape) for shape in SHAPES]}", refusal)


def _inputs(n: int, shape: tuple[int, ...]) -> Tensor:
    return torch.randn(n, *shape, generator=torch.Generator().manual_seed(2))


def _run(network: nn.Module, inputs: Tensor) -> Any:
    network.eval()
    with torch.no_grad():
        return network(inputs)


def _task(choice: Choice) -> tuple[Task, ClientData]:
    made = choice.build(3)
    if len(made) != 2 or not isinstance(made[0], Task) or not isinstance(made[1], ClientData):
        raise CheckFailed(
            "a pair (rollcall.tasks.Task, rollcall.tasks.ClientData)",
            f"({', '.join(type(one).__name__ for one in made)})",
        )
    return made


def _batch(data: ClientData, n: int) -> tuple[Tensor, ...]:
    return tuple(column[:n] for column in data.splits["train"])
