"""A task's parameters as one flat vector, which is how algorithms see a model."""

import torch
from jaxtyping import Float
from torch import Tensor, nn

from tasks import Samples, Task

Buffers = list[Tensor]
"""What a model learns besides its parameters (BatchNorm's running statistics)."""


class FlatTask(nn.Module):
    """Brings a task to any point of R^d, where its loss and metrics are then taken.

    Args:
        task: whose parameters, in their own order, make up a vector [d].
    """

    def __init__(self, task: Task) -> None:
        super().__init__()
        self.task = task
        self.parameters_ = list(task.parameters())
        self.sizes = [parameter.numel() for parameter in self.parameters_]
        # What a task merely keeps at hand is not learnt, and not persistent either.
        learnt = task.state_dict(keep_vars=True).keys()
        self.buffer_names = [name for name, _ in task.named_buffers() if name in learnt]

    def vector(self) -> Float[Tensor, "d"]:
        """The parameters where they are now, as a new vector."""
        return torch.cat([parameter.detach().flatten() for parameter in self.parameters_])

    def move(self, vector: Float[Tensor, "d"]) -> None:
        """Take the parameters to a point."""
        with torch.no_grad():
            for parameter, piece in zip(self.parameters_, self.split(vector), strict=True):
                parameter.copy_(piece)

    def split(self, vector: Float[Tensor, "d"]) -> list[Tensor]:
        """A vector as views in the shapes of the parameters."""
        pieces = vector.split_with_sizes(self.sizes)
        return [piece.view_as(parameter) for piece, parameter in zip(pieces, self.parameters_, strict=True)]

    def buffers_(self) -> Buffers:
        """The learnt buffers themselves, not copies."""
        return [self.task.get_buffer(name) for name in self.buffer_names]


def in_channels_last(batch: Samples) -> Samples:
    """The same numbers, images [n, c, h, w] among them with their channels side by side in memory."""
    return tuple(
        column.contiguous(memory_format=torch.channels_last) if column.dim() == 4 else column for column in batch
    )
