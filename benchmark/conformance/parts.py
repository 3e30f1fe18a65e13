"""Checks of participation models, probabilities, partitions, networks, tasks and metrics.

Each kind has a small use, as in a run. A use takes the choice, fails on a wrong result, and returns all results; its
docstring is the title of the check. The other check of most kinds is `reproducible`: that two uses agree.
"""

import copy
import math
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from rollcall.benchmark.config.choice import Choice
from rollcall.benchmark.conformance.failure import CheckFailed, called, expect, twice
from rollcall.benchmark.federation.checked import check_loss, check_metrics
from rollcall.participation import FromFunction, Participation, Population
from rollcall.tasks.metrics import OverClients

SEED = 3
LABELS = np.random.default_rng(5).integers(0, 4, size=400)
"""Labels of the samples that partitions divide."""

SHAPES = ((1, 8, 8), (1, 28, 28), (3, 32, 32))
"""Shapes of inputs: those of digits, MNIST and CIFAR-10."""

M, ROUNDS, SIGMAS = 12, 2000, 4.5
"""Clients and rounds of participation models; the largest distance that counts as chance, in standard errors."""


def reproducible(use: Callable[[Choice], Any]) -> Callable[[Choice], None]:
    """The check that two uses agree."""

    def check(choice: Choice) -> None:
        """equal seeds and inputs give equal results, without global random generators"""
        twice(lambda: use(choice), "stream(seed, ...) of tasks.streams or participation")

    return check


def partition(choice: Choice) -> Any:
    """every client has samples, and no sample belongs to two clients"""
    made = []
    for clients in (1, 4, 10):
        parts = called(choice.build, LABELS.copy(), clients, SEED)
        empty = [f"client {i} has none" for i, rows in enumerate(parts.rows) if not len(rows)]
        fault = parts.fault(len(LABELS), clients) or "".join(empty[:1])
        expect(not fault, "samples for every client, each at one client at most", fault)
        made.append(list(parts.rows))
    return made


def model(choice: Choice) -> Any:
    """the network gives finite logits [n, classes], for a sample alone as in a batch, and trains on one sample"""
    for shape in SHAPES:
        try:
            with torch.random.fork_rng(devices=[]):  # initial weights come from torch's generator
                torch.manual_seed(SEED)
                network: nn.Module = choice.build(shape, 10)
            break
        except ValueError as error:
            refusal = str(error)
    else:
        raise CheckFailed(f"a network for inputs of one of the shapes {[list(shape) for shape in SHAPES]}", refusal)
    network.eval()
    inputs = torch.randn(5, *shape, generator=torch.Generator().manual_seed(2))
    with torch.no_grad():
        together = called(network, inputs)
        seen = list(together.shape) if isinstance(together, Tensor) else type(together).__name__
        expect(seen == [5, 10], f"logits [5, 10] for 5 inputs {list(shape)} of 10 classes", seen)
        expect(together.isfinite().all(), "finite logits", together.flatten()[:4].tolist())
        alone = torch.cat([network(one[None]) for one in inputs])
    same = torch.allclose(together, alone, rtol=1e-4, atol=1e-5)
    expect(same, "the same logits for a sample alone and in a batch", "different logits")
    try:  # an epoch may end with one sample
        network.train()(inputs[:1])
    except ValueError as error:
        expected = "a network that trains on one sample; BatchNorm needs several: use GroupNorm, or last_batch: drop"
        raise CheckFailed(expected, error) from None
    return [*network.parameters(), together]


def task(choice: Choice) -> Any:
    """samples are finite, and the loss of a batch is the mean over its samples"""
    module, data = choice.build(SEED)
    module.eval()
    data = data.cast(next(module.parameters()).dtype)  # as in a run
    try:
        data.check(module)
    except ValueError as error:
        raise CheckFailed("samples with finite values, or finite losses of samples without", str(error)) from None
    losses = []
    state = list(module.state_dict().values())
    for n in sorted({min(n, len(data.splits["train"][0])) for n in (1, 2, 5)}):
        batch = tuple(column[:n] for column in data.splits["train"])
        check_metrics(module, module.metrics(batch), batch)
        loss = called(lambda batch, _: module.loss(batch), batch, state)
        check_loss(module, loss, batch)
        expect(loss.isfinite(), "a finite loss", f"{loss.item()}; look for log(0), a division by 0, or bad inputs")
        with torch.no_grad():
            mean = torch.stack([module.loss(tuple(column[i : i + 1] for column in batch)) for i in range(n)]).mean()
        same = torch.allclose(loss.double(), mean.double(), rtol=1e-4, atol=1e-6)
        expected = f"the mean over samples, {mean.item():.6g}; use .mean(), not .sum()"
        expect(same, expected, f"{loss.item():.6g} for {n} samples")
        losses.append(loss.detach())
    return [losses, state, [list(columns) for columns in data.splits.values()]]


def probability(choice: Choice) -> Any:
    """a probability in [0, 1] for each client"""
    p = np.asarray(choice.build(_population()), dtype=np.float64)
    expect(p.shape in ((), (M,)), f"an array [{M}] with a number for each client", f"shape {list(p.shape)}")
    inside = np.all((p >= 0) & (p <= 1))
    expect(inside, "numbers in [0, 1]; np.clip(p, 0, 1) keeps them there", np.round(p, 4).tolist())
    return p


def metric(choice: Choice) -> Any:
    """the value is a finite number, a vector or numbers by name, over all samples in batches of any size and order"""
    made = choice.build()
    if isinstance(made, OverClients):
        means = np.array([0.9, 0.2, 0.5, 0.5, 1.0, 0.0])  # of six clients
        one, other = called(made.statistic, means.copy()), made.statistic(means[::-1].copy())
        number = isinstance(one, float | int | np.number) and math.isfinite(one)
        expect(number, "one finite number from the means of the clients [m]", one)
        expect(math.isclose(one, other, rel_tol=1e-9), "the same number in any order of clients", f"{one} and {other}")
        return one
    outputs, whole = _outputs(choice)
    sizes = [1, 7, 20, 12]  # uneven, so that a mean over batches is not the mean over samples
    batches = list(zip(*(torch.split(column, sizes) for column in outputs), strict=True))
    for name, used in (("", made), (" after reset()", made), (" of a copy after reset()", copy.deepcopy(made))):
        if name:
            used.reset()
        divided = _value(used, batches)
        expect(
            np.allclose(whole, divided, rtol=1e-5, atol=1e-8),
            f"{whole}, the value over all samples: let update collect sums and counts, and divide in compute",
            f"{divided} from batches of {', '.join(map(str, sizes))} samples{name}",
        )
    return whole


def _outputs(choice: Choice) -> tuple[tuple[Tensor, Tensor], np.ndarray]:
    """Outputs of the first kind of task that a metric takes, classes [n, C] and labels or numbers [n], and its value.

    Raises Exception: that of the metric, if it takes none.
    """
    draw = torch.Generator().manual_seed(2)
    n, refusals = 40, []
    for classes in (10, 3, 2, 1):
        scores = torch.randn(n, classes, generator=draw, dtype=torch.float64)
        predictions, targets = scores.softmax(dim=1), torch.arange(n) % classes
        if classes == 1:  # a regression
            predictions, targets = scores[:, 0], scores[:, 0] + torch.arange(n) % 3
        try:
            whole = called(lambda *outputs: _value(choice.build(), [outputs]), predictions.clone(), targets.clone())
        except CheckFailed:
            raise
        except Exception as error:  # a metric of another kind of task
            refusals.append(error)
        else:
            return (predictions, targets), whole
    raise refusals[0]


def _value(metric: Any, batches: Any) -> np.ndarray:
    """The finite numbers that a metric computes from batches."""
    for predictions, targets in batches:
        metric.update(predictions, targets)
    value = metric.compute()
    try:
        entries = value.values() if isinstance(value, Mapping) else [value]
        numbers = np.concatenate([np.asarray(entry, dtype=np.float64).ravel() for entry in entries])
    except (TypeError, ValueError):
        raise CheckFailed("a finite number, a vector or a mapping", f"a {type(value).__name__}") from None
    expect(len(numbers) and np.isfinite(numbers).all(), "a finite number, a vector or a mapping", value)
    return numbers


def participation(choice: Choice) -> Any:
    """`active(t)` returns ascending client ids, in any order of the rounds; what is known lies in its range"""
    model, other, rounds = _participation(choice), _participation(choice), []
    for t in range(50):
        ids = type(model).active(model, t)  # a run puts the ids in order; here is what the class itself says
        valid = isinstance(ids, np.ndarray) and ids.ndim == 1 and (not len(ids) or ids.dtype.kind in "iu")
        seen = f"{ids.dtype} {list(ids.shape)}" if isinstance(ids, np.ndarray) else f"a {type(ids).__name__}"
        hint = "; np.flatnonzero(mask) makes ids of a mask" if "bool" in seen or "float" in seen else ""
        expect(valid, "an array [a] of whole numbers", f"{seen} in round {t}{hint}")
        seen = f"{ids.tolist()} in round {t}"
        expect(not ((ids < 0) | (ids >= model.clients)).any(), f"ids from 0 to {model.clients - 1}", seen)
        expect((np.diff(ids) > 0).all(), "ascending ids, each once: return np.unique(ids)", seen)
        rounds.append(ids)
    for t in (*reversed(range(50)), 0):
        again = other.active(t)
        seen = f"clients {rounds[t].tolist()} and then {again.tolist()} in round {t}"
        expected = "`active(t)` as a function of (seed, t): no counter, no generator in `self`"
        expect(np.array_equal(again, rounds[t]), expected, seen)
    values = {f"probability({t})": model.probability(t) for t in (0, 7)}
    values |= {name: getattr(model, name) for name in ("stationary", "share", "correlation")}
    for name, value in values.items():
        if value is not None:
            low = -1 if name == "correlation" else 0
            vector = isinstance(value, np.ndarray) and value.shape == (model.clients,)
            expect(
                vector, f"{name} as an array [{model.clients}], or None", getattr(value, "shape", type(value).__name__)
            )
            inside = np.isfinite(value).all() and (value >= low - 1e-12).all() and (value <= 1 + 1e-12).all()
            expect(inside, f"{name} in [{low}, 1]", np.round(value, 4).tolist())
    return rounds


def marginals(choice: Choice) -> str | None:
    """each client is active as often as `probability` says, to 4.5 standard errors"""
    runs = [_participation(choice, seed) for seed in range(400)]
    if runs[0].probability(0) is None:
        return "probability unknown"
    for t in (0, 3):
        counts, expected, variance = np.zeros((3, runs[0].clients))
        for model in runs:
            counts[model.active(t)] += 1
            p = model.probability(t)
            assert p is not None
            expected, variance = expected + p, variance + p * (1 - p)
        n, error = len(runs), np.sqrt(np.maximum(variance, 0.25))
        _frequent(counts / n, expected / n, error / n, f"in round {t} (probability({t}))", f"{n} seeds")
    return None


def long_run(choice: Choice) -> str | None:
    """each client is active in the long run as often as `stationary` says, to 4.5 standard errors"""
    model = _participation(choice)
    if model.stationary is None:
        return "stationary unknown"
    length = len(getattr(model, "mask", ())) or 1
    rounds = length * -(-ROUNDS // length)  # whole repetitions of a recording
    batches = np.zeros((20, model.clients))
    for t in range(rounds):
        batches[t * 20 // rounds, model.active(t)] += 20 / rounds
    # Rounds may be correlated: the error comes from the means of 20 batches.
    error = np.maximum(batches.std(axis=0, ddof=1) / np.sqrt(20), 2 / rounds)
    _frequent(batches.mean(axis=0), model.stationary, error, "in the long run (stationary)", f"{rounds} rounds")
    return None


def _frequent(seen: np.ndarray, expected: np.ndarray, error: np.ndarray, where: str, sample: str) -> None:
    """Fail if a client's frequency is too far from the expected one."""
    away = np.abs(seen - expected) / error
    i = int(away.argmax())
    expect(
        away[i] <= SIGMAS,
        f"client {i} active with probability {expected[i]:.3f} {where}",
        f"{seen[i]:.3f} +- {error[i]:.3f} over {sample}",
    )


def _population(clients: int = M, seed: int = SEED) -> Population:
    """Clients whose data have three classes."""
    histogram = 5 + np.arange(3 * clients).reshape(clients, 3) % 7
    return Population(clients, seed, histogram / histogram.sum(axis=1, keepdims=True), histogram)


def _participation(choice: Choice, seed: int = SEED) -> Participation:
    """A participation model of 12 clients; of as many as a mask, or the mask of a plain function, has."""
    mask = choice.options.get("mask")
    if choice.factory is FromFunction:
        mask = np.asarray(choice.options["function"].bound()(0, np.random.default_rng(0)))
        mask = mask if mask.dtype == bool else None
    clients = M if not isinstance(mask, np.ndarray) or mask.ndim == 0 else mask.shape[-1]
    return choice.build(_population(clients, seed))
