"""Checks of metrics.

Each check takes the choice and returns a remark or nothing, or raises `CheckFailed`. Its docstring is its title.
"""

import copy
import math
from collections.abc import Mapping
from typing import Any, TypeAlias

import numpy as np
import torch
from torch import Tensor

from rollcall.benchmark.config.choice import Choice
from rollcall.benchmark.conformance.failure import expect, twice, unchanged
from rollcall.tasks.metrics import Accumulated, OverClients

Outputs: TypeAlias = tuple[Tensor, Tensor]

SAMPLES = 40
BATCHES = (1, 7, 20, 12)
"""Uneven, so that a mean over batches is not the mean over samples."""

MEANS = np.array([0.9, 0.2, 0.5, 0.5, 1.0, 0.0])
"""Of six clients."""


def a_number(choice: Choice) -> str:
    """the value is a number, a vector of numbers, or numbers by name"""
    metric = choice.build()
    if isinstance(metric, OverClients):
        value = metric.statistic(MEANS.copy())
        finite = isinstance(value, float | int | np.number) and math.isfinite(value)
        expect(finite, "one finite number from the means of the clients [m]", _shown(value))
        return f"over clients, of {metric.of}"
    name, outputs = _outputs(choice)
    value = _value(metric, [outputs])
    expect(_finite(value), f"a finite number, a vector or a mapping, for {name}", _shown(value))
    return name


def over_all_samples(choice: Choice) -> None:
    """the value does not depend on how the samples are divided into batches, nor on the order of clients"""
    metric = choice.build()
    if isinstance(metric, OverClients):
        one, other = metric.statistic(MEANS.copy()), metric.statistic(MEANS[::-1].copy())
        same = math.isclose(one, other, rel_tol=1e-9)
        expect(same, "the same number in another order of the clients", f"{one} and {other}")
        return
    _, outputs = _outputs(choice)
    whole = _value(metric, [outputs])
    ends = np.cumsum(BATCHES).tolist()
    divided = _value(choice.build(), zip(*(column.tensor_split(ends[:-1]) for column in outputs), strict=True))
    expect(
        _close(whole, divided),
        f"{_shown(whole)}, the value over all samples: let update collect sums and counts, and divide in compute",
        f"{_shown(divided)} from batches of {', '.join(map(str, BATCHES))} samples",
    )


def forgets(choice: Choice) -> None:
    """after reset, and in a new or copied metric, nothing of earlier samples is left"""
    metric = choice.build()
    if isinstance(metric, OverClients):
        return
    _, outputs = _outputs(choice)
    first, second = zip(*(column.chunk(2) for column in outputs), strict=True)
    fresh = _value(choice.build(), [second])
    _value(metric, [first])
    copied, new = copy.deepcopy(metric), choice.build()
    for name, used in (("reset()", metric), ("a copy and reset()", copied), ("the next build", new)):
        if used is not new:
            used.reset()
        value = _value(used, [second])
        expected = f"{_shown(fresh)} after {name}: reset in reset() all that update changes"
        expect(_close(value, fresh), expected, _shown(value))


def pure_metric(choice: Choice) -> None:
    """a metric neither changes what it measures nor draws random numbers"""
    if isinstance(choice.build(), OverClients):
        means = MEANS.copy()
        with unchanged("the means not to change; work on np.sort(values) or values.copy()", means):
            twice(lambda: choice.build().statistic(means), "no generator")
        return
    _, outputs = _outputs(choice)
    with unchanged("predictions and targets not to change", outputs, seen="they were modified in place"):
        one, other = twice(lambda: _value(choice.build(), [outputs]), "no generator")
    expect(_close(one, other), "the same value twice", f"{_shown(one)} and {_shown(other)}")


def _outputs(choice: Choice) -> tuple[str, Outputs]:
    """Outputs of the first kind of task that the metric takes: probabilities [n, C] and labels, or numbers [n].

    Raises:
        Exception: that of the metric, if it takes none.
    """
    draw = torch.Generator().manual_seed(2)
    tasks: dict[str, Outputs] = {}
    for classes in (10, 3, 2):
        logits = torch.randn(SAMPLES, classes, generator=draw, dtype=torch.float64)
        tasks[f"{classes} classes"] = logits.softmax(dim=1), torch.arange(SAMPLES) % classes
    numbers = torch.randn(SAMPLES, generator=draw, dtype=torch.float64)
    tasks["regression"] = numbers + 0.5 * torch.randn(SAMPLES, generator=draw, dtype=torch.float64), numbers
    refusals = []
    for name, outputs in tasks.items():
        try:
            _value(choice.build(), [copy.deepcopy(outputs)])  # which may be changed in place
        except Exception as error:  # a metric of another kind of task
            refusals.append(error)
        else:
            return name, outputs
    raise refusals[0]


def _value(metric: Accumulated, batches: Any) -> Any:
    for predictions, targets in batches:
        metric.update(predictions, targets)
    return metric.compute()


def _numbers(value: Any) -> list[float]:
    if isinstance(value, Mapping):
        return [number for entry in value.values() for number in _numbers(entry)]
    return [float(number) for number in np.asarray(value, dtype=np.float64).ravel()]


def _finite(value: Any) -> bool:
    try:
        numbers = _numbers(value)
    except (TypeError, ValueError):
        return False
    return bool(numbers) and all(map(math.isfinite, numbers))


def _close(one: Any, other: Any) -> bool:
    return np.allclose(_numbers(one), _numbers(other), rtol=1e-5, atol=1e-8)


def _shown(value: Any) -> str:
    try:
        return ", ".join(f"{number:.6g}" for number in _numbers(value)) or "nothing"
    except (TypeError, ValueError):
        return "None" if value is None else f"a {type(value).__name__}"
