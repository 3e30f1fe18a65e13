"""What an algorithm is, and what a round gives it.

Models are flat vectors: the server's x is [d], those of clients are [a, d]. An algorithm calls the clients through
`LocalWork`, as often and from where it likes, so two passes, stale starting points and control variates need nothing
from the loop around it.
"""

from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Generic, Literal, Protocol, TypeVar, runtime_checkable

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor


@dataclass(frozen=True)
class Setting:
    """What is the same in all rounds of a run, for a method to refuse what makes no sense.

    Attributes:
        steps: K, local steps; None where clients take different numbers of them (epochs).
        plain_server: whether the server just adds the update to its model: rate 1, no momentum, no adaptivity.
        momentum: of the clients' SGD.
    """

    steps: int | None
    plain_server: bool = True
    momentum: float = 0.0


@dataclass(frozen=True)
class Round:
    """One round as an algorithm sees it.

    Attributes:
        t: the round, from 0.
        active: ids [a] of the clients whose uplink is on, ascending; may be empty.
        lr: eta, the local learning rate of this round.
        alpha: [m], the clients' weights in the objective sum_i alpha_i F_i, which sum to 1.
        seed: the trial's; see `generator`.
        probability: p_i^t [m], stationary: pi [m], correlation: lambda [m], share: c_i = E[1{i in A}/a] [m]: what an
            oracle may be told by the participation model; None where it does not know, or was not asked.
        least_loss: F*_i [m], the least training loss of each client; None where the task does not know, or not asked.
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

    @property
    def clients(self) -> int:
        """m, the number of all clients."""
        return len(self.alpha)

    def generator(self) -> torch.Generator:
        """For a method's own draws (on the CPU): a function of (seed, t), so that resuming a run repeats them."""
        key = np.random.SeedSequence((self.seed, self.t)).generate_state(1, np.uint64)
        return torch.Generator().manual_seed(int(key[0] >> 1))


@runtime_checkable
class LocalWork(Protocol):
    """The clients of one round, as the engine supplies them. No method changes what it is given.

    In one round step k of client i always meets the same minibatch, whoever asks and however often.
    """

    @property
    def steps(self) -> int:
        """K, the number of local steps; where clients take different numbers of them (epochs), the largest K_i."""
        ...

    def steps_of(self, clients: Int[Tensor, "a"]) -> Int[Tensor, "a"]:
        """K_i of each client."""
        ...

    def gradients(
        self, clients: Int[Tensor, "a"], x: Float[Tensor, "a d"], step: int
    ) -> tuple[Float[Tensor, "a d"], Float[Tensor, "a"]]:
        """Gradients g_i [a, d] and losses [a] at x on each client's minibatch of a local step.

        With weight decay a gradient has weight_decay x added, and the loss is without it, as in torch.
        """
        ...

    def losses(self, clients: Int[Tensor, "a"], x: Float[Tensor, "a d"], split: str) -> Float[Tensor, "a"]:
        """Each client's mean loss [a] at x over all that it holds of a split, such as `validation`.

        Raises:
            ValueError: the split is not there, or belongs to no clients.
        """
        ...

    def sgd(
        self,
        clients: Int[Tensor, "a"],
        start: Float[Tensor, "a d"],
        *,
        scale: Float[Tensor, "a"] | None = None,
        correct: Float[Tensor, "a d"] | None = None,
    ) -> Float[Tensor, "a d"]:
        """x_i(K) [a, d] after K_i steps `y -= eta * scale_i * v` from start, v = momentum * v + g_i(y) + correct_i."""
        ...


def local_steps(
    clients: Int[Tensor, "a"], K: Int[Tensor, "a"]
) -> Iterator[tuple[int, Int[Tensor, "n"], slice | Int[Tensor, "n"]]]:
    """Steps k = 0, 1, ... of clients that take K_i of them.

    Yields:
        k, the clients that take this step, and their rows among all of them.
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


@dataclass(frozen=True)
class Traffic:
    """Vectors of the model's length that a round sends; single numbers beside them are not counted.

    Attributes:
        up: from clients to the server.
        down: from the server to clients.
    """

    up: int
    down: int


@dataclass(frozen=True)
class Properties:
    """What a method says of itself; `rollcall check` holds it to it. The defaults are what a debiasing method claims.

    Attributes:
        limit: where the server's model ends on quadratics with K = 1, a small rate and uplinks that are independent
            and biased: at the `optimum`, at the `optimum on average` over rounds, on average at the optimum of
            sum_i c_i F_i (`shares`: c_i = E[1{i in A}/a]) or of sum_i p_i F_i (`probabilities`), or `elsewhere`.
        asks_all: whether clients without an uplink compute too.
        ages: the fields of its state in which a silent client's row changes as well.
        step: with full participation and K = 1 the first round is a step of gradient descent on F of size eta
            (`mean`), m eta (`sum`), or `some` other; or each of its `coordinates` has a size of its own.
        linear: whether all it does with clients' vectors is to add, scale and store them (`evaluation.weights`);
            `rollcall check` takes its word for it.
    """

    limit: Literal["optimum", "optimum on average", "shares", "probabilities", "elsewhere"] = "optimum on average"
    asks_all: bool = False
    ages: tuple[str, ...] = ()
    step: Literal["mean", "sum", "some", "coordinates"] = "mean"
    linear: bool = True


State = TypeVar("State")


class Algorithm(ABC, Generic[State]):
    """A federated method; as a rule a frozen dataclass whose fields are its hyper-parameters.

    Its state is a dataclass of tensors (or of such dataclasses), those per client with clients first; vectors of
    clients in `Rows`, which stores those of clients that have taken part. The engine carries the state from round to
    round and through checkpoints and never looks inside.
    """

    @property
    def properties(self) -> Properties:
        """What it says of itself, for `rollcall check`; like `requires` as a rule the same for all its options."""
        return Properties()

    @property
    def requires(self) -> tuple[str, ...]:
        """What of the oracle's knowledge it is to be told, and cannot do without: names of fields of `Round`."""
        return ()

    def check(self, setting: Setting) -> None:
        """Refuse a setting that makes no sense, before the run.

        Raises:
            ValueError: reading `field: value is not allowed with ...; must be ...`.
        """

    @abstractmethod
    def init(self, x: Float[Tensor, "d"], clients: int) -> State:
        """The state before round 0, given the initial server model and m."""

    @abstractmethod
    def round(
        self, state: State, x: Float[Tensor, "d"], call: Round, work: LocalWork
    ) -> tuple[Float[Tensor, "d"] | None, State]:
        """One round: the update of the server model and the next state.

        The update is what is to be added to x, a negative pseudo-gradient for the server's optimizer. None stands for a
        round without a server step, which no optimizer's momentum may move either. Neither state nor x is changed.
        """

    def eval_model(self, state: State, x: Float[Tensor, "d"]) -> Float[Tensor, "d"]:
        """The model to evaluate: the server's, unless the paper says otherwise."""
        return x

    def traffic(self, state: State, call: Round) -> Traffic:
        """What a round sent that ended in this state: one model each way for every active client, as a rule."""
        return Traffic(up=len(call.active), down=len(call.active))


@dataclass(frozen=True)
class Nothing:
    """The state of a method that remembers nothing."""


class Memoryless(Algorithm[Nothing]):
    """A method whose rounds are connected by the server's model alone."""

    def init(self, x: Float[Tensor, "d"], clients: int) -> Nothing:
        return Nothing()


def refuse_server_optimizer(name: str, setting: Setting) -> None:
    """For a method whose clients hold the server's model too, which a server optimizer would set apart from theirs.

    Raises:
        ValueError: the server does more than add the update.
    """
    if not setting.plain_server:
        raise ValueError(
            f"server: an optimizer of its own is not allowed with {name}, whose clients hold the server's model too; "
            "must be sgd with lr 1 and no momentum"
        )


def refuse_local_steps(name: str, setting: Setting) -> None:
    """For a method that takes one gradient a round.

    Raises:
        ValueError: more than one local step.
    """
    if setting.steps != 1:
        given = "local.epochs: several minibatches" if setting.steps is None else f"local.steps: {setting.steps}"
        raise ValueError(f"{given} is not allowed with {name}, which takes one gradient a round; must be 1 step")


def refuse_momentum(name: str, setting: Setting) -> None:
    """For a method whose clients step along directions of its own, which momentum would mix with older ones.

    Raises:
        ValueError: the clients' SGD has momentum.
    """
    if setting.momentum:
        raise ValueError(
            f"local.momentum: {setting.momentum:g} is not allowed with {name}, whose clients step along directions of "
            "its own; must be 0"
        )
