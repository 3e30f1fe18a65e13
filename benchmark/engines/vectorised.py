"""The vectorised engine: computes all clients of a round in one batch of kernels. Meant for GPUs."""

from collections.abc import Callable, Hashable
from contextlib import AbstractContextManager
from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

from algorithms import Rows
from benchmark.config.errors import SettingError
from benchmark.engines.chunks import ChunkSize, next_round_number
from benchmark.engines.cross_entropy import cross_entropy_by_log_sum_exp
from benchmark.engines.feed import Feed
from benchmark.engines.flat_task import FlatTask
from benchmark.engines.graphs import Kernels
from benchmark.engines.local_optimizers import StackedOptimizer
from benchmark.engines.local_training import LocalTraining
from benchmark.engines.loss_properties import Loss, is_mean_of_samples, kernels_key
from benchmark.engines.per_client_gradients import NamedTensors, PerClientGradients, split_rows
from benchmark.engines.stacked_minibatches import StackedMinibatches
from benchmark.engines.traced import EachStep, ResultsAt, Traced
from benchmark.engines.vectorised_work import VectorisedWork
from tasks import Samples

Compiler = Callable[[Callable[..., list[Tensor]]], Callable[..., list[Tensor]]]


@dataclass(frozen=True)
class Functions:
    """The gradients of clients, on minibatches of one length and on padded minibatches."""

    of_whole_batches: EachStep
    of_padded_batches: EachStep


class Vectorised:
    """See `benchmark.engines.Engine`.

    If the loss is the mean of its samples' losses (tried once, in float64), shorter minibatches are padded and the
    padding has weight 0. Otherwise (BatchNorm) clients are grouped by the length of their minibatch and nothing is
    padded, so that every module gives the same result as in the sequential engine. Full batches of clients whose
    numbers of samples all differ are then computed one by one.

    The host draws the samples of a round. It waits for the device only to learn the ids of the clients. Kernels are
    traced once for each combination of shapes, so there should be few shapes: where minibatches may be padded, the
    number of clients is too, to 1, 2, ... 8, 10, 12, 14, 16, 20, 24 ... or all.

    Args:
        model: the task. Its loss must work with `torch.func.vmap` and must not draw random numbers (dropout), because
            these would depend on the device rather than on the client.
        feed: the clients' minibatches.
        local: the clients' local training.
        workers: not used; a batch of kernels is one piece of work.
        memory: bytes for the clients computed at once; by default half of the GPU's free memory, and 1 GiB on a CPU.
        compiler: such as `torch.compile`. All minibatches are then padded to one length, so that less is compiled.
        recorder: how the kernels of a step are recorded and played back.
        context: makes the context in which the loss is computed, such as `convolutions_by_matmul`.

    Raises:
        SettingError: the loss or the local optimizer cannot be vectorised; or the loss cannot be padded although it is
            to be compiled.
    """

    def __init__(
        self,
        model: FlatTask,
        feed: Feed,
        local: LocalTraining,
        workers: int = 1,
        memory: int | None = None,
        compiler: Compiler | None = None,
        recorder: Callable[[Kernels, Hashable | None], EachStep] = Traced,
        context: Callable[[], AbstractContextManager[object]] = cross_entropy_by_log_sum_exp,
    ) -> None:
        self.model = model
        self.feed = feed
        self.local = local
        if local.optimizer is not None and not isinstance(local.optimizer, StackedOptimizer):
            raise SettingError(
                "numerics.engine: 'vectorised' is not allowed with a local optimizer from outside; must be sequential"
            )
        loss, few = Loss(model.task, context), spread_samples(feed.samples)
        self.shapes = [parameter.shape for parameter in model.parameters_]
        self.per_client = PerClientGradients(loss, [f"task.{name}" for name in model.buffer_names])
        self.padding = not model.buffer_names and is_mean_of_samples(loss, few)
        plain = local.optimizer is None and local.clip_norm is None
        self.chunk_size = ChunkSize.measured(model, loss, few, memory, copies=4 if plain else 10)
        key = context, kernels_key(model.task)
        of = self.per_client
        self.with_losses = Functions(recorder(of.of_whole_batches, key), recorder(of.of_padded_batches, key))
        self.without_losses = Functions(
            recorder(of.gradients_of_whole_batches, key), recorder(of.gradients_of_padded_batches, key)
        )
        self.compiled = False
        self.shortest = 0
        self._try(few)
        if compiler is not None:
            self._compile(compiler)

    def round(self, t: int, lr: float, momentum: Rows | None = None) -> VectorisedWork:
        return VectorisedWork(self, t, lr, momentum)

    def gradients_of_steps(self, pieces: list[Tensor], minibatches: StackedMinibatches, losses: bool) -> ResultsAt:
        """The gradients of clients in each step, in the shapes of the parameters, then their losses if asked for.

        For models without buffers.

        Args:
            pieces: the clients' models, as `split` gives them, which may change between steps.
            minibatches: of all steps.
            losses: whether losses are needed.
        """
        functions = self.with_losses if losses else self.without_losses
        weights = minibatches.weights
        if self.compiled and weights is None:
            weights = pieces[0].new_full(minibatches.samples[0].shape[:3], 1 / minibatches.samples[0].shape[2])
        if weights is None:
            return functions.of_whole_batches.at_steps(pieces, minibatches.samples)
        return functions.of_padded_batches.at_steps(pieces, (*minibatches.samples, weights))

    def differentiate(
        self, x: Float[Tensor, "a d"], buffers: NamedTensors, batch: Samples
    ) -> tuple[list[Tensor], Float[Tensor, "a"], NamedTensors]:
        """Gradients (in the shapes of the parameters), losses and next buffers of clients, on batches [a, b, ...]."""
        function = self.with_losses.of_whole_batches
        results = function.at_steps([*self.split(x), *buffers.values()], [column[None] for column in batch])(0)
        n = len(self.shapes)
        return results[:n], results[n], dict(zip(buffers, results[n + 1 :], strict=True))

    def padded_number(self, clients: int) -> int:
        """How many clients are computed in the place of so many: see `Vectorised`."""
        return next_round_number(clients, len(self.feed.minibatches.parts)) if self.padding else clients

    def split(self, x: Float[Tensor, "a d"]) -> list[Tensor]:
        """The rows as views in the shapes of the parameters, clients first."""
        return split_rows(x, self.shapes)

    def _try(self, samples: Samples) -> None:
        """Refuse, before the first round, a loss that cannot be vectorised."""
        batch = tuple(column.expand(2, *column.shape) for column in samples)
        try:
            self.differentiate(self.model.vector().expand(2, -1), self.per_client.server_buffers(2), batch)
        except RuntimeError as error:
            raise SettingError(
                "numerics.engine: 'vectorised' is not allowed with this model; must be sequential. torch.func.vmap "
                f"cannot vectorise its loss: {str(error).splitlines()[0]}"
            ) from error

    def _compile(self, compiler: Compiler) -> None:
        """Compile the gradients of padded minibatches, and pad all minibatches to the longest."""
        if not self.padding:
            raise SettingError(
                "numerics.engine: 'compiled' is not allowed with this model, in which the samples of a batch depend on "
                "each other; must be vectorised or sequential"
            )
        self.compiled = True
        size = self.feed.minibatches.size
        most_samples = int(self.feed.minibatches.parts.sizes.max())
        self.shortest = most_samples if size == "full" else min(most_samples, size)
        compiled, n = compiler(self.per_client.of_padded_batches), len(self.shapes)
        with_losses, without = EachStep(compiled), EachStep(lambda *tensors: compiled(*tensors)[:n])
        self.with_losses, self.without_losses = Functions(with_losses, with_losses), Functions(without, without)


def spread_samples(samples: Samples) -> Samples:
    """Eight samples from all over the data. Neighbours may share a label, which could hide how samples interact."""
    rows = torch.linspace(0, len(samples[0]) - 1, 8).long()
    return tuple(column[rows.to(column.device)] for column in samples)
