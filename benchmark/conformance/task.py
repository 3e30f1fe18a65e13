"""Checks of partitions, models and tasks.

Each check takes the choice and returns a remark or nothing, or raises `CheckFailed`. Its docstring is its title.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from rollcall.benchmark.config.choice import Choice
from rollcall.benchmark.conformance.failure import CheckFailed, alike, expect, twice, unchanged
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
        expect(len(parts.rows) == clients, f"{clients} parts, one for each client", f"{len(parts.rows)} parts")
        taken = np.concatenate([np.asarray(rows) for rows in parts.rows])
        _nobody_without(parts.rows)
        valid = taken.dtype.kind in "iu" and taken.min() >= 0 and taken.max() < len(LABELS)
        expect(valid, f"whole numbers from 0 to {len(LABELS) - 1}", f"{taken.dtype}, {taken.min()} to {taken.max()}")
        samples, counts = np.unique(taken, return_counts=True)
        seen = f"sample {samples[counts.argmax()]} at {counts.max()} clients"
        expect(counts.max() == 1, "each sample at one client", seen)
        shape = parts.classes.shape
        expect(shape[0] == clients, f"classes [{clients}, C]", list(shape))


def _nobody_without(parts: Sequence[Any]) -> None:
    """Fail if a client has no samples."""
    for client, rows in enumerate(parts):
        expect(len(rows) > 0, "a sample for every client", f"client {client} of {len(parts)} has none")


def same_partition(choice: Choice) -> None:
    """the same seed gives the same partition, without global random generators, and labels are not changed"""
    labels = LABELS.copy()
    with unchanged("labels not to change; work on labels.copy()", labels):
        twice(lambda: list(choice.build(labels, 4, 7).rows), STREAM, "two partitions of one seed differ")


def logits(choice: Choice) -> str:
    """the network maps inputs [n, ...] to finite logits [n, classes]"""
    network, shape = _fitting(choice)
    for n in (1, 5):
        out = _run(network, _inputs(n, shape))
        seen = list(out.shape) if isinstance(out, Tensor) else type(out).__name__
        expect(seen == [n, 10], f"logits [{n}, 10] for {n} inputs {list(shape)} of 10 classes", seen)
        expect(out.isfinite().all(), "finite logits", out.flatten()[:4].tolist())
    return f"inputs {list(shape)}"


def same_network(choice: Choice) -> None:
    """a network draws its weights from torch's generator only, and its output for a sample from the input only"""
    (one, shape), (other, _) = _fitting(choice), _fitting(choice)
    for (name, a), b in zip(one.named_parameters(), other.parameters(), strict=True):
        expected = "initial weights from torch (nn.init), seeded by the suite"
        expect(torch.equal(a, b), expected, f"{name} differs in two draws")
    x = _inputs(5, shape)
    with unchanged("inputs not to change; avoid in-place operations", x):
        first, second = twice(lambda: _run(one, x), "nothing in `eval` mode: forward must be a function of the input")
    single = torch.cat([_run(one, x[row : row + 1]) for row in range(5)])
    same = torch.allclose(first, second) and torch.allclose(first, single, rtol=1e-4, atol=1e-5)
    expect(same, "the same logits for a sample alone and in a batch", "different logits")


def task_and_data(choice: Choice) -> None:
    """the task and its data fit together: every client has samples, no sample has two clients, values are finite"""
    task, data = _task(choice)
    for split, columns in data.splits.items():
        lengths = [len(column) for column in columns]
        expect(len(set(lengths)) == 1, f"columns of equal length in {split}", lengths)
    samples = len(data.splits["train"][0])
    parts = [np.asarray(data.parts[client]) for client in range(data.clients)]
    _nobody_without(parts)
    rows = np.concatenate(parts)
    once = len(np.unique(rows)) == len(rows) and rows.max() < samples
    expect(once, f"each of the {samples} training samples at one client", "a sample at two clients, or none")
    for split, columns in data.splits.items():
        bad = not_finite(task.eval(), split, columns)
        expect(not bad, "samples with finite values, or finite losses of samples without", bad)
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
        seen = f"{together.item()}; look for log(0), a division by 0, or bad inputs"
        expect(together.isfinite(), "a finite loss", seen)
        expect(
            torch.allclose(together.double(), singles.double().mean(), rtol=1e-4, atol=1e-6),
            f"the mean over samples, {singles.mean().item():.6g}; use .mean(), not .sum()",
            f"{together.item():.6g} for {len(batch[0])} samples",
        )


def pure_loss(choice: Choice) -> None:
    """the loss is a function of parameters and batch: nothing is changed, nothing is drawn"""
    task, data = _task(choice)
    batch = _batch(data, 4)
    values = [*task.state_dict().values(), *batch]
    with unchanged("parameters, buffers and the batch not to change", values, seen="one of them was modified in place"):
        one, other = twice(lambda: task.loss(batch).detach(), "nothing: the loss is a function of its inputs")
    expect(torch.equal(one, other), "the same loss twice", f"{one.item()} and {other.item()}")


def same_task(choice: Choice) -> None:
    """the same seed gives the same data and initial model, without global random generators"""
    (one, data), (other, again) = twice(lambda: _task(choice), f"{STREAM}, and torch_stream for the initial model")
    same = alike(list(one.parameters()), list(other.parameters()))
    expect(same, "the initial model inside `with torch_stream(seed, 'init')`", "two initial models differ")
    for split, columns in data.splits.items():
        same = alike(list(columns), list(again.splits[split]))
        expect(same, f"random numbers from {STREAM}", f"two draws of the split {split} differ")


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
    pair = len(made) == 2 and isinstance(made[0], Task) and isinstance(made[1], ClientData)
    seen = f"({', '.join(type(one).__name__ for one in made)})"
    expect(pair, "a pair (rollcall.tasks.Task, rollcall.tasks.ClientData)", seen)
    return made


def _batch(data: ClientData, n: int) -> tuple[Tensor, ...]:
    return tuple(column[:n] for column in data.splits["train"])
