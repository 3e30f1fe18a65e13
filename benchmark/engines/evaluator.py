"""Evaluation of a model: fast, and with the same bits for any number of threads."""

from concurrent.futures import ThreadPoolExecutor

import torch
from torch import Tensor

from benchmark.engines.flat_task import in_channels_last
from benchmark.engines.threads import prepare_thread
from tasks import Samples, Task

PIECE = 64
"""Images in a piece: together with the activations of a small network they fit in a CPU's caches."""


class Evaluator:
    """Computes the metrics of batches of samples. On a CPU, images are split into pieces, one piece per thread.

    Args:
        task: in evaluation mode, with the parameters to evaluate.
        workers: threads.
    """

    def __init__(self, task: Task, workers: int = 1) -> None:
        self.task = task
        self.channels_last: bool | None = None
        self.pool = ThreadPoolExecutor(workers, initializer=prepare_thread)

    def metrics(self, batch: Samples) -> dict[str, Tensor]:
        """See `tasks.Task.metrics`."""
        has_images = any(column.dim() == 4 for column in batch)
        # Autocast is set for each thread separately.
        if not has_images or batch[0].device.type != "cpu" or torch.is_autocast_enabled("cpu"):
            return self.task.metrics(batch)
        pieces = list(zip(*(torch.split(column, PIECE) for column in batch), strict=True))
        if self.channels_last is None:
            self.channels_last = self._accepts_channels_last(pieces[0])
        metrics = list(self.pool.map(self._piece_metrics, pieces))
        return {name: self._joined([piece[name] for piece in metrics], batch) for name in metrics[0]}

    def _piece_metrics(self, piece: Samples) -> dict[str, Tensor]:
        with torch.inference_mode():
            return self.task.metrics(in_channels_last(piece) if self.channels_last else piece)

    def _accepts_channels_last(self, piece: Samples) -> bool:
        """Whether the model accepts images with channels last, which convolutions prefer; `Tensor.view` may fail."""
        try:
            with torch.inference_mode():
                self.task.metrics(in_channels_last(piece))
        except RuntimeError:
            return False
        return True

    def _joined(self, values: list[Tensor], batch: Samples) -> Tensor:
        """Per-sample values of all pieces, concatenated; or the mean over samples of per-piece values."""
        if values[0].ndim:
            return torch.cat(values)
        sizes = torch.tensor([len(piece) for piece in torch.split(batch[0], PIECE)], dtype=values[0].dtype)
        return torch.stack(values) @ sizes / len(batch[0])
