"""A task whose parameters are one flat vector, as algorithms see a model."""

import torch
from jaxtyping import Float
from torch import Tensor, nn

from rollcall.tasks import Samples, Task

Buffers = list[Tensor]
"""What a model learns besides its parameters, for example BatchNorm running statistics."""


class FlatTask(nn.Module):
    """A task that can be set to any vector of R^d, to compute its loss and metrics there.

    Args:
        task: its parameters, in their own order, make up a vector [d].
    """

    def __init__(self, task: Task) -> None:
        super().__init__()
        self.task = task
        self.parameters_ = list(task.parameters())
        self.sizes = [parameter.numel() for parameter in self.parameters_]
        # Constants that a task stores as non-persistent buffers are not learnt.
        learnt = task.state_dict(keep_vars=True).keys()
        self.buffer_names = [name for name, _ in task.named_buffers() if name in learnt]

    def vector(self) -> Float[Tensor, "d"]:
        """The present parameters, as a new vector."""
        return torch.cat([parameter.detach().flatten() for parameter in self.parameters_])

    def move(self, vector: Float[Tensor, "d"]) -> None:
        """Set the parameters to a vector."""
        with torch.no_grad():
            for parameter, piece in zip(self.parameters_, self.split(vector), strict=True):
                parameter.copy_(piece)

    def split(self, vector: Float[Tensor, "d"]) -> list[Tensor]:
        """A vector as views in the shapes of the parameters."""
        pieces = vector.split_with_sizes(self.sizes)
        return [piece.view_as(parameter) for piece, parameter in zip(pieces, self.parameters_, strict=True)]

    def buffers_(self) -> Buffers:
        """The learnt buffers (not copies)."""
        return [self.task.get_buffer(name) for name in self.buffer_names]


def in_channels_last(batch: Samples) -> Samples:
    """The same samples, with images [n, c, h, w] in the memory format `channels_last`."""
    return tuple(
        column.contiguous(memory_format=torch.channels_last) if column.dim() == 4 else column for column in batch
    )
