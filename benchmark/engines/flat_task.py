"""A task whose parameters are one flat vector, as algorithms see a model; and its evaluation, in several threads."""

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from typing import TypeVar

import torch
from jaxtyping import Float
from torch import Tensor, nn

from rollcall.tasks import Samples, Task

Buffers = list[Tensor]
"""The learnt numbers of a model besides its parameters, for example BatchNorm running statistics."""

PIECE = 64 * 3 * 32 * 32
"""Numbers in the images of a piece: with the activations of a small network they fit in a CPU's caches."""

R = TypeVar("R")


class FlatTask(nn.Module):
    """A task that can be set to any vector of R^d, to compute its loss and metrics there.

    Args:
        task: its parameters that are trained (`requires_grad`), in their own order, make up a vector [d]. A parameter
            that several modules share is one. Frozen parameters stay as they are.
    """

    def __init__(self, task: Task) -> None:
        super().__init__()
        self.task = task
        trained = {name: parameter for name, parameter in task.named_parameters() if parameter.requires_grad}
        self.parameter_names, self.parameters_ = list(trained), list(trained.values())
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


class Evaluator:
    """Computes metrics of batches of samples, with the same bits for any number of threads.

    On a CPU, images are split into pieces, one piece per thread.

    Args:
        task: in evaluation mode, with the parameters to evaluate.
        workers: threads.
    """

    def __init__(self, task: Task, workers: int = 1) -> None:
        self.task = task
        self.channels_last: bool | None = None
        self.workers = workers
        self.pool = thread_pool(workers)

    def metrics(self, batch: Samples) -> dict[str, Tensor]:
        """See `rollcall.tasks.Task.metrics`."""
        pieces = self._pieces(batch)
        if pieces is None:
            return self.task.metrics(batch)
        metrics = self._computed(self.task.metrics, pieces)
        if any(not value.ndim for value in metrics[0].values()):  # of the batch as a whole
            return self.task.metrics(batch)
        return {name: torch.cat([piece[name] for piece in metrics]) for name in metrics[0]}

    def outputs(self, batch: Samples) -> tuple[Tensor, Tensor]:
        """See `rollcall.tasks.Task.outputs`."""
        pieces = self._pieces(batch)
        if pieces is None:
            return self.task.outputs(batch)
        predictions, targets = zip(*self._computed(self.task.outputs, pieces), strict=True)
        return torch.cat(predictions), torch.cat(targets)

    def _pieces(self, batch: Samples) -> list[Samples] | None:
        """Images on a CPU in pieces; None for other batches. Autocast is set for each thread separately."""
        numbers = sum(column[0].numel() for column in batch if column.dim() == 4)
        if not numbers or batch[0].device.type != "cpu" or torch.is_autocast_enabled("cpu"):
            return None
        return list(zip(*(torch.split(column, max(1, PIECE // numbers)) for column in batch), strict=True))

    def _computed(self, function: Callable[[Samples], R], pieces: list[Samples]) -> list[R]:
        """The results of a function for each piece."""

        @torch.inference_mode()
        def of_piece(piece: Samples) -> R:
            return function(in_channels_last(piece) if self.channels_last else piece)

        if self.channels_last is None:
            with torch.inference_mode():
                self.channels_last = accepts_channels_last(self.task.metrics, pieces[0])
        return list(map(of_piece, pieces) if self.workers == 1 else self.pool.map(of_piece, pieces))


def in_channels_last(batch: Samples) -> Samples:
    """The same samples, with images [n, c, h, w] in the memory format `channels_last`."""
    return tuple(
        column.contiguous(memory_format=torch.channels_last) if column.dim() == 4 else column for column in batch
    )


def accepts_channels_last(function: Callable[[Samples], object], batch: Samples) -> bool:
    """Whether there are images, and a function accepts them in `channels_last`, which `Tensor.view` may not."""
    if not any(column.dim() == 4 for column in batch):
        return False
    try:
        function(in_channels_last(batch))
    except RuntimeError:
        return False
    return True


@contextmanager
def kernels_of_one_thread() -> Iterator[int]:
    """Run every kernel on one thread. Yields how many threads torch may use, for work that is divided among them.

    A kernel that divides a sum among threads adds in another order, which changes the last digit of its result. The
    number of threads is restored at the end.
    """
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield threads
    finally:
        torch.set_num_threads(threads)


@contextmanager
def float32_products(precision: str) -> Iterator[None]:
    """The precision of matrix products, as in `torch.set_float32_matmul_precision`, and of a GPU's convolutions.

    By default torch computes convolutions in TF32, with 10 bits of the fraction, and by kernels that add in any order.
    Here only `tf32` does so, and the same run gives the same bits on the same GPU. It applies to the whole process and
    is restored at the end.
    """
    cudnn = torch.backends.cudnn
    products, before, deterministic, tf32 = torch.backends.cuda.matmul, None, cudnn.deterministic, None
    own = getattr(products, "fp32_precision", None)  # its name since torch 2.9
    with suppress(RuntimeError):  # the caller has set it under the new name
        before = torch.get_float32_matmul_precision()
    with suppress(RuntimeError):  # the caller has set convolutions and recurrent layers apart: they stay as they are
        tf32 = cudnn.allow_tf32
    torch.set_float32_matmul_precision(precision)
    cudnn.deterministic = True
    if tf32 is not None:
        cudnn.allow_tf32 = precision != "highest"
    try:
        yield
    finally:
        if before is None:
            products.fp32_precision = own
        else:
            torch.set_float32_matmul_precision(before)
        cudnn.deterministic = deterministic
        if tf32 is not None:
            cudnn.allow_tf32 = tf32


def thread_pool(workers: int) -> ThreadPoolExecutor:
    """Threads whose kernels run on one thread and compute no gradients; torch keeps both settings for each thread."""

    def prepare() -> None:
        torch.set_num_threads(1)
        torch.set_grad_enabled(False)

    return ThreadPoolExecutor(workers, initializer=prepare)
