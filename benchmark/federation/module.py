"""The federated loop as a LightningModule: one round is one training step."""

import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, replace
from itertools import count
from typing import Any

import numpy as np
import torch
from jaxtyping import Float
from lightning.pytorch import LightningModule
from torch import Tensor, nn
from torch.utils._pytree import tree_map

from rollcall.algorithms import Algorithm, Round, Rows, Traffic
from rollcall.benchmark.engines import ENGINES, Engine, Evaluator, Feed, FlatTask, LocalTraining, held_out_splits
from rollcall.benchmark.federation.checked import check_eval_models, check_round, check_traffic
from rollcall.benchmark.federation.client_weights import Classes, Weights
from rollcall.benchmark.federation.evaluation import Costs, Groups, Tally, named
from rollcall.benchmark.federation.state import StateBuffers
from rollcall.participation import Participation
from rollcall.tasks import Batches, ClientData, Minibatches, Samples, Task
from rollcall.tasks.metrics import TaskMetric


class Federation(LightningModule):
    """A server, its clients and one algorithm.

    The server's model is the trained parameter. The negative of the algorithm's update is its gradient, and a torch
    optimizer applies it. The rest of a checkpoint is buffers and the number of the round.

    Args:
        task: its trained parameters are the initial model.
        data, participation, algorithm, minibatches, local: see their classes.
        lr: eta of round t.
        alpha: [m], the clients' weights in the objective.
        optimizer: makes the server's optimizer from its parameters.
        splits_at: the splits of the data to evaluate after t rounds.
        seed: of the algorithm's random numbers.
        groups: of samples whose metrics are also computed separately.
        metrics: besides the means of the task's own.
        engine_name: in `rollcall.benchmark.engines.ENGINES`.
        classes: of clients, to measure their cumulative weights; None for no measurement.
        workers: threads that compute side by side; see `rollcall.benchmark.engines.kernels_of_one_thread`.
        content: digest of the data, where the user's own code makes them.

    Attributes:
        t: rounds done, which is also the number of the next round.
        costs: of these rounds.
        measured: the last evaluation, `split/metric` to value.
    """

    def __init__(
        self,
        task: Task,
        data: ClientData,
        participation: Participation,
        algorithm: Algorithm[Any],
        *,
        minibatches: Minibatches,
        local: LocalTraining,
        lr: Callable[[int], float],
        alpha: Float[np.ndarray, "m"],
        optimizer: Callable[[list[nn.Parameter]], torch.optim.Optimizer],
        splits_at: Callable[[int], Sequence[str]],
        seed: int,
        groups: Sequence[Groups] = (),
        metrics: Mapping[str, TaskMetric] | None = None,
        engine_name: str = "auto",
        classes: Classes | None = None,
        workers: int = 1,
        content: str = "",
    ) -> None:
        super().__init__()
        self.automatic_optimization = False
        self.data, self.participation, self.algorithm = data, participation, algorithm
        self.minibatches, self.local, self.lr, self.alpha = minibatches, local, lr, alpha
        self.optimizer, self.splits_at, self.seed = optimizer, splits_at, seed
        self.groups, self.metrics = groups, metrics or {}
        self.engine_name, self.workers, self.content = engine_name, workers, content
        self.model = FlatTask(task)
        self.evaluator = Evaluator(task, workers)
        self.server: nn.Parameter = nn.Parameter(self.model.vector())
        x, clients = self.server.detach(), data.clients
        self.state = StateBuffers(algorithm.init(x, clients))
        self.momentum: StateBuffers | None = None
        if local.keep_momentum:
            self.momentum = StateBuffers(Rows.begin(torch.zeros_like(x), clients))
        self.weights = None if classes is None else Weights(algorithm, classes, x.dtype)
        self.weighted = bool(np.ptp(alpha) > 0)
        self.t = 0
        self.costs = Costs(seconds=None if participation.seconds(0) is None else 0.0)
        self.measured: dict[str, float] = {}
        self._checked: set[Callable[..., None]] = set()

    @property
    def eval_models(self) -> dict[str, Tensor]:
        """The models [d] that are evaluated, by name: see `rollcall.algorithms.Algorithm.eval_models`."""
        models = self.algorithm.eval_models(self.state.get(), self.server.detach())
        self._check_once(check_eval_models, models, self.server)
        return models

    def on_save_checkpoint(self, checkpoint: dict[str, Any]) -> None:
        """Make NumPy's numbers in states of optimizers and callbacks Python's: checkpoints are loaded without NumPy."""

        def plain(value: Any) -> Any:
            return value.item() if isinstance(value, np.generic) else value

        for key in {"optimizer_states", "callbacks"} & checkpoint.keys():  # weights alone have neither
            checkpoint[key] = tree_map(plain, checkpoint[key])

    def on_fit_start(self) -> None:
        self.begin()

    def begin(self, engine: Engine | None = None) -> None:
        """Make the engine, unless one is given, and the method's oracle knowledge."""
        if engine is None:
            samples = tuple(column.to(self.device) for column in self.data.splits["train"])
            feed = Feed(self.model.task, samples, self.minibatches, held_out_splits(self.data, self.device))
            engine = ENGINES[self.engine_name](self.model, feed, self.local, self.workers)
        self.engine = engine
        self.known: dict[str, Tensor] = {"alpha": self._vector(self.alpha)}
        for name in self.algorithm.requires:
            if name == "least_loss":
                self.known[name] = self._vector(self.model.task.least_losses(self.data))
            elif name != "probability":
                self.known[name] = self._vector(getattr(self.participation, name))

    def training_step(self, batch: int, batch_idx: int) -> None:
        call = self._call(self.t)
        work = self.engine.round(self.t, call.lr, None if self.momentum is None else self.momentum.get())
        with torch.no_grad(), torch.autocast(self.device.type, enabled=False):  # the clients' work has its own
            before, x = self.state.get(), self.server.detach()
            returned = self.algorithm.round(before, x, call, work)
            if len(call.active):
                self._check_once(check_round, returned, before, x)
            update, state = returned
            traffic = self.algorithm.traffic(state, call)
            self._check_once(check_traffic, traffic)
            # The server's BatchNorm statistics become the mean of those of the clients that computed and are heard.
            heard = call.active
            if self.algorithm.properties.asks_all:
                nobody = replace(call, active=call.active[:0])
                if self.algorithm.traffic(state, nobody).up > 0:  # all clients send, as in local SGD
                    heard = torch.arange(call.clients, device=self.device)
            for buffer, mean in zip(self.model.buffers_(), work.buffers(heard) or (), strict=False):
                buffer.copy_(mean)
            if self.weights is not None:
                self.weights.round(call, work)
        gradients = work.gradient_count
        if call.late is not None and len(call.late) and not self.algorithm.properties.asks_all:
            # Those that received a model took their local steps, of which no engine computes anything.
            received = self.algorithm.traffic(state, replace(call, active=call.computing))
            traffic = Traffic(traffic.up, received.down)
            if type(self.algorithm).traffic is Algorithm.traffic:
                alone = [1] * len(call.late)
            else:
                alone = [self.algorithm.traffic(state, replace(call, active=one)).down for one in call.late[:, None]]
            gradients += sum(K for K, down in zip(self.local.of(call.late.tolist()), alone, strict=True) if down)
        self.costs.add(gradients, traffic, len(self.server), self.participation.seconds(self.t))
        # Without a gradient a torch optimizer leaves x and its momenta alone, while Lightning still counts the step.
        self.server.grad = None if update is None else -update
        self.optimizers().step()  # type: ignore[union-attr]
        self.state.set(state)
        if self.momentum is not None:
            self.momentum.set(work.momentum)
        self.t += 1

    def _check_once(self, check: Callable[..., None], *returned: Any) -> None:
        """Check the first value that a method of the algorithm returns; checks in every round would cost time."""
        if check not in self._checked:
            check(self.algorithm, *returned)
            self._checked.add(check)

    def _call(self, t: int) -> Round:
        known = dict(self.known)
        if "probability" in self.algorithm.requires:
            known["probability"] = self._vector(self.participation.probability(t))
        late = self.participation.late(t)
        return Round(
            t,
            self._with_samples(self.participation.active(t)),
            self.lr(t),
            seed=self.seed,
            late=None if late is None else self._with_samples(late),
            weighted=self.weighted,
            **known,
        )

    def _with_samples(self, clients: np.ndarray) -> Tensor:
        """Those of the clients that have training samples."""
        return torch.from_numpy(clients[self.data.parts.sizes[clients] > 0]).to(self.device)

    def _vector(self, values: Any) -> Tensor:
        return torch.tensor(values, dtype=self.server.dtype, device=self.device)

    def configure_optimizers(self) -> torch.optim.Optimizer:
        return self.optimizer([self.server] if self.weights is None else [self.server, self.weights.cumulative])

    def transfer_batch_to_device(self, batch: Any, device: torch.device, dataloader_idx: int) -> Any:
        # The number of a round need not be searched for tensors.
        return batch if isinstance(batch, int) else super().transfer_batch_to_device(batch, device, dataloader_idx)

    def train_dataloader(self) -> Iterable[int]:
        # The content of a round follows from `t`. Without a last batch, a finished run can be continued.
        return count()

    @property
    def evaluated_splits(self) -> list[str]:
        """The splits that are evaluated before the last rounds or in them. No sample of another split is read."""
        due = {*self.splits_at(0), *self.splits_at(sys.maxsize)}
        return [split for split in self.data.splits if split in due]

    def val_dataloader(self) -> list[Batches]:
        return [self.data.evaluation(split) for split in self.evaluated_splits]

    def on_validation_epoch_start(self) -> None:
        self._models = self.eval_models
        self._sizes = {split: len(self.data.splits[split][0]) for split in self.splits_at(self.t)}
        self._tallies = {name: Tally(self._sizes, self.groups, self.metrics) for name in self._models}
        self.model.move(self._models[""])

    def validation_step(self, batch: Samples, batch_idx: int, dataloader_idx: int = 0) -> None:
        split = self.evaluated_splits[dataloader_idx]
        if split not in self._sizes:  # Lightning iterates over all loaders, also of splits that are not due now
            return
        for name, model in self._models.items():
            if len(self._models) > 1:
                self.model.move(model)
            first = batch_idx * self.data.evaluation_batch
            self._tallies[name].take(split, first, len(batch[0]), self.evaluator.metrics(batch))
            if self._tallies[name].accumulated[split]:
                self._tallies[name].take_outputs(split, *self.evaluator.outputs(batch))

    def on_validation_epoch_end(self) -> None:
        self.measured = {}
        for name, tally in self._tallies.items():
            self.measured |= named(tally.means() | tally.scores(), name)
        self.measured |= {} if self.weights is None else self.weights.measured()
        self.measured |= self.costs.named(memory=sum(buffer.numel() for buffer in self.state.buffers()))
        # Not `log_dict`, which takes 3 ms an evaluation and rounds to float32.
        for logger in self.trainer.loggers:
            logger.log_metrics(self.measured, step=self.t)
        # Callbacks such as EarlyStopping read tensors here.
        columns = {name: torch.tensor(value, dtype=torch.float64) for name, value in self.measured.items()}
        self.trainer.callback_metrics.update(columns)

    def get_extra_state(self) -> dict[str, Any]:
        return {"t": self.t, "costs": asdict(self.costs)}

    def set_extra_state(self, state: dict[str, Any]) -> None:
        self.t = state["t"]
        self.costs = Costs(**state["costs"])
