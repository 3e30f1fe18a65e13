"""The interface of an algorithm, its inputs in each round, and its memory of each client.

Models are flat vectors: the server's model is [d], clients' models are [a, d]. An algorithm calls the clients through
`LocalWork`, as often as it needs and from any starting point. So two passes, stale starting points and control variates
need no support from the training loop.

Notation in all files of this package::

    t             round, from 0
    m, A, a       number of clients; set of active clients; its size |A|
    x [d]         server model at the start of the round
    K, K_i        local steps (K_i if they differ by client)
    g_i(x) [d]    minibatch gradient of client i at x
    x_i(K) [d]    model of client i after K local SGD steps
    D_i [d]       update of client i, as a rule x_i(K) - x
    eta, eta_g    local learning rate; server learning rate (that of the server's optimizer)
"""

from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass, field, fields
from typing import Annotated, ClassVar, Generic, Literal, Protocol, TypeAlias, TypeVar, get_args, runtime_checkable

import numpy as np
import torch
from annotated_types import Ge, Gt, Le, Lt
from jaxtyping import Bool, Float, Int
from torch import Tensor

# Values that an experiment file may give to hyper-parameters.
Count: TypeAlias = Annotated[int, Ge(1)]
Rounds: TypeAlias = Annotated[int, Ge(0)]
Positive: TypeAlias = Annotated[float, Gt(0)]
NonNegative: TypeAlias = Annotated[float, Ge(0)]
Fraction: TypeAlias = Annotated[float, Gt(0), Le(1)]
Decay: TypeAlias = Annotated[float, Ge(0), Lt(1)]

Vector: TypeAlias = Float[Tensor, "d"]
"""A model or an update, [d]."""


@dataclass(frozen=True)
class TrainingSetup:
    """Settings that are the same in all rounds of a run, for `Algorithm.check`.

    Attributes:
        steps: K, local steps; None if clients take different numbers of steps (epochs).
        plain_server: whether the server adds the update to its model as it is: SGD with lr 1 and no momentum.
        momentum: momentum of the clients' SGD.
        keep_momentum: whether the clients' momentum is kept over rounds.
        method: the method's name, for messages.
    """

    steps: int | None
    plain_server: bool = True
    momentum: float = 0.0
    keep_momentum: bool = False
    method: str = "this method"

    def need(self, *needs: str) -> None:
        """Raise ValueError unless the settings meet these `Algorithm.needs`."""
        steps = "local.epochs" if self.steps is None else f"local.steps: {self.steps}"
        momentum, server = f"local.momentum: {self.momentum:g}", "server: another optimizer or rate"
        plain = "sgd with lr 1 and no momentum"
        rules = {
            "one_step": (self.steps == 1, steps, "which uses one gradient in each round", "local.steps: 1"),
            "no_momentum": (not self.momentum, momentum, "which changes the direction of local steps itself", "0"),
            "plain_server": (self.plain_server, server, "which sets the server's model itself", plain),
        }
        for name in needs:
            if name not in rules:
                must = f"must be a tuple of names out of {', '.join(rules)}"
                raise ValueError(f"needs: {name!r} is not allowed in {self.method}; {must}")
            met, value, because, allowed = rules[name]
            if not met:
                raise ValueError(f"{value} is not allowed with {self.method}, {because}; must be {allowed}")


@dataclass(frozen=True)
class Round:
    """An algorithm's knowledge of one round.

    The fields from `probability` on are oracle knowledge. They are None unless the algorithm names them in `requires`
    and the participation model or the task knows them.

    Attributes:
        t: the round, from 0.
        active: [a], ids of the clients whose uplink is on and, with a clock, that are in time; ascending; may be empty.
        lr: eta, the local learning rate of this round.
        alpha: [m], weights of the clients in the objective sum_i alpha_i F_i; they sum to 1.
        seed: the trial's seed; see `generator`.
        probability: [m], p_i^t, probability that each client is active in this round.
        stationary: [m], pi_i, long-run share of rounds in which each client is active.
        correlation: [m], lambda_i, the second eigenvalue of each client's chain: the lag-1 autocorrelation of its
            participation if probabilities do not change over time.
        share: [m], c_i = E[1{i in A} / a], expected weight of each client in the mean over A.
        least_loss: [m], F*_i, least training loss of each client.
        late: [l], ids of the clients that compute but whose upload is late or fails; known with a clock, else None.
        weighted: whether the weights alpha differ.
    """

    t: int
    active: Int[Tensor, "a"]
    lr: float
    alpha: Float[Tensor, "m"]
    seed: int = 0
    probability: Float[Tensor, "m"] | None = None
    stationary: Float[Tensor, "m"] | None = None
    correlation: Float[Tensor, "m"] | None = None
    share: Float[Tensor, "m"] | None = None
    least_loss: Float[Tensor, "m"] | None = None
    late: Int[Tensor, "l"] | None = field(default=None, kw_only=True)
    weighted: bool = field(default=False, kw_only=True)

    @property
    def computing(self) -> Int[Tensor, "n"]:
        """Ids of the clients that can compute, ascending: with a clock the active and the late ones, else all."""
        if self.late is None:
            return torch.arange(self.clients, device=self.active.device)
        return torch.cat([self.active, self.late]).sort().values

    @property
    def clients(self) -> int:
        """m, the number of all clients."""
        return len(self.alpha)

    def mean(self, rows: Float[Tensor, "a d"]) -> Vector:
        """The mean of the active clients' rows, weighted by alpha_i / sum over A of alpha_j."""
        if not self.weighted:
            return rows.mean(dim=0)
        return normalised(self.alpha[self.active]) @ rows

    def relative(self, rows: Float[Tensor, "a *d"]) -> Float[Tensor, "a *d"]:
        """The active clients' rows times m alpha_i, which is 1 if the weights are equal."""
        if not self.weighted:
            return rows
        return rows * (self.clients * self.alpha[self.active]).reshape(-1, *(1,) * (rows.ndim - 1))

    def generator(self) -> torch.Generator:
        """A CPU generator for the method's own draws; depends on (seed, t) only, so that a resumed run repeats them."""
        key = np.random.SeedSequence((self.seed, self.t)).generate_state(1, np.uint64)
        return torch.Generator().manual_seed(int(key[0] >> 1))


def normalised(weights: Float[Tensor, "a"]) -> Float[Tensor, "a"]:
    """The weights divided by their sum; zeros if all are 0."""
    return weights / weights.sum().clamp(min=torch.finfo(weights.dtype).tiny)


KNOWLEDGE = tuple(one.name for one in fields(Round) if one.default is None and not one.kw_only)
"""Oracle knowledge: the fields of `Round` that are None unless an algorithm names them in `requires`."""


@dataclass(frozen=True)
class Traffic:
    """up: from clients to the server; down: from the server to clients."""

    up: int
    down: int


@runtime_checkable
class LocalWork(Protocol):
    """The clients of one round, as the engine provides them. No method changes its arguments.

    Within a round, step k of client i always uses the same minibatch, however often it is computed.
    """

    @property
    def steps(self) -> int:
        """K, the number of local steps; the largest K_i if clients take different numbers of steps (epochs)."""

    def steps_of(self, clients: Int[Tensor, "a"]) -> Int[Tensor, "a"]:
        """K_i [a], the number of local steps of each client."""

    def gradients(
        self, clients: Int[Tensor, "a"], x: Float[Tensor, "a d"], step: int
    ) -> tuple[Float[Tensor, "a d"], Float[Tensor, "a"]]:
        """Minibatch gradients and losses at x. Gradients are clipped to the norm `local.clip`, if it is set.

        With the weight decay of SGD, weight_decay * x is added to the gradient but not to the loss, as in torch.

        Args:
            clients: [a], ids.
            x: [a, d], where each client computes its gradient.
            step: local step k, which selects the minibatch.
        """

    def losses(self, clients: Int[Tensor, "a"], x: Float[Tensor, "a d"], split: str) -> Float[Tensor, "a"]:
        """Mean loss [a] at x over all samples of a split that each client holds; NaN for a client without any.

        A method that uses these losses must assign a loss to such a client: `CAFed` gives it the others' mean.

        Raises:
            ValueError: the split does not exist, or its samples do not belong to clients.
        """

    def sgd(
        self,
        clients: Int[Tensor, "a"],
        start: Float[Tensor, "a d"],
        *,
        scale: Float[Tensor, "a"] | None = None,
        correct: Float[Tensor, "a d"] | None = None,
    ) -> Float[Tensor, "a d"]:
        """K_i steps of local SGD: y -= eta * scale_i * v with v = momentum * v + g_i(y) + correct_i.

        Args:
            clients: [a], ids.
            start: [a, d], where each client starts.
            scale: [a], factor of each client's learning rate. Default: 1.
            correct: [a, d], added to each client's gradients. Default: 0.

        Returns:
            x_i(K) [a, d].
        """


@dataclass(frozen=True)
class Rows:
    """A table [m, d] with one row for each client, in which clients that have not participated share one row.

    Attributes:
        values: [1 + n, d], the shared row, then the rows of the n clients that have participated, in the order of their
            first participation.
        place: [m], position of each client's row in `values`; 0 for the shared row.
    """

    values: Float[Tensor, "stored d"]
    place: Int[Tensor, "m"]

    @classmethod
    def begin(cls, row: Float[Tensor, "d"], clients: int) -> "Rows":
        """A table in which every client has this row."""
        return cls(row[None].clone(), torch.zeros(clients, dtype=torch.int64, device=row.device))

    def __getitem__(self, clients: Int[Tensor, "a"]) -> Float[Tensor, "a d"]:
        """The rows of these clients."""
        return self.values[self.place[clients]]

    def put(self, clients: Int[Tensor, "a"], rows: Float[Tensor, "a d"]) -> "Rows":
        """A new table with the rows of these clients, all different, replaced. This table is not changed."""
        place, n = self.place[clients], len(self.values)
        new = place == 0
        place = torch.where(new, n - 1 + new.cumsum(0), place)
        values = torch.cat([self.values, self.values.new_empty(int(new.sum()), self.values.shape[1])])
        values.index_copy_(0, place, rows)
        return Rows(values, self.place.index_copy(0, clients, place))

    def mean(self, weights: Float[Tensor, "m"] | None = None) -> Float[Tensor, "d"]:
        """The mean row [d] over all m clients, with weights that sum to 1 if they differ."""
        if weights is not None:
            return weights.new_zeros(len(self.values)).index_add(0, self.place, weights) @ self.values
        sharing = 1 + len(self.place) - len(self.values)
        total = self.values[1:].sum(dim=0) + sharing * self.values[0]
        return total / len(self.place)

    @property
    def stored(self) -> Bool[Tensor, "m"]:
        """[m], whether each client has a row of its own, because it has participated."""
        return self.place > 0

    def dense(self) -> Float[Tensor, "m d"]:
        """All rows [m, d]; only for small m."""
        return self[torch.arange(len(self.place), device=self.place.device)]


def local_steps(
    clients: Int[Tensor, "a"], K: Int[Tensor, "a"]
) -> Iterator[tuple[int, Int[Tensor, "n"], slice | Int[Tensor, "n"]]]:
    """Iterate over the steps k = 0, 1, ... of clients that take K_i steps each.

    Yields:
        k, the ids of the clients that take this step [n], and their positions in `clients`.
    """
    if len(clients) == 0:
        return
    fewest, most = int(K.min()), int(K.max())
    for k in range(most):
        if k < fewest:
            yield k, clients, slice(None)
        else:
            rows = (k < K).nonzero().flatten()
            yield k, clients[rows], rows


Limit: TypeAlias = Literal["optimum", "optimum on average", "shares", "probabilities", "elsewhere"]
Step: TypeAlias = Literal["mean", "sum", "some", "coordinates"]


@dataclass(frozen=True)
class Properties:
    """Declared properties of a method, which `rollcall check` tests. The defaults suit a debiasing method.

    Attributes:
        limit: where the server's model converges on quadratics with K = 1, a small learning rate and independent,
            unequal participation probabilities. `optimum`: to the optimum. `optimum on average`: to it on average over
            rounds. `shares`: on average to the optimum of sum_i c_i F_i with c_i = E[1{i in A} / a]. `probabilities`:
            on average to the optimum of sum_i p_i F_i. `elsewhere`: no claim.
        asks_all: whether inactive clients compute too.
        changes_while_inactive: fields of the state in which the row of an inactive client changes too.
        step: the first round with full participation and K = 1, as a step of gradient descent on F: of size eta
            (`mean`), of size m eta (`sum`), another (`some`), or of a size for each coordinate (`coordinates`).
        linear: whether it only adds, scales and stores the clients' vectors, which `evaluation.weights` needs. Not
            tested by `rollcall check`.
        stores: who keeps a vector for each client between rounds: the server, the clients, or nobody. Not tested.
        weights: whether it weights clients by alpha_i. Only then `target` may be other than `uniform`.
    """

    limit: Limit = "optimum on average"
    asks_all: bool = False
    changes_while_inactive: tuple[str, ...] = ()
    step: Step = "mean"
    linear: bool = True
    stores: Literal["", "server", "clients"] = ""
    weights: bool = False

    def __post_init__(self) -> None:
        """Raise ValueError for values that no check knows."""
        for name, allowed in (("limit", get_args(Limit)), ("step", get_args(Step))):
            value = getattr(self, name)
            if value not in allowed:
                raise ValueError(f"Properties.{name}: {value!r} is not allowed; must be one of {', '.join(allowed)}")
        if isinstance(names := self.changes_while_inactive, str):
            raise ValueError(f"Properties.changes_while_inactive: {names!r} is not allowed; must be a tuple of names")


State = TypeVar("State")


class Algorithm(ABC, Generic[State]):
    """A federated learning algorithm; usually a frozen dataclass whose fields are its hyper-parameters.

    Its state is a dataclass of tensors, or of such dataclasses. In per-client tensors the client is the first
    dimension. Vectors of clients are kept in `Rows`, which stores only those of clients that have participated. The
    training loop passes the state from round to round and saves it in checkpoints; it does not read it.

    Attributes:
        needs: what the settings of a run must meet: `one_step` (K = 1), `no_momentum` (of the clients' SGD) and
            `plain_server` (its optimizer is SGD with lr 1 and no momentum).
    """

    needs: ClassVar[tuple[str, ...]] = ()

    @property
    def search_space(self) -> str:
        """The option that a board searches besides the rates, at most one, with its domain: `beta=uniform(0,1)`."""
        return ""

    @property
    def properties(self) -> Properties:
        """Declarations for `rollcall check`; usually the same for all options of a method."""
        return Properties()

    @property
    def requires(self) -> tuple[str, ...]:
        """Oracle knowledge that the method needs: names out of `KNOWLEDGE`."""
        return ()

    def check(self, setting: TrainingSetup) -> None:
        """Raise for settings that the method does not allow besides `needs`, before the run starts.

        Raises:
            ValueError: in the form `field: value is not allowed with ...; must be ...`.
        """

    @abstractmethod
    def init(self, x: Vector, clients: int) -> State:
        """The state before round 0.

        Args:
            x: [d], initial server model.
            clients: m.
        """

    @abstractmethod
    def round(self, state: State, x: Vector, call: Round, work: LocalWork) -> tuple[Vector | None, State]:
        """Run one round. Neither `state` nor `x` is changed in place.

        Args:
            state: from the previous round, or from `init`.
            x: [d], server model.
            call: the active clients, the learning rate and oracle knowledge.
            work: the clients' local training.

        Returns:
            The update of x (a negative pseudo-gradient for the server's optimizer) and the next state. An update of
            None means no server step: even an optimizer with momentum does not change x.
        """

    def eval_models(self, state: State, x: Vector) -> dict[str, Vector]:
        """The models to evaluate, by name; by default only the server's.

        The model with the empty name is the method's result: the one of the paper's theorem. The metrics of another
        model end in its name: `test/accuracy/server`.
        """
        return {"": x}

    def traffic(self, state: State, call: Round) -> Traffic:
        """Vectors sent in the round that ended in this state. Default: one each way for each active client."""
        return Traffic(up=len(call.active), down=len(call.active))


@dataclass(frozen=True)
class Nothing:
    """The state of a stateless method."""


class Memoryless(Algorithm[Nothing]):
    """Base class of stateless methods: nothing but the server's model passes from round to round."""

    def init(self, x: Vector, clients: int) -> Nothing:
        return Nothing()
