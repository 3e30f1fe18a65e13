"""A trial: one task x participation x algorithm x seed, with all its settings."""

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
    if value == "full":
        return "full"
    if isinstance(value, int) and value >= 1:
        return value
    raise ValueError("must be a whole number above 0, or full")


BatchSize = Annotated[int | Literal["full"], PlainValidator(_batch_size)]
OPTIMIZER_OPTIONS = {"sgd": ("momentum", "weight_decay"), "adam": ("betas", "eps"), "yogi": ("betas", "eps")}
"""The suite's server optimizers, with the settings of `server` that are theirs."""


def _server_optimizer(value: Any) -> str | Choice:
    if isinstance(value, str) and value in OPTIMIZER_OPTIONS:
        return value  # its name: reading a choice imports torch, which takes seconds
    choice = read("server_optimizer", value)
    if choice.outside is not None:
        return choice
    raise SettingError(f"name: options of {choice.name} are settings of `server`; must be optimizer: {choice.name}")


ServerOptimizer = Annotated[str | Choice, PlainValidator(_server_optimizer)]
Momentum = Annotated[float, Field(ge=0, lt=1)]
Decay = Annotated[float, Field(ge=0, lt=1)]


class Local(Settings):
    """The local training of a client in a round."""

    steps: PositiveInt | None = Field(1, description="K, the number of local SGD steps; null if `epochs` is set")
    epochs: PositiveInt | None = Field(
        None,
        description="E, the number of passes over the client's samples, instead of `steps`; the number of steps then "
        "depends on how many samples the client holds",
    )
    lr: PositiveFloat = Field(0.1, description="eta, the local learning rate, before `schedule` scales it")
    batch_size: BatchSize = Field("full", description="samples in a local step; `full`: all samples of the client")
    last_batch: Literal["keep", "drop"] = Field(
        "keep", description="what happens to the smaller last minibatch of an epoch: keep it, or drop it"
    )
    momentum: Momentum = Field(0.0, description="momentum of the clients' SGD")
    keep_momentum: bool = Field(
        False, description="whether a client keeps its momentum buffer from one of its rounds to the next"
    )
    weight_decay: NonNegativeFloat = Field(
        0.0, description="weight decay w of the clients' SGD, which adds w x to the gradient"
    )
    schedule: ScheduleChoice = Field(
        read("schedule", "constant"), description="how `lr` changes over the rounds: its factor in round t"
    )

    @model_validator(mode="before")
    @classmethod
    def _steps_or_epochs(cls, data: Any) -> Any:
        if isinstance(data, dict) and data.get("epochs") is not None:
            if data.get("steps") is not None:
                raise SettingError(
                    f"epochs: {data['epochs']} is not allowed together with steps; set only one of the two"
                )
            return data | {"steps": None}
        if isinstance(data, dict) and data.get("steps", 1) is None:
            raise SettingError("steps: null is not allowed without epochs; set one of the two")
        return data

    @model_validator(mode="after")
    def _momentum_to_keep(self) -> "Local":
        if self.keep_momentum and not self.momentum:
            raise SettingError("keep_momentum: true is not allowed without momentum; must be false")
        return self

    @property
    def common_steps(self) -> int | None:
        """K if it is the same for all clients, else None."""
        return self.epochs if self.steps is None and self.batch_size == "full" else self.steps


class Server(Settings):
    """The optimizer that applies an algorithm's update to the server model."""

    optimizer: ServerOptimizer = Field(
        "sgd",
        description="the server optimizer: `sgd`, `adam`, `yogi`, or one of your own",
    )
    lr: PositiveFloat = Field(1.0, description="eta_g, the learning rate of the server")
    momentum: Momentum = Field(0.0, description="momentum of `sgd`; above 0 it is FedAvgM")
    weight_decay: NonNegativeFloat = Field(0.0, description="weight decay w of `sgd`, which adds w x to the gradient")
    betas: tuple[Decay, Decay] = Field((0.9, 0.99), description="decay rates of the two moments of `adam` and `yogi`")
    eps: PositiveFloat = Field(
        1e-3, description="added to the denominator of `adam` and `yogi`: tau of Reddi et al. (2021)"
    )

    @model_validator(mode="after")
    def _options_are_of_the_optimizer(self) -> "Server":
        for option in ("momentum", "weight_decay", "betas", "eps"):
            value, default = getattr(self, option), type(self).model_fields[option].default
            if value != default and option not in self.options():
                raise SettingError(f"{option}: {value} is not allowed with {self.label}; must be left out")
        return self

    def options(self) -> dict[str, Any]:
        """The arguments of one of the suite's optimizers besides the parameters and `lr`."""
        return {option: getattr(self, option) for option in OPTIMIZER_OPTIONS.get(self.label, ())}

    @property
    def label(self) -> str:
        """The name of the optimizer."""
        return self.optimizer.label if isinstance(self.optimizer, Choice) else self.optimizer

    @property
    def plain(self) -> bool:
        """Whether the update is added to the server model as it is: SGD with rate 1 and no other option."""
        return self == Server()


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
    splits: tuple[str, ...] | None = Field(
        None, description="splits of the data to evaluate on, such as `test`; by default all"
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
        if self.last is not None and self.last.splits is not None and self.among_last(t, rounds):
            return self.last.splits
        return self.splits

    def among_last(self, t: int, rounds: int) -> bool:
        """Whether round t is one of the last rounds."""
        return self.last is not None and t > max(0, rounds - self.last.rounds)

    @property
    def step(self) -> int:
        """Rounds between two of the evaluations that a table averages."""
        return self.every if self.last is None else self.last.every

    def due(self, t: int, rounds: int) -> bool:
        """Whether the model is measured after t rounds."""
        if t in (0, rounds) or t % self.every == 0:
            return True
        return self.last is not None and self.among_last(t, rounds) and t % self.last.every == 0

    def counts(self, rounds: int) -> tuple[int, int]:
        """The number of evaluations before the last rounds, and in them."""
        if self.last is None:
            return 1 + -(-rounds // self.every), 0
        first = max(0, rounds - self.last.rounds)

        def multiples(n: int) -> int:
            return rounds // n - first // n

        among = multiples(self.every) + multiples(self.last.every) - multiples(lcm(self.every, self.last.every))
        also = rounds % self.every != 0 and rounds % self.last.every != 0  # after the last round
        return 1 + first // self.every, among + also


class Numerics(Settings):
    """How the numbers are computed. These settings can change the last digits of a result."""

    dtype: Literal["float32", "float64", "tf32", "bf16_mixed"] = Field(
        "float32",
        description="floating-point type of models; `tf32`: float32 with matrix products in TF32 on devices that have "
        "it; `bf16_mixed`: float32 with layers computed in bfloat16",
    )
    engine: Literal["auto", "sequential", "vectorised", "compiled"] = Field(
        "auto",
        description="how local steps are computed: one client after another (`sequential`), or many clients at once "
        "(`vectorised`, and `compiled` by torch.compile); `auto` takes what is fastest for the device and the model",
    )
    device: Literal["auto", "cpu", "cuda"] = Field("auto", description="`auto`: the GPU if there is one")
    client_memory: Literal["device", "host"] = Field(
        "device", description="where methods that remember every client store these vectors; `host`: in main memory"
    )


class Trial(Spec):
    """All settings that decide a result.

    `Trial.read` takes a mapping, or the path of a YAML file that holds one.
    """

    task: TaskChoice = Field(description="data set, model and partition")
    participation: ParticipationChoice = Field(
        default_factory=partial(read, "participation", "full"),
        description="which clients are active in which round; `full` by default",
    )
    algorithm: AlgorithmChoice = Field(description="the federated method")
    local: Local = Field(Local(), description="local training of a client")
    server: Server = Field(Server(), description="optimizer of the server")
    target: Literal["uniform", "samples"] = Field(
        "uniform", description="alpha_i, the weights of the clients in the objective: equal, or by number of samples"
    )
    rounds: PositiveInt = Field(description="T, the number of rounds")
    seed: int = Field(0, ge=0, description="seed of all random draws")
    evaluation: Evaluation = Field(Evaluation(), description="when the model is evaluated, and on what")
    numerics: Numerics = Field(Numerics(), description="number types, engine and device")

    @model_validator(mode="after")
    def _algorithm_fits(self) -> "Trial":
        from algorithms import Setting  # here, because `rollcall show` prints before torch is imported

        with at("algorithm"):
            method = self.algorithm.build()
        try:
            method.check(Setting(self.local.common_steps, self.server.plain, self.local.momentum))
        except ValueError as error:
            raise SettingError(str(error)) from None
        if self.evaluation.weights:
            self._needs_linear_updates(linear=method.properties.linear)
        return self

    def _needs_linear_updates(self, linear: bool) -> None:
        """Refuse `evaluation.weights` if the model is not a weighted sum of what the clients sent."""
        needs = "evaluation.weights: needs a method and a server optimizer that are linear in the client updates"
        if self.server.optimizer != "sgd":
            raise SettingError(f"{needs}; server.optimizer {self.server.label} is not")
        if not linear:
            raise SettingError(f"{needs}; {self.algorithm.label} with these options is not")

    @classmethod
    def read(cls, spec: "Trial | dict[str, Any] | str | Path") -> "Trial":
        """Validate a trial.

        Raises:
            SettingError: names the field, the value and what is allowed.
        """
        if isinstance(spec, Trial):
            return spec
        if isinstance(spec, str | Path):
            spec = load_yaml(Path(spec))
        return validated(cls, spec)

    @property
    def label(self) -> str:
        return self.algorithm.label
