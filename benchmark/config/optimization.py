"""Optimizers: the local training of the clients with its schedules, and how the server applies an update."""

from collections.abc import Callable, Mapping
from functools import partial
from math import sqrt
from typing import Annotated, Any, Literal, TypeAlias

from annotated_types import Gt
from pydantic import Field, NonNegativeFloat, PlainValidator, PositiveFloat, PositiveInt, model_validator

from rollcall.benchmark.config.base import Settings
from rollcall.benchmark.config.choice import Choice, read
from rollcall.benchmark.config.errors import SettingError


def constant(t: int) -> float:
    """1 in every round."""
    return 1.0


def inverse_sqrt(t: int, *, period: Annotated[float, Gt(0)] = 10.0) -> float:
    """1 / sqrt(t / period + 1), with t in rounds. The FedPBC paper uses it with a period of 10."""
    return 1 / sqrt(t / period + 1)


SCHEDULES: dict[str, Callable[..., float]] = {"constant": constant, "inverse_sqrt": inverse_sqrt}
"""The factors of the local learning rate in round t."""

ScheduleChoice = Annotated[Choice, PlainValidator(partial(read, "schedule"))]


Momentum: TypeAlias = Annotated[float, Field(ge=0, lt=1)]
Decay: TypeAlias = Momentum

OPTIONS = {"sgd": ("momentum", "weight_decay")} | dict.fromkeys(("adam", "yogi"), ("betas", "eps"))
"""The suite's server optimizers, with the settings beside `optimizer` that are their options."""


def _server_optimizer(value: Any) -> str | Choice:
    """The name of one of the suite's optimizers, or a choice from outside, which has options of its own."""
    # No choice is read for a name: that imports torch, which takes seconds.
    return value if isinstance(value, str) and value in OPTIONS else read("server_optimizer", value)


ServerOptimizer = Annotated[Literal["sgd", "adam", "yogi"] | Choice, PlainValidator(_server_optimizer)]


class Local(Settings):
    """The local training of a client in a round."""

    steps: PositiveInt | None = Field(1, description="K, the number of local steps; null if `epochs` is set")
    epochs: PositiveInt | None = Field(
        None,
        description="E, the number of passes over the client's samples, instead of `steps`; the number of steps then "
        "depends on how many samples the client holds",
    )
    lr: PositiveFloat = Field(0.1, description="eta, the local learning rate, before `schedule` scales it")
    batch_size: PositiveInt | Literal["full"] = Field(
        "full", description="samples in a local step; `full`: all samples of the client"
    )
    last_batch: Literal["keep", "drop"] = Field(
        "keep", description="what happens to the smaller last minibatch of an epoch: keep it, or drop it"
    )
    momentum: Momentum = Field(0.0, description="momentum of the clients' SGD")
    keep_momentum: bool = Field(
        False, description="whether a client keeps its momentum buffer from one of its rounds to the next"
    )
    weight_decay: NonNegativeFloat = Field(0.0, description="weight decay w: w x is added to the gradient")
    clip: PositiveFloat | None = Field(
        None,
        description="largest norm of a client's minibatch gradient, as clip_grad_norm_ of torch; null for no limit",
    )
    schedule: ScheduleChoice = Field(
        read("schedule", "constant"), description="how `lr` changes over rounds: its factor above 0 in round t"
    )

    @model_validator(mode="before")
    @classmethod
    def _steps_or_epochs(cls, data: Any) -> Any:
        if isinstance(data, Mapping) and data.get("epochs") is not None:
            if data.get("steps") is not None:
                raise SettingError(
                    f"epochs: {data['epochs']} is not allowed together with steps; set only one of the two"
                )
            return {**data, "steps": None}
        if isinstance(data, Mapping) and data.get("steps", 1) is None:
            raise SettingError("steps: null is not allowed without epochs; set one of the two")
        return data

    @model_validator(mode="after")
    def _has_effect(self) -> "Local":
        if self.keep_momentum and not self.momentum:
            raise SettingError("keep_momentum: true is not allowed without momentum; must be false")
        if self.last_batch == "drop" and self.batch_size == "full":
            raise SettingError("last_batch: drop is not allowed with batch_size full, which has one batch")
        return self

    @property
    def common_steps(self) -> int | None:
        """K if it is the same for all clients, else None."""
        return self.epochs if self.steps is None and self.batch_size == "full" else self.steps


class Server(Settings):
    """The optimizer that applies an algorithm's update to the server model.

    The options of the suite's optimizers are settings beside `optimizer`. An optimizer from outside has its own.
    """

    optimizer: ServerOptimizer = Field(
        "sgd", description="the server optimizer: one of the suite's, or a class like those of torch.optim"
    )
    lr: PositiveFloat = Field(1.0, description="eta_g, the learning rate of the server")
    momentum: Momentum = Field(0.0, description="momentum of `sgd`; above 0 it is FedAvgM")
    weight_decay: NonNegativeFloat = Field(0.0, description="weight decay w of `sgd`, which adds w x to the gradient")
    betas: tuple[Decay, Decay] = Field((0.9, 0.99), description="decay rates of the two moments of `adam` and `yogi`")
    eps: PositiveFloat = Field(
        1e-3, description="added to the denominator of `adam` and `yogi`: tau of Reddi et al. (2021)"
    )

    @model_validator(mode="before")
    @classmethod
    def _options_beside_the_name(cls, data: Any) -> Any:
        """`optimizer: {name: adam, eps: 1}` means `optimizer: adam` and `eps: 1`; their digests differ, as written."""
        chosen = data.get("optimizer") if isinstance(data, Mapping) else None
        if isinstance(chosen, Mapping) and isinstance(chosen.get("name"), str) and chosen["name"] in OPTIONS:
            options = {key: value for key, value in chosen.items() if key != "name"}
            for key in options.keys() & data.keys():
                raise SettingError(f"{key}: {data[key]} is not allowed beside optimizer.{key}; leave one of them out")
            return {**data, **options, "optimizer": chosen["name"]}
        return data

    @model_validator(mode="after")
    def _options_are_of_the_optimizer(self) -> "Server":
        for option in sorted({option for options in OPTIONS.values() for option in options}):
            value, default = getattr(self, option), type(self).model_fields[option].default
            if value != default and option not in self.options():
                raise SettingError(f"{option}: {value} is not allowed with {self.label}; must be left out")
        return self

    def options(self) -> dict[str, Any]:
        """The arguments of one of the suite's optimizers besides the parameters and `lr`."""
        own = () if isinstance(self.optimizer, Choice) else OPTIONS[self.optimizer]
        return {option: getattr(self, option) for option in own}

    @property
    def label(self) -> str:
        return self.optimizer.label if isinstance(self.optimizer, Choice) else self.optimizer

    @property
    def plain(self) -> bool:
        """Whether the update is added to the server model as it is: SGD with rate 1 and no other option."""
        return self == Server()
