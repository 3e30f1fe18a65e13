"""Properties of a loss that an engine finds out by trying: its memory, and whether it is a mean over samples."""

import copy
from collections.abc import Callable, Hashable
from contextlib import AbstractContextManager, nullcontext

import torch
from torch import Tensor, nn
from torch.autograd.graph import saved_tensors_hooks
from torch.func import functional_call

from benchmark.config.source import fingerprint
from tasks import Samples, Task


class Loss(nn.Module):
    """A task's loss as a module, as `torch.func.functional_call` needs it.

    Args:
        task: its parameters are named `task.` and their name.
        context: in which the loss is computed.
    """

    def __init__(self, task: Task, context: Callable[[], AbstractContextManager[object]] = nullcontext) -> None:
        super().__init__()
        self.task = task
        self.context = context

    def forward(self, batch: Samples) -> Tensor:
        with self.context():
            return self.task.loss(batch)


def is_mean_of_samples(loss: Loss, samples: Samples) -> bool:
    """Whether a batch's loss and gradient are the means over its samples. Tried on the CPU, in float64."""
    samples = tuple(_in_float64(column) for column in samples)
    buffers = {name: _in_float64(buffer) for name, buffer in loss.named_buffers()}
    parameters = {name: _in_float64(p).requires_grad_() for name, p in loss.named_parameters()}
    singles = [tuple(column[i : i + 1] for column in samples) for i in range(len(samples[0]))]

    def loss_and_gradient(batches: list[Samples]) -> Tensor:
        """The mean loss of the batches and its gradient, concatenated."""
        values = [functional_call(loss, (parameters, buffers), (batch,)) for batch in batches]
        mean = torch.stack(values).mean()
        gradients = torch.autograd.grad(mean, list(parameters.values()), materialize_grads=True)
        return torch.cat([mean.detach()[None], *(gradient.flatten() for gradient in gradients)])

    try:
        with torch.enable_grad():
            together, apart = loss_and_gradient([samples]), loss_and_gradient(singles)
    except (ValueError, RuntimeError):  # for example a normalisation that needs more than one sample
        return False
    return bool((together - apart).abs().max() <= 1e-10 * together.abs().max())


def kernels_key(task: Task) -> Hashable:
    """Equal for tasks whose losses run the same kernels on the same constants: same classes, attributes and shapes."""
    shapes = {id(parameter): (tuple(parameter.shape), str(parameter.dtype)) for parameter in task.parameters()}
    # Parameters are arguments of the kernels. In the copy their shapes take their places.
    return tuple(type(module) for module in task.modules()), fingerprint(copy.deepcopy(task, dict(shapes)))


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
        return tensor

    buffers = {name: buffer.clone() for name, buffer in loss.named_buffers()}  # this trial must not change the server's
    with torch.enable_grad(), saved_tensors_hooks(record, lambda tensor: tensor):
        value = functional_call(loss, buffers, (samples,))
    assert value.requires_grad  # and keeps the saved tensors alive until here, so that no address is used twice
    return sum(saved.values()) // len(samples[0])


def _in_float64(tensor: Tensor) -> Tensor:
    tensor = tensor.detach().cpu()
    return tensor.double() if tensor.is_floating_point() else tensor.clone()
