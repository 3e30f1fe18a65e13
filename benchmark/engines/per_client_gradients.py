"""The gradients of many clients, each at its own parameters and minibatch, by `torch.func` in one batch of kernels."""

import torch
from jaxtyping import Float
from torch import Tensor
from torch.func import functional_call, grad, vmap

from benchmark.engines.loss_properties import Loss
from tasks import Samples

NamedTensors = dict[str, Tensor]
"""Parameters or buffers by name; where they are stacked, the first dimension is the client."""


class PerClientGradients:
    """Ways to compute all clients' gradients. Arguments and results are flat lists, as recording needs them.

    Args:
        loss: the task's.
        buffer_names: of the buffers that the loss updates.
    """

    def __init__(self, loss: Loss, buffer_names: list[str]) -> None:
        self.loss = loss
        self.names = [name for name, _ in loss.named_parameters()]
        self.buffer_names = buffer_names

    def of_whole_batches(self, *tensors: Tensor) -> list[Tensor]:
        """Parameters, buffers and columns of the minibatches to gradients, losses and next buffers; clients first."""
        n, b = len(self.names), len(self.buffer_names)
        parameters = dict(zip(self.names, tensors[:n], strict=True))
        buffers = dict(zip(self.buffer_names, tensors[n : n + b], strict=True))
        gradients, (losses, buffers) = vmap(grad(self._batch_loss, has_aux=True))(parameters, buffers, tensors[n + b :])
        return [*gradients.values(), losses, *buffers.values()]

    def of_padded_batches(self, *tensors: Tensor) -> list[Tensor]:
        """Parameters, columns of the minibatches and sample weights to gradients and losses; clients first."""
        n = len(self.names)
        parameters = dict(zip(self.names, tensors[:n], strict=True))
        gradients, losses = vmap(grad(self._weighted_loss, has_aux=True))(parameters, tensors[n:-1], tensors[-1])
        return [*gradients.values(), losses]

    def gradients_of_whole_batches(self, *tensors: Tensor) -> list[Tensor]:
        """The gradients that `of_whole_batches` gives, for a loss without buffers."""
        return self.of_whole_batches(*tensors)[: len(self.names)]

    def gradients_of_padded_batches(self, *tensors: Tensor) -> list[Tensor]:
        """The gradients that `of_padded_batches` gives."""
        return self.of_padded_batches(*tensors)[: len(self.names)]

    def server_buffers(self, clients: int) -> NamedTensors:
        """The server's buffers, repeated for a number of clients."""
        buffers = {name: self.loss.get_buffer(name) for name in self.buffer_names}
        return {name: buffer.expand(clients, *buffer.shape) for name, buffer in buffers.items()}

    def _batch_loss(
        self, parameters: NamedTensors, buffers: NamedTensors, batch: Samples
    ) -> tuple[Tensor, tuple[Tensor, NamedTensors]]:
        buffers = {name: buffer.clone() for name, buffer in buffers.items()}  # the arguments must not change
        loss = functional_call(self.loss, (parameters, buffers), (batch,))
        return loss, (loss, buffers)

    def _weighted_loss(
        self, parameters: NamedTensors, batch: Samples, weights: Float[Tensor, "b"]
    ) -> tuple[Tensor, Tensor]:
        def sample_loss(sample: Samples) -> Tensor:
            single: Tensor = functional_call(self.loss, parameters, (tuple(column[None] for column in sample),))
            return single

        loss = weights @ vmap(sample_loss)(batch)
        return loss, loss


def split_rows(x: Float[Tensor, "a d"], shapes: list[torch.Size]) -> list[Tensor]:
    """The rows as views in the shapes of the parameters, clients first."""
    pieces = torch.split(x, [shape.numel() for shape in shapes], dim=1)
    return [piece.view(-1, *shape) for piece, shape in zip(pieces, shapes, strict=True)]
