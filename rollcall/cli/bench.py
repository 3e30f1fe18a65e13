"""`rollcall bench`: the cost of local work on this machine, by engine."""

import sys
from itertools import product
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
    quick: Annotated[bool, typer.Option("--quick", help="Repetitions of 0.1 s instead of 1 s.")] = False,
    as_json: Json = False,
) -> None:
    """Time a client's round with each engine, beside a plain loop."""
    import torch

    from rollcall.benchmark.engines import ENGINES
    from rollcall.benchmark.timing import Case, measure

    if device == "auto":
        device = "cuda" if torch.cuda.is_available() else "cpu"
    counts = product(_numbers("clients", clients), _numbers("active", active))
    engines = engine.split(",")
    if not set(engines) <= ENGINES.keys():
        raise SettingError(f"engine: {engine!r} is not allowed; must be of {', '.join(ENGINES)}")
    cases = [Case(task, name, device, m, a, steps, batch) for m, a in counts if 1 <= a <= m for name in engines]
    if not cases:
        raise SettingError(f"active: {active} is not allowed; must be in 1 to {clients}, the clients")
    rows = []
    for case in cases:
        rows.append(measure(case, 0.1 if quick else 1.0))
        print(f"{len(rows)} of {len(cases)} measured", file=sys.stderr)
    if as_json:
        print(strict_json(rows))
        return
    table = Grid(box=None, padding=(0, 2, 0, 0), pad_edge=False)
    for name in ("engine", "clients", "active", "ms/client-round", "plain loop", "faster"):
        table.add_column(name, justify="left" if name == "engine" else "right", no_wrap=True)
    for row in rows:
        ours, plain = row["ms_per_client_round"], row["reference_ms_per_client_round"]
        least, most = row["ms_per_client_round_min"], row["ms_per_client_round_max"]
        sizes = f"{row['clients']:,}", f"{row['active']:,}"
        table.add_row(
            row["engine"], *sizes, f"{ours:,.3g} ({least:,.3g}-{most:,.3g})", f"{plain:,.3g}", f"{plain / ours:.2f}x"
        )
    out.print(table)
    print(f"{task}, K {steps}, batch {batch}; {device}, {rows[0]['threads']} threads; median (least-most) of three")


def _numbers(name: str, text: str) -> list[int]:
    try:
        return [int(number) for number in text.split(",")]
    except ValueError:
        raise SettingError(f"{name}: {text!r} is not allowed; must be whole numbers separated by commas") from None
