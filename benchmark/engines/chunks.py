"""Chunks: how many clients the vectorised engine computes at once, so that they fit in memory."""

from dataclasses import dataclass

import torch
from torch import Tensor

from benchmark.engines.flat_task import FlatTask
from benchmark.engines.loss_properties import Loss, activation_bytes
from tasks import Samples


@dataclass
class ChunkSize:
    """The number of clients that fit in memory together.

    Attributes:
        bytes_per_client: the model, its gradient, copies of both in a kernel's layout, and an optimizer's state.
        bytes_per_sample: what the forward pass saves, and what the backward pass makes of it.
        bytes_per_step_sample: the samples of all steps, with what their augmentation needs.
        memory: bytes that may be used.
    """

    bytes_per_client: int
    bytes_per_sample: int
    bytes_per_step_sample: int
    memory: int

    @classmethod
    def measured(
        cls, model: FlatTask, loss: Loss, samples: Samples, memory: int | None, copies: int = 4
    ) -> "ChunkSize":
        """Measured with a few samples; `memory` None means what `free_memory` allows.

        A client needs as much memory as `copies` models.
        """
        return cls(
            copies * sum(p.numel() * p.element_size() for p in model.parameters_),
            2 * activation_bytes(loss, samples),
            16 * sum(column[0].numel() * column.element_size() for column in samples),
            free_memory(samples[0].device) if memory is None else memory,
        )

    def clients(self, length: int, steps: int) -> int:
        """How many clients fit, if each has `steps` minibatches of that length; at least 1, and a round number."""
        fitting = max(1, self.memory // self.bytes_each(length, steps))
        return fitting - fitting % _spacing(fitting)

    def bytes_each(self, length: int, steps: int) -> int:
        """What a client needs that has `steps` minibatches of that length."""
        return self.bytes_per_client + length * (self.bytes_per_sample + steps * self.bytes_per_step_sample)


def next_round_number(n: int, most: int) -> int:
    """The next of 1, 2, ..., 8, 10, 12, 14, 16, 20, 24, ..., at most a quarter more than n; or `most`, if smaller."""
    return max(n, min(most, n + -n % _spacing(n)))


def pad_clients(rows: Tensor, n: int) -> Tensor:
    """n rows, contiguous in memory: the missing ones are copies of the first."""
    missing = n - len(rows)
    return torch.cat([rows, rows[:1].expand(missing, *rows.shape[1:])]) if missing else rows.contiguous()


def free_memory(device: torch.device) -> int:
    """Bytes: half of what a GPU has free, including torch's own reserve; 1 GiB on a CPU."""
    if device.type != "cuda":
        return 2**30
    reserve = torch.cuda.memory_reserved(device) - torch.cuda.memory_allocated(device)
    return int(torch.cuda.mem_get_info(device)[0] + reserve) // 2


def _spacing(n: int) -> int:
    """The distance between two round numbers around n."""
    return max(1, (1 << n.bit_length()) // 8)
