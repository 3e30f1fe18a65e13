"""Evaluation of a model: fast, and with the same bits for any number of threads."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

import torch
from torch import Tensor

from rollcall.benchmark.engines.flat_task import in_channels_last
from rollcall.benchmark.engines.threads import prepare_thread
from rollcall.tasks import Samples, Task

PIECE = 64 * 3 * 32 * 32
"""Numbers in the images of a piece: with the activations of a small network they fit in a CPU's caches."""

R = TypeVar("R")


class Evaluator:
    """Computes the metrics of batches of samples. On a CPU, images are split into pieces, one piece per thread.

    Args:
        task: in evaluation mode, with the parameters to evaluate.
        workers: threads.
    """

    def __init__(self, task: Task, workers: int = 1) -> None:
        self.task = task
        self.channels_last: bool | None = None
        self.workers = workers
        self.pool = ThreadPoolExecutor(workers, initializer=prepare_thread)

    def metrics(self, batch: Samples) -> dict[str, Tensor]:
        """See `rollcall.tasks.Task.metrics`."""
        if not self._in_pieces(batch):
            return self.task.metrics(batch)
        metrics = self._of_pieces(self.task.metrics, batch)
        sizes = [len(piece) for piece in torch.split(batch[0], piece_size(batch))]
        return {name: joined([piece[name] for piece in metrics], sizes) for name in metrics[0]}

    def outputs(self, batch: Samples) -> tuple[Tensor, Tensor]:
        """See `rollcall.tasks.Task.outputs`."""
        if not self._in_pieces(batch):
            return self.task.outputs(batch)
        predictions, targets = zip(*self._of_pieces(self.task.outputs, batch), strict=True)
        return torch.cat(predictions), torch.cat(targets)

    def _in_pieces(self, batch: Samples) -> bool:
        """Whether the batch is split: images on a CPU. Autocast is set for each thread separately."""
        has_images = any(column.dim() == 4 for column in batch)
        return has_images and batch[0].device.type == "cpu" and not torch.is_autocast_enabled("cpu")

    def _of_pieces(self, measure: Callable[[Samples], R], batch: Samples) -> list[R]:
        """What a function of samples gives for each piece of a batch."""
        size = piece_size(batch)
        pieces = list(zip(*(torch.split(column, size) for column in batch), strict=True))
        if self.channels_last is None:
            self.channels_last = self._accepts_channels_last(pieces[0])

        def of_piece(piece: Samples) -> R:
            with torch.inference_mode():
                return measure(in_channels_last(piece) if self.channels_last else piece)

        return list(map(of_piece, pieces) if self.workers == 1 else self.pool.map(of_piece, pieces))

    def _accepts_channels_last(self, piece: Samples) -> bool:
        """Whether the model accepts images with channels last, which convolutions prefer; `Tensor.view` may fail."""
        try:
            with torch.inference_mode():
                self.task.metrics(in_channels_last(piece))
        except RuntimeError:
            return False
        return True


def joined(values: list[Tensor], sizes: list[int]) -> Tensor:
    """Per-sample values of all pieces, concatenated; or the mean over samples of per-piece values."""
    if values[0].ndim:
        return torch.cat(values)
    return torch.stack(values) @ torch.tensor(sizes, dtype=values[0].dtype, device=values[0].device) / sum(sizes)


def piece_size(batch: Samples) -> int:
    """How many images are in a piece."""
    numbers = sum(column[0].numel() for column in batch if column.dim() == 4)
    return max(1, PIECE // numbers)
