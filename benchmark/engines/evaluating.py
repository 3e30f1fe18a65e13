"""How a model is measured: fast, and with the same bits for any number of threads."""

from concurrent.futures import ThreadPoolExecutor

import torch
from torch import Tensor

from benchmark.engines.flat import in_channels_last
from benchmark.engines.threads import prepare_thread
from tasks import Samples, Task

PIECE = 64
"""Images that a CPU's caches hold together with what a small network makes of them."""


class Evaluator:
    """Measures batches of samples. On a CPU images are measured in pieces, one piece a thread.

    Args:
        task: in evaluation mode, with its parameters where they are to be measured.
        workers: threads.
    """

    def __init__(self, task: Task, workers: int = 1) -> None:
        self.task = task
        self.channels_last: bool | None = None
        self.pool = ThreadPoolExecutor(workers, initializer=prepare_thread)

    def metrics(self, batch: Samples) -> dict[str, Tensor]:
        """See `tasks.Task.metrics`."""
        images = any(column.dim() == 4 for column in batch)
        # Autocast is a thread's own affair.
        if not images or batch[0].device.type != "cpu" or torch.is_autocast_enabled("cpu"):
            return self.task.metrics(batch)
        pieces = list(zip(*(column.split(PIECE) for column in batch), strict=True))
        if self.channels_last is None:
            self.channels_last = self._takes_channels_last(pieces[0])
        found = list(self.pool.map(self._piece, pieces))
        return {name: self._joined([one[name] for one in found], batch) for name in found[0]}

    def _piece(self, piece: Samples) -> dict[str, Tensor]:
        with torch.inference_mode():
            return self.task.metrics(in_channels_last(piece) if self.channels_last else piece)

    def _takes_channels_last(self, piece: Samples) -> bool:
        """Whether the model takes images in the layout that convolutions like; `Tensor.view` may refuse it."""
        try:
            with torch.inference_mode():
                self.task.metrics(in_channels_last(piece))
        except RuntimeError:
            return False
        return True

    def _joined(self, values: list[Tensor], batch: Samples) -> Tensor:
        """What was measured of each sample, one after another; of a piece as a whole, the mean over the samples."""
        if values[0].ndim:
            return torch.cat(values)
        sizes = torch.tensor([len(piece) for piece in batch[0].split(PIECE)], dtype=values[0].dtype)
        return torch.stack(values) @ sizes / len(batch[0])
