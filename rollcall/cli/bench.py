"""`rollcall bench`: the cost of local work on this machine, by engine."""

import sys
from collections.abc import Sequence
from typing import Annotated, Any, Literal, TypeAlias

import typer
from rich.table import Table as Grid

from rollcall.benchmark.config.errors import SettingError
from rollcall.benchmark.config.text import strict_json
from rollcall.cli.options import Json, out

COLUMNS = {"clients": "clients", "active": "active", "steps": "K", "batch": "batch"}
"""The settings of a case, and the headings of their columns."""

Row: TypeAlias = dict[str, Any]
"""The measurements of a case, by name."""


def bench(
    task: Annotated[
        Literal["digits", "mnist", "cifar10"], typer.Option(help="Shape and model; the data are random.")
    ] = "cifar10",
    clients: Annotated[str | None, typer.Option(metavar="N,...", help="Clients in all. Default: 100,10000.")] = None,
    active: Annotated[
        str | None, typer.Option(metavar="N,...", help="Active clients in a round. Default: 1,10,100.")
    ] = None,
    steps: Annotated[str, typer.Option(metavar="N,...", help="K, local steps.")] = "5",
    batch: Annotated[str, typer.Option(metavar="N,...", help="Samples in a local step.")] = "16",
    engine: Annotated[str, typer.Option(metavar="NAME,...", help="auto, sequential, vectorised.")] = (
        "sequential,vectorised"
    ),
    device: Annotated[Literal["auto", "cpu", "cuda"], typer.Option(help="Where to compute.")] = "auto",
    repeat: Annotated[int, typer.Option(min=1, help="Repetitions, shown as median, least and most.")] = 3,
    quick: Annotated[
        bool, typer.Option("--quick", help="Short repetitions, by default of 100 clients, 10 active.")
    ] = False,
    as_json: Json = False,
) -> None:
    """Time a client's round with each engine, beside a plain loop."""
    counts = (
        _numbers("clients", ("100" if quick else "100,10000") if clients is None else clients),
        _numbers("active", ("10" if quick else "1,10,100") if active is None else active),
        _numbers("steps", steps),
        _numbers("batch", batch),
    )
    import torch

    from rollcall.benchmark.timing import grid, measure

    if device == "auto":
        device = "cuda" if torch.cuda.is_available() else "cpu"
    cases = grid(task, engine.split(","), device, *counts)
    rows: list[Row] = []
    for row in measure(cases, repeat=repeat, seconds=0.1 if quick else 1.0):
        rows.append(row)
        print(f"{len(rows)} of {len(cases)} measured", file=sys.stderr)
    if as_json:
        print(strict_json(rows))
        return
    out.print(_table(rows))
    memory = "peak GPU memory of the engine" if device == "cuda" else "peak memory of this process so far"
    print(
        f"{task}, K {steps}, batch {batch}; on {rows[0]['device_name']}, {rows[0]['threads']} threads; "
        f"median (least-most) of {repeat} repetitions; MiB: {memory}"
    )


def _table(rows: Sequence[Row]) -> Grid:
    """A row for each case; columns of settings that are the same in all cases are left out."""
    settings = [name for name in COLUMNS if name in ("clients", "active") or len({row[name] for row in rows}) > 1]
    table = Grid(box=None, padding=(0, 2, 0, 0), pad_edge=False)
    headings = (COLUMNS[name] for name in settings)
    for name in ("engine", *headings, "ms/client-round", "plain loop", "faster", "MiB"):
        table.add_column(name, justify="left" if name == "engine" else "right", no_wrap=True)
    for row in rows:
        ours, least, most, plain = (
            row[f"{name}ms_per_client_round{end}"]
            for name, end in (("", ""), ("", "_min"), ("", "_max"), ("reference_", ""))
        )
        table.add_row(
            str(row["engine"]),
            *(f"{row[name]:,}" for name in settings),
            f"{_short(ours)} ({_short(least)}-{_short(most)})",
            _short(plain),
            f"{plain / ours:.2f}x",
            f"{row['peak_memory_mb']:,.0f}",
        )
    return table


def _numbers(name: str, text: str) -> list[int]:
    try:
        return [int(number) for number in text.split(",")]
    except ValueError:
        raise SettingError(f"{name}: {text!r} is not allowed; must be whole numbers separated by commas") from None


def _short(value: float) -> str:
    return f"{value:,.{0 if value >= 100 else 1 if value >= 10 else 2}f}"
