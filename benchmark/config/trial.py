"""What one run is: a trial (one task x participation x algorithm x seed) or an analysis, with all settings."""

from collections.abc import Mapping
from functools import partial
from typing import TYPE_CHECKING, Annotated, Any, Literal, TypeAlias

import numpy as np
from pydantic import (
    BeforeValidator,
    Field,
    NonNegativeFloat,
    PlainValidator,
    PositiveFloat,
    PositiveInt,
    model_validator,
)

from rollcall.benchmark.config.base import Settings
from rollcall.benchmark.config.choice import Choice, read, read_option
from rollcall.benchmark.config.digest import Spec
from rollcall.benchmark.config.errors import SettingError, SourceError, at
from rollcall.benchmark.config.optimization import Local, Server
from rollcall.benchmark.config.source import definition

if TYPE_CHECKING:  # pandas takes long to import
    import pandas as pd

TaskChoice = Annotated[Choice, PlainValidator(partial(read, "task"))]
ParticipationChoice = Annotated[Choice, PlainValidator(partial(read, "participation"))]
AlgorithmChoice = Annotated[Choice, PlainValidator(partial(read, "algorithm"))]
MetricChoice = Annotated[Choice, PlainValidator(partial(read, "metric"))]

Speed = Annotated[Any, PlainValidator(partial(read_option, "speed", (float, np.ndarray)))]
Failure = Annotated[Any, PlainValidator(partial(read_option, "probability", (float, np.ndarray)))]


class Wait(Settings):
    """What ends a round: whichever is first. All available clients have always answered at the end."""

    first: PositiveInt | None = Field(None, description="n: a round ends when n uploads have arrived")
    deadline: PositiveFloat | None = Field(None, description="a round ends after this many seconds")


def _waits(value: Any) -> Any:
    if value == "all":
        return {}
    if not isinstance(value, Mapping | Wait):
        raise ValueError("must be all, {first: N}, {deadline: SECONDS}, or both keys")
    return value


class Clock(Settings):
    """How fast clients compute and send, and what a round waits for.

    A client that is late, or whose upload fails, has computed and received the model for nothing. A client that is not
    available does not compute.
    """

    speed: Speed = Field(
        description="samples a second of each client: a number, one for each client, or a distribution such as "
        "`{name: lognormal, median: 100, spread: 1}`"
    )
    up: Speed | None = Field(
        None, description="floats a second from client to server; by default sending takes no time"
    )
    down: Speed | None = Field(None, description="floats a second from server to client; likewise")
    wait: Annotated[Wait, BeforeValidator(_waits)] = Field(
        Wait(),
        description="what a round waits for: `all` available clients, `{first: n}` uploads, `{deadline: seconds}`, or "
        "the first of both",
    )
    jitter: NonNegativeFloat = Field(
        0.0, description="standard deviation of the logarithm of a client's time from round to round"
    )
    failure: Failure = Field(
        0.0, description="probability that an upload fails after the work: a number, one for each client, or a source"
    )

    def bound(self, name: str) -> Any:
        """The value of a field as the clock takes it."""
        value = getattr(self, name)
        return value.bound() if isinstance(value, Choice) else value


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
        "for each client, or for groups of similar availability or correlation; of both, also for groups of each alone",
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
    device: Literal["auto", "cpu", "cuda"] = Field("auto", description="`auto`: the GPU if there is one; only CUDA")


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
        label, local, server = self.algorithm.label, self.local, self.server
        try:
            setup = TrainingSetup(local.common_steps, server.plain, local.momentum, local.keep_momentum, label)
            setup.need(*method.needs)
            method.check(setup)
        except ValueError as error:
            raise SettingError(str(error)) from None
        target = self.target if isinstance(self.target, str) else "an array"
        if target != "uniform" and not method.properties.weights:
            raise SettingError(
                f"target: {target} is not allowed with {self.algorithm.label}, which does not weight clients; must be "
                "uniform. A method that uses call.mean, call.relative or call.alpha says so by Properties(weights=True)"
            )
        if self.evaluation.weights:  # the model must be a weighted sum of the client updates
            needs = "evaluation.weights: needs a method and a server optimizer that are linear in the client updates"
            if server.optimizer != "sgd":
                raise SettingError(f"{needs}; server.optimizer {server.label} is not")
            if not method.properties.linear:
                raise SettingError(f"{needs}; {self.algorithm.label} with these options is not")
        return self


class Analysis(Spec):
    """An analysis with its options, and a seed."""

    analysis: Annotated[Choice, PlainValidator(partial(read, "analysis"))] = Field(
        description="the analysis, as its name or as a mapping of `name` and options"
    )
    seed: int = Field(0, ge=0, description="seed of all random draws")

    @property
    def rounds(self) -> int:
        """1: an analysis has no rounds and is computed in one step."""
        return 1

    def table(self) -> "pd.DataFrame":
        """Compute it: numbers by `round`, which is what it runs over.

        Raises SourceError: the table is not that, of an analysis that is not the suite's.
        """
        table: pd.DataFrame = self.analysis.build(self.seed)
        if fault := fault_of_table(table):
            expected, seen = fault
            place = definition(self.analysis.factory) or self.label
            raise SourceError(f"{place}: the table of an analysis must have {expected}; it has {seen}")
        return table


def fault_of_table(table: "pd.DataFrame") -> tuple[str, str] | None:
    """The rule that a table breaks, and its content; None for a table of numbers by different whole numbers `round`."""
    names = ", ".join(map(str, table.columns))
    if "round" not in table.columns or len(table) == 0 or len(set(table.columns)) < max(2, len(table.columns)):
        return "a row, a column `round` and others of different names", f"{len(table)} rows of {names}"
    text = [str(name) for name, dtype in table.dtypes.items() if dtype.kind not in "iufb"]
    if text:
        return "numbers in all columns", f"other values in {', '.join(text)}"
    rounds = table["round"].to_numpy()
    if not np.array_equal(rounds, np.round(rounds)) or len(np.unique(rounds)) < len(rounds):
        return "different whole numbers in `round`", str(rounds[:8].tolist())
    return None
