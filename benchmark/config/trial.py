"""A trial: one task x participation x algorithm x seed, every setting of it validated."""

from functools import partial
from math import lcm
from pathlib import Path
from typing import Annotated, Any, Literal, TypeAlias

from pydantic import Field, NonNegativeFloat, PlainValidator, PositiveFloat, PositiveInt, model_validator

from benchmark.config.base import Settings, load_yaml, validated
from benchmark.config.digest import Spec
from benchmark.config.errors import SettingError, at
from benchmark.config.registry import Choice, read

TaskChoice = Annotated[Choice, PlainValidator(partial(read, "task"))]
ParticipationChoice = Annotated[Choice, PlainValidator(partial(read, "participation"))]
AlgorithmChoice = Annotated[Choice, PlainValidator(partial(read, "algorithm"))]
ScheduleChoice = Annotated[Choice, PlainValidator(partial(read, "schedule"))]


def _batch_size(value: Any) -> int | str:
    if value == "full" or (isinstance(value, int) and value >= 1):
        return value
    raise ValueError("must be a whole number above 0, or full")


BatchSize = Annotated[int | Literal["full"], PlainValidator(_batch_size)]


Momentum = Annotated[float, Field(ge=0, lt=1)]


class Local(Settings):
    """What a client does in a round."""

    steps: PositiveInt | None = Field(1, description="K, local SGD steps; null where epochs are given")
    epochs: PositiveInt | None = Field(
        None, description="E, passes over the client's samples, instead of steps; K_i then differs by client"
    )
    lr: PositiveFloat = Field(0.1, description="eta, before the schedule")
    batch_size: BatchSize = Field("full", description="samples a step; full: all the client has")
    last_batch: Literal["keep", "drop"] = Field("keep", description="whether an epoch ends with a short minibatch")
    momentum: Momentum = Field(0.0, description="of the clients' SGD")
    keep_momentum: bool = Field(False, description="whether a client's momentum buffer persists over its rounds")
    weight_decay: NonNegativeFloat = Field(0.0, description="of the clients' SGD: adds weight_decay x to the gradient")
    schedule: ScheduleChoice = Field(read("schedule", "constant"), description="factor of lr in round t")

    @model_validator(mode="before")
    @classmethod
    def _steps_or_epochs(cls, given: Any) -> Any:
        if isinstance(given, dict) and given.get("epochs") is not None:
            if given.get("steps") is not None:
                raise SettingError(
                    f"epochs: {given['epochs']} is not allowed beside steps; must be one of the two (steps: null)"
                )
            return given | {"steps": None}
        if isinstance(given, dict) and given.get("steps", 1) is None:
            raise SettingError("steps: null is not allowed without epochs; must be one of the two")
        return given

    @model_validator(mode="after")
    def _keeps_what_is_there(self) -> "Local":
        if self.keep_momentum and not self.momentum:
            raise SettingError("keep_momentum: true is not allowed without momentum; must be false")
        return self

    @property
    def common_steps(self) -> int | None:
        """K where it is the same for all clients whatever they hold, else None."""
        return self.epochs if self.steps is None and self.batch_size == "full" else self.steps


Decay = Annotated[float, Field(ge=0, lt=1)]


class Server(Settings):
    """The torch optimizer that applies an algorithm's update to the server model."""

    optimizer: Literal["sgd", "adam", "yogi"] = "sgd"
    lr: PositiveFloat = Field(1.0, description="eta_g")
    momentum: Momentum = Field(0.0, description="of sgd (FedAvgM)")
    weight_decay: NonNegativeFloat = Field(0.0, description="of sgd: adds weight_decay x to the gradient")
    betas: tuple[Decay, Decay] = Field((0.9, 0.99), description="of adam and yogi")
    eps: PositiveFloat = Field(1e-3, description="of adam and yogi: tau of Reddi et al.")

    @model_validator(mode="after")
    def _options_are_of_the_optimizer(self) -> "Server":
        for option in ("betas", "eps") if self.optimizer == "sgd" else ("momentum", "weight_decay"):
            value, default = getattr(self, option), type(self).model_fields[option].default
            if value != default:
                raise SettingError(f"{option}: {value} is not allowed with {self.optimizer}; must be left out")
        return self

    def options(self) -> dict[str, Any]:
        """What the optimizer is made with."""
        if self.optimizer == "sgd":
            return {"lr": self.lr, "momentum": self.momentum, "weight_decay": self.weight_decay}
        return {"lr": self.lr, "betas": self.betas, "eps": self.eps}

    @property
    def plain(self) -> bool:
        """Whether the update is just added to the server model."""
        return self == Server()


By: TypeAlias = Literal["class", "client", "availability"]
"""What groups of samples are measured by."""

Alike: TypeAlias = Literal["client", "availability", "correlation"]
"""What clients have in common whose weights are summed."""


class LastRounds(Settings):
    """The rounds at the end of a run that a table averages over."""

    rounds: PositiveInt = Field(description="how many rounds these are")
    every: PositiveInt = Field(description="rounds between two evaluations among them")
    splits: tuple[str, ...] | None = Field(None, description="splits measured there; by default those measured before")


class Evaluation(Settings):
    """When and on what the model is measured. It always is before the first round and after the last."""

    every: PositiveInt = Field(10, description="rounds between two evaluations")
    last: LastRounds | None = Field(None, description="more evaluations in the last rounds: {rounds: 100, every: 10}")
    splits: tuple[str, ...] | None = Field(None, description="of the task's data; by default all")
    by: tuple[By, ...] = Field((), description="measure groups of samples too")
    weights: tuple[Alike, ...] = Field(
        (), description="measure the clients' cumulative weights, summed over clients that are alike in all of this"
    )

    def splits_at(self, t: int, rounds: int) -> tuple[str, ...] | None:
        """The splits that are measured after t of so many rounds; None for all."""
        if self.last is not None and self.last.splits is not None and self.among_last(t, rounds):
            return self.last.splits
        return self.splits

    def among_last(self, t: int, rounds: int) -> bool:
        """Whether the model after t rounds belongs to the last rounds."""
        return self.last is not None and t > max(0, rounds - self.last.rounds)

    @property
    def step(self) -> int:
        """Rounds between two evaluations where a table looks."""
        return self.every if self.last is None else self.last.every

    def due(self, t: int, rounds: int) -> bool:
        """Whether the model after t of so many rounds is measured."""
        if t in (0, rounds) or t % self.every == 0:
            return True
        return self.last is not None and self.among_last(t, rounds) and t % self.last.every == 0

    def counts(self, rounds: int) -> tuple[int, int]:
        """How often the model is measured in so many rounds: before and among the last rounds of `last`."""
        if self.last is None:
            return 1 + -(-rounds // self.every), 0
        first = max(0, rounds - self.last.rounds)

        def multiples(n: int) -> int:
            return rounds // n - first // n

        among = multiples(self.every) + multiples(self.last.every) - multiples(lcm(self.every, self.last.every))
        also = rounds % self.every != 0 and rounds % self.last.every != 0  # after the last round
        return 1 + first // self.every, among + also


class Numerics(Settings):
    """How it is computed, as far as it can show in the last digits."""

    dtype: Literal["float32", "float64", "tf32", "bf16_mixed"] = Field(
        "float32",
        description="of models; tf32 and bf16_mixed: float32, whose matrix products may be rounded to tf32 (by a "
        "device that can), or whose layers compute in bfloat16",
    )
    engine: Literal["auto", "sequential", "vectorised", "compiled"] = Field(
        "auto", description="auto takes the fastest for the device and the model"
    )
    device: Literal["auto", "cpu", "cuda"] = "auto"
    client_memory: Literal["device", "host"] = Field(
        "device", description="where a method with a memory of clients stores their rows"
    )


class Trial(Spec):
    """Everything that decides a result.

    `Trial.read` takes what people write: a mapping, or the path of a YAML file with one.
    """

    task: TaskChoice
    participation: ParticipationChoice = Field(default_factory=partial(read, "participation", "full"))
    algorithm: AlgorithmChoice
    local: Local = Local()
    server: Server = Server()
    target: Literal["uniform", "samples"] = Field(
        "uniform", description="alpha_i, the clients' weights in the objective: 1/m, or by number of samples"
    )
    rounds: PositiveInt
    seed: int = Field(0, ge=0)
    evaluation: Evaluation = Evaluation()
    numerics: Numerics = Numerics()

    @model_validator(mode="after")
    def _algorithm_fits(self) -> "Trial":
        from algorithms import Setting  # here, because `rollcall show` prints before torch is imported

        with at("algorithm"):
            method = self.algorithm.build()
        try:
            method.check(Setting(self.local.common_steps, self.server.plain, self.local.momentum))
        except ValueError as error:
            raise SettingError(str(error)) from None
        bent = f"server.optimizer {self.server.optimizer}" if self.server.optimizer != "sgd" else ""
        bent = bent or ("" if method.properties.linear else f"these options of {self.algorithm.name}")
        if self.evaluation.weights and bent:
            raise SettingError(
                f"evaluation.weights: is not allowed with {bent}, not linear in what clients send; must be left out"
            )
        return self

    @classmethod
    def read(cls, given: "Trial | dict[str, Any] | str | Path") -> "Trial":
        """Validate a trial.

        Raises:
            SettingError: naming the field, the value and what is allowed.
        """
        if isinstance(given, Trial):
            return given
        if isinstance(given, str | Path):
            given = load_yaml(Path(given))
        return validated(cls, given)

    @property
    def label(self) -> str:
        return self.algorithm.label

    @property
    def source(self) -> str | None:
        return self.algorithm.source
