"""The clock of a trial: how fast clients and their links are, and what a round waits for."""

import csv
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from types import NoneType
from typing import Annotated, Any

import numpy as np
from jaxtyping import Float
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
from rollcall.benchmark.config.choice import Choice, read_option
from rollcall.benchmark.config.errors import CompleteError, SettingError

COLUMNS = ("speed", "up", "down")


def devices_of(file: Any) -> Float[np.ndarray, "m 3"]:
    """Speed, up and down of each client from a CSV file; up and down are infinite if it has no such column.

    Raises:
        CompleteError: there is no such file, or a line is wrong.
    """
    path = Path(str(file))
    if not path.is_file():
        raise CompleteError(f"{str(file)!r} is not allowed; there is no file {path.resolve()}")
    with path.open(newline="", encoding="utf-8") as text:
        rows = list(csv.DictReader(text))
    columns = [column for column in COLUMNS if rows and rows[0].get(column) is not None]
    if not rows or "client" not in rows[0] or "speed" not in columns:
        raise CompleteError(f"{path.name} is not allowed; must have the columns client, speed and, for links, up, down")
    table = np.full((len(rows), len(COLUMNS)), np.inf)
    for line, row in enumerate(rows, 2):
        try:
            client, values = int(row["client"]), [float(row[column]) for column in columns]
        except (TypeError, ValueError):
            raise CompleteError(f"{path.name}: line {line} is not allowed; must be numbers") from None
        if not 0 <= client < len(rows) or np.isfinite(table[client, 0]):
            must = f"must be 0 to {len(rows) - 1}, each once"
            raise CompleteError(f"{path.name}: line {line}: client {client} is not allowed; {must}")
        if not all(0 < value < np.inf for value in values):
            raise CompleteError(f"{path.name}: line {line} is not allowed; speeds must be above 0")
        table[client, [COLUMNS.index(column) for column in columns]] = values
    return table


Speed = Annotated[Any, PlainValidator(partial(read_option, "speed", (float, np.ndarray, NoneType)))]
Failure = Annotated[Any, PlainValidator(partial(read_option, "probability", (float, np.ndarray)))]


class Wait(Settings):
    """What ends a round: whichever is first. All available clients have always answered at the end."""

    first: PositiveInt | None = Field(None, description="n: a round ends when n uploads have arrived")
    deadline: PositiveFloat | None = Field(None, description="a round ends after this many seconds")


def _waits(value: Any) -> Any:
    if value == "all":
        return {}
    if not isinstance(value, Mapping | Wait):
        raise CompleteError(f"{value!r} is not allowed; must be all, {{first: N}}, {{deadline: SECONDS}}, or both keys")
    return value


class Clock(Settings):
    """How fast clients compute and send, and what a round waits for.

    A client that is late, or whose upload fails, has computed and received the model for nothing. A client that is not
    available does not compute.
    """

    speed: Speed | None = Field(
        None,
        description="samples a second of each client: a number, one for each client, or a distribution such as "
        "`{name: lognormal, median: 100, spread: 1}`",
    )
    up: Speed | None = Field(
        None, description="floats a second from client to server; by default sending takes no time"
    )
    down: Speed | None = Field(None, description="floats a second from server to client; likewise")
    devices: Annotated[Any, PlainValidator(devices_of)] = Field(
        None, description="CSV file `client,speed,up,down` instead of the three; `up` and `down` may be left out"
    )
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
    idle: NonNegativeFloat | None = Field(
        None,
        description="seconds of a round without available clients; by default the deadline, or else the time of the "
        "median client",
    )

    @model_validator(mode="after")
    def _speeds_once(self) -> "Clock":
        three = [name for name in COLUMNS if getattr(self, name) is not None]
        if self.devices is None and self.speed is None:
            raise SettingError("speed: is missing; a clock must have speed or devices")
        if self.devices is not None and three:
            raise SettingError(f"{three[0]}: is not allowed beside devices, which has it; leave one out")
        return self

    def bound(self, name: str) -> Any:
        """The value of a field as the clock takes it; of `speed`, `up` or `down` that of the file, if there is one."""
        if self.devices is not None and name in COLUMNS:
            return self.devices[:, COLUMNS.index(name)]
        value = getattr(self, name)
        return value.bound() if isinstance(value, Choice) else value
