"""`rollcall bench`: the cost of local work on this machine, by engine."""

import sys
from typing import Annotated, Literal

import typer
from rich.table import Table as Grid

from rollcall.benchmark.config.errors import SettingError
from rollcall.benchmark.config.text import strict_json
from rollcall.cli.options import Json, out


def bench(
    task: Annotated[
        Literal["digits", "mnist", "cifar10"], typer.Option(help="Shape and model; the data are random.")
    ] = "cifar10",
    clients: Annotated[str, typer.Option(metavar="N,...", help="Clients in all.")] = "100",
    active: Annotated[str, typer.Option(metavar="N,...", help="Active clients in a round.")] = "10",
    steps: Annotated[int, typer.Option(min=1, help="K, local steps.")] = 5,
    batch: Annotated[int, typer.Option(min=1, help="Samples in a local step.")] = 16,
    engine: Annotated[str, typer.Option(metavar="NAME,...", help="auto, sequential, vectorised.")] = (
        "sequential,vectorised"
    ),
    device: Annotated[Literal["auto", "cpu", "cuda"], typer.Option(help="Where to compute.")] = "auto",
    repeat: Annotated[int, typer.Option(min=1, help="Repetitions, shown as median, least and most.")] = 3,
    quick: Annotated[bool, typer.Option("--quick", help="Repetitions of 0.1 s instead of 1 s.")] = False,
    as_json: Json = False,
) -> None:
    """Time a client's round with each engine, beside a plain loop."""
    counts = _numbers("clients", clients), _numbers("active", active)
    import torch

    from rollcall.benchmark.timing import grid, measure

    if device == "auto":
        device = "cuda" if torch.cuda.is_available() else "cpu"
    cases = grid(task, engine.split(","), device, *counts, steps, batch)
    rows = []
    for row in measure(cases, repeat=repeat, seconds=0.1 if quick else 1.0):
        rows.append(row)
        print(f"{len(rows)} of {len(cases)} measured", file=sys.stderr)
    if as_json:
        print(strict_json(rows))
        return
    table = Grid(box=None, padding=(0, 2, 0, 0), pad_edge=False)
    for name in ("engine", "clients", "active", "ms/client-round", "plain loop", "faster", "MiB"):
        table.add_column(name, justify="left" if name == "engine" else "right", no_wrap=True)
    for row in rows:
        ours, plain = (row[f"{whose}ms_per_client_round"] for whose in ("", "reference_"))
        least, most = (row[f"ms_per_client_round_{end}"] for end in ("min", "max"))
        table.add_row(
            row["engine"],
            f"{row['clients']:,}",
            f"{row['active']:,}",
            f"{ours:,.3g} ({least:,.3g}-{most:,.3g})",
            f"{plain:,.3g}",
            f"{plain / ours:.2f}x",
            f"{row['peak_memory_mb']:,.0f}",
        )
    out.print(table)
    memory = "peak GPU memory of the engine" if device == "cuda" else "peak memory of this process so far"
    print(
        f"{task}, K {steps}, batch {batch}; on {rows[0]['device_name']}, {rows[0]['threads']} threads; "
        f"median (least-most) of {repeat} repetitions; MiB: {memory}"
    )


def _numbers(name: str, text: str) -> list[int]:
    try:
        return [int(number) for number in text.split(",")]
    except ValueError:
        raise SettingError(f"{name}: {text!r} is not allowed; must be whole numbers separated by commas") from None
