"""A trial: one task x participation x algorithm x seed, every setting of it validated."""

from functools import partial
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import Field, PlainValidator, PositiveFloat, PositiveInt, model_validator

from algorithms import Setting
from benchmark.choices import Choice, read
from benchmark.errors import SettingError, at
from benchmark.evaluation import By
from benchmark.settings import Settings, load_yaml, validated
from benchmark.spec import Spec
from benchmark.weights import Alike

TaskChoice = Annotated[Choice, PlainValidator(partial(read, "task"))]
ParticipationChoice = Annotated[Choice, PlainValidator(partial(read, "participation"))]
AlgorithmChoice = Annotated[Choice, PlainValidator(partial(read, "algorithm"))]
ScheduleChoice = Annotated[Choice, PlainValidator(partial(read, "schedule"))]


def _batch_size(value: Any) -> int | str:
    if value == "full" or (isinstance(value, int) and value >= 1):
        return value
    raise ValueError("must be a whole number above 0, or full")


BatchSize = Annotated[int | Literal["full"], PlainValidator(_batch_size)]


class Local(Settings):
    """What a client does in a round."""

    steps: PositiveInt = Field(1, description="K, local SGD steps")
    lr: PositiveFloat = Field(0.1, description="eta, before the schedule")
    batch_size: BatchSize = Field("full", description="samples a step; full: all the client has")
    schedule: ScheduleChoice = Field(read("schedule", "constant"), description="factor of lr in round t")


Decay = Annotated[float, Field(ge=0, lt=1)]


class Server(Settings):
    """The torch optimizer that applies an algorithm's update to the server model."""

    optimizer: Literal["sgd", "adam", "yogi"] = "sgd"
    lr: PositiveFloat = Field(1.0, description="eta_g")
    momentum: float = Field(0.0, ge=0, lt=1, description="of sgd (FedAvgM)")
    betas: tuple[Decay, Decay] = Field((0.9, 0.99), description="of adam and yogi")
    eps: PositiveFloat = Field(1e-3, description="of adam and yogi: tau of Reddi et al.")

    @model_validator(mode="after")
    def _options_are_of_the_optimizer(self) -> "Server":
        for option in ("betas", "eps") if self.optimizer == "sgd" else ("momentum",):
            value, default = getattr(self, option), type(self).model_fields[option].default
            if value != default:
                raise SettingError(f"{option}: {value} is not allowed with {self.optimizer}; must be left out")
        return self

    def options(self) -> dict[str, Any]:
        """What the optimizer is made with."""
        if self.optimizer == "sgd":
            return {"lr": self.lr, "momentum": self.momentum}
        return {"lr": self.lr, "betas": self.betas, "eps": self.eps}

    @property
    def plain(self) -> bool:
        """Whether the update is just added to the server model."""
        return self == Server()


class Evaluation(Settings):
    """When and on what the model is measured; the first and the last round always are."""

    every: PositiveInt = Field(10, description="rounds")
    splits: tuple[str, ...] | None = Field(None, description="of the task's data; by default all")
    by: tuple[By, ...] = Field((), description="measure groups of samples too")
    weights: tuple[Alike, ...] = Field(
        (), description="measure the clients' cumulative weights, summed over clients that are alike in all of this"
    )


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
    participation: ParticipationChoice = read("participation", "full")
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
        with at("algorithm"):
            method = self.algorithm.build()
        try:
            method.check(Setting(self.local.steps, self.server.plain))
        except ValueError as error:
            raise SettingError(str(error)) from None
        bent = f"server.optimizer {self.server.optimizer}" if self.server.optimizer != "sgd" else ""
        bent = bent or ("" if method.promises.linear else f"these options of {self.algorithm.name}")
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
