"""Checks of the parts of a supervised task on two samples, with messages that say what is required."""

import copy
import inspect
import warnings
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

import torch
from lightning.pytorch import LightningModule
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

from tasks.base import Samples
from tasks.finite import not_finite
from tasks.streams import torch_stream

if TYPE_CHECKING:
    from tasks.supervised import SupervisedTask


def check_network(network: nn.Module | Callable[[int], nn.Module]) -> nn.Module:
    """A copy of the network, or the network for seed 0.

    Raises:
        ValueError: neither a module nor a function of the seed, or a LightningModule that cannot be used.
    """
    if isinstance(network, type) or not callable(network):
        what = f"the class {network.__name__}" if isinstance(network, type) else repr(network)
        raise ValueError(f"network: {what} is not allowed; must be a torch module, or a function from the seed to one")
    if isinstance(network, nn.Module):
        made: Any = copy.deepcopy(network)
    else:
        with torch_stream(0, "init"):
            made = network(0)
    if not isinstance(made, nn.Module):
        raise ValueError(f"network: the function gives {type(made).__name__}; must give a torch module")
    if not any(parameter.requires_grad for parameter in made.parameters()):
        raise ValueError(f"network: {type(made).__name__} has no parameters to train")
    if isinstance(made, LightningModule):
        _check_lightning(made)
    return made


def _check_lightning(module: LightningModule) -> None:
    """Refuse a LightningModule without `forward`, or with several optimizers of its own."""
    name = type(module).__name__
    if type(module).forward is LightningModule.forward:
        raise ValueError(
            f"network: {name} has no forward. The loss is computed from its predictions, for each client: move the "
            "computation of predictions from training_step to forward(inputs), and pass the loss as loss=..."
        )
    if not module.automatic_optimization:
        raise ValueError(
            f"network: {name} optimizes manually, which clients cannot do; pass the network itself and loss=..., "
            "or write a tasks.Task"
        )


def check_model(module: nn.Module, shape: tuple[int, ...], classes: int) -> None:
    """Refuse a network of an image task that gives no logits, or that clients cannot train as it trains itself.

    Args:
        module: the network.
        shape: of an input.
        classes: C.

    Raises:
        ValueError: it gives no logits; or, of a LightningModule, it has no `forward`, optimizes manually, or its
            training_step is not the cross-entropy.
    """
    if isinstance(module, LightningModule):
        _check_lightning(module)
    batch = torch.randn(2, *shape, generator=torch.Generator().manual_seed(0)), torch.arange(2) % classes
    module = copy.deepcopy(module).eval()
    with torch.no_grad(), torch.random.fork_rng(devices=[]):
        logits = module(batch[0])
        _check_predictions(logits, batch[1], classes)
        if not isinstance(module, LightningModule):
            return
        loss = cross_entropy(logits, batch[1])
        own = _own_loss(module, batch)
    if own is not None and not torch.allclose(own.to(loss.dtype), loss, rtol=1e-4, atol=1e-6):
        raise ValueError(
            f"model: the clients of this task minimise the cross-entropy of forward, {loss:.4g} on two inputs, and "
            f"training_step of {type(module).__name__} gives {own:.4g}; make a task with "
            "tasks.supervised(train, test, module, loss=...)"
        )


def check_task(task: "SupervisedTask", batch: Samples) -> None:
    """Refuse a task whose predictions have a wrong shape, or whose loss is not a mean over samples.

    Args:
        task: in evaluation mode.
        batch: two samples; or one, of which less is checked.

    Raises:
        ValueError: what is wrong and what is required.
    """
    with torch.no_grad():
        try:
            predictions, targets = task.predictions(batch)
        except (RuntimeError, TypeError) as error:
            shapes = [list(column.shape) for column in batch[:-1]]
            raise ValueError(f"network: cannot be computed for inputs of shape {shapes}: {_line(error)}") from error
        _check_predictions(predictions, targets, task.classes)
        loss = _check_loss(task.loss_function, predictions, targets)
        for name, function in task.per_sample.items():
            values = function(predictions, targets)
            if not isinstance(values, Tensor) or values.shape != (len(targets),):
                raise ValueError(f"metrics: {name} gives {_shape(values)} for {len(targets)} samples; must give [n]")
        if isinstance(task.network, LightningModule):
            _compare_with_training_step(task.network, batch, loss)
        try:
            task.metrics(batch)
        except RuntimeError as error:
            raise ValueError(
                f"loss: cannot be computed for each sample by torch.func.vmap: {_line(error)}. "
                "Avoid .item() and branches that depend on numbers"
            ) from error


def check_finite(task: "SupervisedTask", splits: Mapping[str, Samples]) -> None:
    """Refuse samples with NaN or infinite values from which no finite loss follows, and such a loss of sound samples.

    Args:
        task: in evaluation mode.
        splits: all samples, by split.

    Raises:
        ValueError: names the split and the number of samples.
    """
    for split, samples in splits.items():
        bad = not_finite(task, split, samples)
        if bad:
            raise ValueError(f"{bad}; remove or replace them")
    with torch.no_grad():
        loss = task.loss(tuple(column[:2] for column in splits["train"]))
    if not loss.isfinite():
        raise ValueError(f"loss: gives {loss.item()} for the first samples; must be finite. Look for log(0) or 1 / 0")


def _check_predictions(predictions: Any, targets: Tensor, classes: int | None) -> None:
    n = len(targets)
    if classes is None:
        if not isinstance(predictions, Tensor) or predictions.shape != targets.shape:
            raise ValueError(
                f"network: gives {_shape(predictions)} for {n} samples; must give {list(targets.shape)}, "
                "as the targets. For classification make the targets whole numbers"
            )
    elif not isinstance(predictions, Tensor) or predictions.ndim != 2 or predictions.shape[1] < classes:
        raise ValueError(
            f"network: gives {_shape(predictions)} for {n} samples; must give [{n}, {classes}], a logit for each class"
        )


def _check_loss(loss: Callable[[Tensor, Tensor], Tensor], predictions: Tensor, targets: Tensor) -> Tensor:
    """The loss of the samples, which must be the mean of their losses."""
    try:
        whole = loss(predictions, targets)
        if not isinstance(whole, Tensor) or whole.ndim:
            raise ValueError(f"loss: gives {_shape(whole)}; must give one number, the mean over samples")
        single = torch.stack([loss(predictions[i : i + 1], targets[i : i + 1]) for i in range(len(targets))])
    except (RuntimeError, TypeError, IndexError) as error:
        raise ValueError(
            f"loss: cannot be computed from predictions {list(predictions.shape)} and targets {list(targets.shape)}: "
            f"{_line(error)}"
        ) from error
    if not torch.allclose(whole, single.mean(), rtol=1e-4, atol=1e-6, equal_nan=True):  # NaN: see `check_finite`
        raise ValueError(
            f"loss: gives {whole:.4g} for samples whose own losses are {', '.join(f'{one:.4g}' for one in single)}; "
            "must be their mean, without sums or class weights"
        )
    return whole


def _compare_with_training_step(module: LightningModule, batch: Samples, loss: Tensor) -> None:
    """Refuse a loss that differs from that of the module's own training_step, if this runs without a Trainer."""
    own = _own_loss(module, batch)
    if own is not None and not torch.allclose(own.to(loss.dtype), loss, rtol=1e-4, atol=1e-6):
        raise ValueError(
            f"loss: gives {loss:.4g} on the first samples, and training_step of {type(module).__name__} {own:.4g}; "
            "pass as loss=... what training_step computes from forward and targets"
        )


def _own_loss(module: LightningModule, batch: Samples) -> Tensor | None:
    """What training_step gives for a batch; None, with a warning, if it cannot be computed without a Trainer."""
    step = type(module).training_step
    if not inspect.isfunction(step) or step is LightningModule.training_step:
        return None
    own: Any = None
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # self.log without a Trainer
        try:
            own = copy.deepcopy(module).training_step(batch, 0)
        except Exception as error:
            reason = f"fails without a Trainer ({_line(error)})"
        else:
            own = own.get("loss") if isinstance(own, dict) else own
            reason = "gives no loss"
    if isinstance(own, Tensor):
        return own
    warnings.warn(
        f"training_step of {type(module).__name__} {reason}; it is not compared with loss, which clients minimise",
        stacklevel=5,
    )
    return None


def _shape(value: Any) -> str:
    return f"a tensor {list(value.shape)}" if isinstance(value, Tensor) else f"a {type(value).__name__}"


def _line(error: Exception) -> str:
    return " ".join(str(error).split())
