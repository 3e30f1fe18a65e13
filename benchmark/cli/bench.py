"""`rollcall bench`: the cost of local work on this machine, by engine."""

import sys
from collections.abc import Sequence
from typing import Annotated, Any, TypeAlias

import typer
from rich.table import Table as Grid

from rollcall.benchmark.cli.shared import Json, out, strict_json
from rollcall.benchmark.config.errors import SettingError

COLUMNS = {"clients": "clients", "active": "active", "steps": "K", "batch": "batch"}
"""The settings of a case, and the headings of their columns."""

Row: TypeAlias = dict[str, Any]
"""The measurements of a case, by name."""


def bench(
    task: Annotated[str, typer.Option(help="digits, mnist or cifar10: shape and model; the data are random.")] = (
        "cifar10"
    ),
    clients: Annotated[str | None, typer.Option(metavar="N,...", help="Clients in all. Default: 100,10000.")] = None,
    active: Annotated[
        str | None, typer.Option(metavar="N,...", help="Active clients in a round. Default: 1,10,100.")
    ] = None,
    steps: Annotated[str, typer.Option(metavar="N,...", help="K, local steps.")] = "5",
    batch: Annotated[str, typer.Option(metavar="N,...", help="Samples in a local step.")] = "16",
    engine: Annotated[str, typer.Option(metavar="NAME,...", help="auto, sequential, vectorised.")] = (
        "sequential,vectorised"
    ),
    device: Annotated[str, typer.Option(help="auto, cpu or cuda.")] = "auto",
    repeat: Annotated[int, typer.Option(min=1, help="Repetitions, shown as median, least and most.")] = 3,
    augment: Annotated[bool, typer.Option("--augment", help="Crop and flip the images.")] = False,
    quick: Annotated[
        bool, typer.Option("--quick", help="Short repetitions, by default of 100 clients, 10 active.")
    ] = False,
    as_json: Json = False,
) -> None:
    """Time a client's round with each engine, beside a plain loop in the same run."""
    if device not in ("auto", "cpu", "cuda"):
        raise SettingError(f"device: {device!r} is not allowed; must be auto, cpu or cuda")
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
    for row in measure(cases, repeat=repeat, seconds=0.1 if quick else 1.0, augment=augment):
        rows.append(row)
        print(f"{len(rows)} of {len(cases)} measured", file=sys.stderr)
    if as_json:
        print(strict_json(rows))
        return
    out.print(_table(rows))
    for name, row in {str(row["engine"]): row for row in rows}.items():
        print(f"whole rounds of 100 tiny quadratics, {name}: {_spread(row, 'loop_rounds_per_second')} per second")
    memory = "peak GPU memory of the engine" if device == "cuda" else "peak memory of this process so far"
    print(
        f"{task}, K {steps}, batch {batch}; on {rows[0]['device_name']}, {rows[0]['threads']} threads; "
        f"median (least-most) of {repeat} repetitions; floor: the same arithmetic at the speed of large matrix "
        f"products; MiB: {memory}"
    )


def _table(rows: Sequence[Row]) -> Grid:
    """A row for each case; columns of settings that are the same in all cases are left out."""
    settings = [name for name in COLUMNS if name in ("clients", "active") or len({row[name] for row in rows}) > 1]
    table = Grid(box=None, padding=(0, 2, 0, 0), pad_edge=False)
    headings = (COLUMNS[name] for name in settings)
    for name in ("engine", *headings, "ms/client-round", "plain loop", "faster", "floor", "MiB"):
        table.add_column(name, justify="left" if name == "engine" else "right", no_wrap=True)
    for row in rows:
        counts = (f"{row[name]:,}" for name in settings)
        cost = _spread(row, "ms_per_client_round")
        faster = row["reference_ms_per_client_round"] / row["ms_per_client_round"]
        plain, floor = (_short(row[f"{of}_ms_per_client_round"]) for of in ("reference", "floor"))
        memory = f"{row['peak_memory_mb']:,.0f}"
        table.add_row(str(row["engine"]), *counts, cost, plain, f"{faster:.2f}x", floor, memory)
    return table


def _numbers(name: str, text: str) -> list[int]:
    try:
        return [int(number) for number in text.split(",")]
    except ValueError:
        raise SettingError(f"{name}: {text!r} is not allowed; must be whole numbers separated by commas") from None


def _spread(row: Row, name: str) -> str:
    median, least, most = (_short(row[f"{name}{end}"]) for end in ("", "_min", "_max"))
    return f"{median} ({least}-{most})"


def _short(value: float) -> str:
    return f"{value:,.{0 if value >= 100 else 1 if value >= 10 else 2}f}"
