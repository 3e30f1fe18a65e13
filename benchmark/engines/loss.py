"""The loss of many clients at once: gradients by `torch.func`, and properties of a loss."""

import copy
from collections.abc import Callable, Hashable
from contextlib import AbstractContextManager, nullcontext

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.autograd.graph import saved_tensors_hooks
from torch.func import functional_call, vjp, vmap

from rollcall.benchmark.config.source import fingerprint
from rollcall.benchmark.engines.flat_task import FlatTask
from rollcall.tasks import Samples, Task

NamedTensors = dict[str, Tensor]
"""Parameters or buffers by name; where they are stacked, the first dimension is the client."""


class Loss(nn.Module):
    """A task's loss, computed in a context, as a module, as `torch.func.functional_call` needs it."""

    def __init__(self, task: Task, context: Callable[[], AbstractContextManager[object]] = nullcontext) -> None:
        super().__init__()
        self.task = task
        self.context = context

    def forward(self, batch: Samples) -> Tensor:
        with self.context():
            return self.task.loss(batch)


class PerClientGradients:
    """The gradients of many clients, each at its own parameters and minibatch, in one batch of kernels."""

    def __init__(self, loss: Loss, parameter_names: list[str], buffer_names: list[str]) -> None:
        self.loss = loss
        self.names = [f"task.{name}" for name in parameter_names]
        self.buffer_names = [f"task.{name}" for name in buffer_names]

    def __call__(self, *tensors: Tensor, weighted: bool, losses: bool = True) -> list[Tensor]:
        """Gradients, losses if they are needed, and next buffers; clients first.

        Flat lists of tensors, as recording needs them: parameters, buffers, and columns of the minibatches. With
        `weighted`, only for a loss without buffers, the weights of the samples follow.
        """
        n, b = len(self.names), len(self.buffer_names)
        parameters = dict(zip(self.names, tensors[:n], strict=True))
        if weighted:
            gradients, values = vmap(self._of_weighted_samples)(parameters, tensors[n:-1], tensors[-1])
            return [*gradients.values(), values] if losses else [*gradients.values()]
        buffers = dict(zip(self.buffer_names, tensors[n : n + b], strict=True))
        batches = tensors[n + b :]
        gradients, values, buffers = vmap(self._of_batch)(parameters, buffers, batches)
        return [*gradients.values(), *([values] if losses else []), *buffers.values()]

    def _of_batch(
        self, parameters: NamedTensors, buffers: NamedTensors, batch: Samples
    ) -> tuple[NamedTensors, Tensor, NamedTensors]:
        def loss_at(parameters: NamedTensors) -> tuple[Tensor, NamedTensors]:
            after = {name: buffer.clone() for name, buffer in buffers.items()}  # the arguments must not change
            return functional_call(self.loss, (parameters, after), (batch,)), after

        loss, pullback, after = vjp(loss_at, parameters, has_aux=True)  # type: ignore[misc]
        # Not torch.func.grad, nor ones_like: a recording would compute the loss of every step for its shape alone.
        (gradients,) = pullback(torch.ones((), dtype=loss.dtype, device=loss.device))
        return gradients, loss, after

    def _of_weighted_samples(
        self, parameters: NamedTensors, batch: Samples, weights: Float[Tensor, "b"]
    ) -> tuple[NamedTensors, Tensor]:
        def losses_at(parameters: NamedTensors) -> Float[Tensor, "b"]:
            def sample_loss(sample: Samples) -> Tensor:
                return functional_call(self.loss, parameters, (tuple(column[None] for column in sample),))

            return vmap(sample_loss)(batch)

        losses, pullback = vjp(losses_at, parameters)  # type: ignore[misc]
        (gradients,) = pullback(weights)
        return gradients, weights @ losses


def is_mean_of_samples(loss: Loss, parameter_names: list[str], samples: Samples) -> bool:
    """Whether a batch's loss and gradient are the means over its samples. Tried on the CPU, in float64."""
    samples = tuple(_in_float64(column) for column in samples)
    buffers = {name: _in_float64(buffer) for name, buffer in loss.named_buffers()}
    every = {name: _in_float64(parameter) for name, parameter in loss.named_parameters()}
    parameters = {f"task.{name}": every[f"task.{name}"].requires_grad_() for name in parameter_names}
    singles = [tuple(column[i : i + 1] for column in samples) for i in range(len(samples[0]))]

    def loss_and_gradient(batches: list[Samples]) -> Tensor:
        """The mean loss of the batches and its gradient, concatenated."""
        values = [functional_call(loss, (every, buffers), (batch,)) for batch in batches]
        mean = torch.stack(values).mean()
        gradients = torch.autograd.grad(mean, list(parameters.values()), materialize_grads=True)
        return torch.cat([mean.detach()[None], *(gradient.flatten() for gradient in gradients)])

    try:
        with torch.enable_grad():
            together, apart = loss_and_gradient([samples]), loss_and_gradient(singles)
    except (ValueError, RuntimeError):  # for example a normalisation that needs more than one sample
        return False
    return bool((together - apart).abs().max() <= 1e-10 * together.abs().max())


def kernels_key(model: FlatTask) -> Hashable:
    """Equal for tasks whose losses run the same kernels on the same constants: same classes, attributes and shapes."""
    shapes = {id(parameter): (tuple(parameter.shape), str(parameter.dtype)) for parameter in model.parameters_}
    # Trained parameters are arguments of the kernels. In the copy their shapes take their places.
    return tuple(type(module) for module in model.task.modules()), fingerprint(copy.deepcopy(model.task, dict(shapes)))


def activation_bytes(loss: Loss, samples: Samples) -> int:
    """Bytes per sample that the forward pass saves for the backward pass."""
    parameter_storages = {parameter.untyped_storage().data_ptr() for parameter in loss.parameters()}
    saved: dict[int, int] = {}

    def record(tensor: Tensor) -> Tensor:
        storage = tensor.untyped_storage()
        if storage.data_ptr() not in parameter_storages:
            # The smaller one: a slice takes less than its storage, an expanded tensor has more elements than it stores.
            size = min(tensor.numel() * tensor.element_size(), storage.nbytes())
            saved[storage.data_ptr()] = max(size, saved.get(storage.data_ptr(), 0))
        return tensor.detach()  # else a saved output holds its own graph: a cycle that is never freed

    buffers = {name: buffer.clone() for name, buffer in loss.named_buffers()}  # this trial must not change the server's
    with torch.enable_grad(), saved_tensors_hooks(record, lambda tensor: tensor):
        value = functional_call(loss, buffers, (samples,))
    assert value.requires_grad  # and keeps the saved tensors alive until here, so that no address is used twice
    return sum(saved.values()) // len(samples[0])


def _in_float64(tensor: Tensor) -> Tensor:
    tensor = tensor.detach().cpu()
    return tensor.double() if tensor.is_floating_point() else tensor.clone()
