"""`rollcall bench`: what local work costs on this machine, by engine."""

import json
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table as Grid

from benchmark.config.errors import SettingError

COUNTS = {"clients": "clients", "active": "active", "steps": "K", "batch": "batch"}
"""What a row counts, and the column it stands in; K and the batch only where they differ."""

out = Console()
err = Console(stderr=True)


def bench(
    task: Annotated[str, typer.Option(help="digits, mnist or cifar10: the shape and the model; data are random.")] = (
        "cifar10"
    ),
    clients: Annotated[
        str | None, typer.Option(metavar="N,...", help="The population; by default 100 and 10000.")
    ] = None,
    active: Annotated[
        str | None, typer.Option(metavar="N,...", help="How many of them work in a round; by default 1, 10 and 100.")
    ] = None,
    steps: Annotated[str, typer.Option(metavar="N,...", help="K, local steps.")] = "5",
    batch: Annotated[str, typer.Option(metavar="N,...", help="Samples a step.")] = "16",
    engine: Annotated[
        str, typer.Option(metavar="NAME,...", help="Also compiled, which first takes a minute for each case.")
    ] = "sequential,vectorised",
    device: Annotated[str, typer.Option(help="auto, cpu or cuda.")] = "auto",
    repeat: Annotated[int, typer.Option(min=1, help="Repetitions; median, least and most are shown.")] = 3,
    augment: Annotated[bool, typer.Option("--augment", help="Crop and flip the images.")] = False,
    quick: Annotated[
        bool, typer.Option("--quick", help="Short repetitions; by default of 100 clients, 10 active.")
    ] = False,
    plot: Annotated[Path | None, typer.Option(help="A picture of it.", metavar="FILE")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON instead.")] = False,
) -> None:
    """Time a client's round by each engine, beside a plain loop in the same run."""
    import torch

    from benchmark.timing import grid, measure

    if device not in ("auto", "cpu", "cuda"):
        raise SettingError(f"device: {device!r} is not allowed; must be auto, cpu or cuda")
    if device == "auto":
        device = "cuda" if torch.cuda.is_available() else "cpu"
    cases = grid(
        task,
        engine.split(","),
        device,
        _numbers("clients", clients or ("100" if quick else "100,10000")),
        _numbers("active", active or ("10" if quick else "1,10,100")),
        _numbers("steps", steps),
        _numbers("batch", batch),
    )
    rows: list[dict] = []
    for row in measure(cases, repeat=repeat, seconds=0.1 if quick else 1.0, augment=augment):
        rows.append(row)
        err.print(f"{len(rows)} of {len(cases)} measured", highlight=False)
    if plot is not None:
        from leaderboard.plots.timing import costs

        costs(rows).savefig(plot, dpi=150)
    if as_json:
        print(json.dumps(rows, indent=1))
        return
    counted = [name for name in COUNTS if name in ("clients", "active") or len({row[name] for row in rows}) > 1]
    grid_ = Grid(box=None, padding=(0, 2, 0, 0), pad_edge=False)
    counts = (COUNTS[name] for name in counted)
    for name in ("engine", *counts, "ms/client-round", "plain loop", "faster", "floor", "MiB"):
        grid_.add_column(name, justify="left" if name == "engine" else "right", no_wrap=True)
    for row in rows:
        counts = (f"{row[name]:,}" for name in counted)
        faster = row["reference_ms_per_client_round"] / row["ms_per_client_round"]
        plain, floor = (_short(row[f"{of}_ms_per_client_round"]) for of in ("reference", "floor"))
        memory = f"{row['peak_memory_mb']:,.0f}"
        cost = _spread(row, "ms_per_client_round")
        grid_.add_row(str(row["engine"]), *counts, cost, plain, f"{faster:.2f}x", floor, memory)
    out.print(grid_)
    for name, row in {str(row["engine"]): row for row in rows}.items():
        rate = _spread(row, "loop_rounds_per_second")
        out.print(f"whole rounds of 100 tiny quadratics, {name}: {rate} a second", highlight=False)
    memory = "MiB: of the GPU while the engine worked" if device == "cuda" else "MiB: the most this process had so far"
    out.print(
        f"{task}, K {steps}, batch {batch}; on {rows[0]['device_name']}, {rows[0]['threads']} threads; "
        f"median (least-most) of {repeat} repetitions; floor: this arithmetic at the rate of large products; {memory}",
        highlight=False,
    )


def _numbers(name: str, text: str) -> list[int]:
    try:
        return [int(number) for number in text.split(",")]
    except ValueError:
        raise SettingError(f"{name}: {text!r} is not allowed; must be whole numbers with commas between") from None


def _spread(row: dict, name: str) -> str:
    median, least, most = (_short(row[f"{name}{end}"]) for end in ("", "_min", "_max"))
    return f"{median} ({least}-{most})"


def _short(value: float) -> str:
    return f"{value:,.{0 if value >= 100 else 1 if value >= 10 else 2}f}"
