"""The clock of a trial: how fast clients and their links are, and what a round waits for."""

from collections.abc import Mapping
from functools import partial
from typing import Annotated, Any

import numpy as np
from pydantic import BeforeValidator, Field, NonNegativeFloat, PlainValidator, PositiveFloat, PositiveInt

from rollcall.benchmark.config.base import Settings
from rollcall.benchmark.config.choice import Choice, read_option

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
        "`{name: lognormal, median: 100, spread: 1}`",
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
