"""A trial: one task x participation x algorithm x seed, with all its settings."""

from functools import partial
from typing import Annotated, Any, Literal, TypeAlias

import numpy as np
from pydantic import Field, PlainValidator, PositiveInt, model_validator

from rollcall.benchmark.config.base import Settings
from rollcall.benchmark.config.choice import Choice, read, read_option
from rollcall.benchmark.config.clock import Clock
from rollcall.benchmark.config.digest import Spec
from rollcall.benchmark.config.errors import SettingError, at
from rollcall.benchmark.config.optimization import Local, Server

TaskChoice = Annotated[Choice, PlainValidator(partial(read, "task"))]
ParticipationChoice = Annotated[Choice, PlainValidator(partial(read, "participation"))]
AlgorithmChoice = Annotated[Choice, PlainValidator(partial(read, "algorithm"))]
MetricChoice = Annotated[Choice, PlainValidator(partial(read, "metric"))]

By: TypeAlias = Literal["class", "client", "availability"]
"""What defines the groups of samples that are measured."""

Alike: TypeAlias = Literal["client", "availability", "correlation"]
"""What the clients of a group have in common, for the sum of their weights."""


class LastRounds(Settings):
    """More frequent evaluations in the last rounds, which a table averages over."""

    rounds: PositiveInt = Field(description="how many rounds at the end count as the last ones")
    every: PositiveInt = Field(description="rounds between two evaluations in the last rounds")
    splits: tuple[str, ...] | None = Field(
        None, description="splits measured in the last rounds; by default the same as before"
    )


class Evaluation(Settings):
    """When the model is evaluated, and on what. It always is before the first round and after the last."""

    every: PositiveInt = Field(10, description="rounds between two evaluations")
    last: LastRounds | None = Field(None, description="more frequent evaluations in the last rounds")
    at: tuple[PositiveInt, ...] = Field((), description="further rounds after which the model is evaluated")
    splits: tuple[str, ...] | None = Field(
        None, description="splits of the data to evaluate on, such as `test`; by default all"
    )
    metrics: tuple[MetricChoice, ...] = Field(
        (), description="metrics besides those of the task, computed over a whole split, such as `[auroc, f1]`"
    )
    by: tuple[By, ...] = Field(
        (), description="also measure groups of samples: by class, by client, or by the client's availability"
    )
    weights: tuple[Alike, ...] = Field(
        (),
        description="also record how much the clients have influenced the model: their summed weights in all updates, "
        "for each client, or for groups of similar availability or correlation",
    )

    def splits_at(self, t: int, rounds: int) -> tuple[str, ...] | None:
        """The splits that are measured after t rounds; None for all."""
        return (self.last.splits if self.last and self.among_last(t, rounds) else None) or self.splits

    def among_last(self, t: int, rounds: int) -> bool:
        """Whether round t is one of the last rounds."""
        return self.last is not None and t > max(0, rounds - self.last.rounds)

    @property
    def step(self) -> int:
        """Rounds between two of the evaluations that a table averages."""
        return self.every if self.last is None else self.last.every

    def due(self, t: int, rounds: int) -> bool:
        """Whether the model is measured after t rounds."""
        every = self.step if self.among_last(t, rounds) else self.every
        return t in (0, rounds) or t in self.at or t % self.every == 0 or t % every == 0


class Numerics(Settings):
    """How the numbers are computed. These settings can change the last digits of a result."""

    dtype: Literal["float32", "float64", "tf32", "bf16_mixed"] = Field(
        "float32",
        description="floating-point type of models; `tf32`: float32 with matrix products in TF32 on devices that have "
        "it; `bf16_mixed`: float32 with layers computed in bfloat16",
    )
    engine: Literal["auto", "sequential", "vectorised"] = Field(
        "auto",
        description="how local steps are computed: one client after another (`sequential`), or many clients at once "
        "(`vectorised`); `auto` takes what is fastest for the device and the model",
    )
    device: Literal["auto", "cpu", "cuda"] = Field("auto", description="`auto`: the GPU if there is one")


def _target(value: Any) -> str | np.ndarray:
    if isinstance(value, str) and value in ("uniform", "samples"):
        return value
    must = "must be uniform, samples, or numbers from 0 for each client, not all 0"
    try:
        weights = np.asarray(read_option("", (np.ndarray,), value), dtype=np.float64)
    except ValueError:
        raise ValueError(must) from None
    if weights.ndim != 1 or not np.isfinite(weights).all() or (weights < 0).any() or not weights.any():
        raise ValueError(must)
    return weights


def _is_uniform(target: Any) -> bool:
    return isinstance(target, str) and target == "uniform"


Target = Annotated[Literal["uniform", "samples"] | np.ndarray, PlainValidator(_target)]


class Trial(Spec):
    """All settings that decide a result."""

    task: TaskChoice = Field(description="data set, model and partition")
    participation: ParticipationChoice = Field(
        default_factory=partial(read, "participation", "full"),
        description="which clients are active in which round; `full` by default",
    )
    clock: Clock | None = Field(
        None, description="how long rounds last, and which available clients are in time; by default there is no clock"
    )
    algorithm: AlgorithmChoice = Field(description="the federated method")
    local: Local = Field(Local(), description="local training of a client")
    server: Server = Field(Server(), description="optimizer of the server")
    target: Target = Field(
        "uniform",
        description="alpha_i, the weights of the clients in the objective: `uniform`, by number of `samples`, or a "
        "list or .npy file with a number for each client",
    )
    rounds: PositiveInt = Field(description="T, the number of rounds")
    seed: int = Field(0, ge=0, description="seed of all random draws")
    evaluation: Evaluation = Field(Evaluation(), description="when the model is evaluated, and on what")
    numerics: Numerics = Field(Numerics(), description="number types, engine and device")

    @model_validator(mode="after")
    def _algorithm_fits(self) -> "Trial":
        from rollcall.algorithms import TrainingSetup  # here, because `rollcall show` prints before torch is imported

        with at("algorithm"):
            method = self.algorithm.build()
        local, server = self.local, self.server
        try:
            method.check(TrainingSetup(local.common_steps, server.plain, local.momentum, local.keep_momentum))
        except ValueError as error:
            raise SettingError(str(error)) from None
        if not (_is_uniform(self.target) or method.properties.weights):
            raise SettingError(
                f"target: {self.target if isinstance(self.target, str) else 'an array'} is not allowed with "
                f"{self.algorithm.label}, which does not weight clients; must be uniform. A method that uses "
                "call.mean, call.relative or call.alpha says so by Properties(weights=True)"
            )
        if self.evaluation.weights:  # the model must be a weighted sum of the client updates
            needs = "evaluation.weights: needs a method and a server optimizer that are linear in the client updates"
            if server.optimizer != "sgd":
                raise SettingError(f"{needs}; server.optimizer {server.label} is not")
            if not method.properties.linear:
                raise SettingError(f"{needs}; {self.algorithm.label} with these options is not")
        return self
