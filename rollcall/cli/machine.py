"""`rollcall bench` and `rollcall data`: the speed of this machine, and which data sets are on it."""

import json
import sys
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal
from urllib.parse import urlsplit

import typer
from rich.table import Table as Grid

from rollcall.benchmark.config.errors import SettingError, check_one_of
from rollcall.benchmark.config.text import parse_values, strict_json
from rollcall.cli.options import Command, Json, out

if TYPE_CHECKING:
    from rollcall.tasks.datasets import Source


STEPS, BATCH = 5, 16
"""Local steps, and samples in each, that `bench` times."""


def bench(
    task: Annotated[
        Literal["digits", "mnist", "cifar10"], typer.Option(help="Shape and model; the data are random.")
    ] = "cifar10",
    clients: Annotated[str, typer.Option(metavar="N,...", help="Clients in all.")] = "100",
    active: Annotated[str, typer.Option(metavar="N,...", help="Active clients in a round.")] = "10",
    device: Annotated[Literal["auto", "cpu", "cuda"], typer.Option(help="Where to compute.")] = "auto",
    quick: Annotated[bool, typer.Option("--quick", help="Repetitions of 0.1 s instead of 1 s.")] = False,
    as_json: Json = False,
) -> None:
    """Time a client's round with each engine, beside a plain loop."""
    import torch

    from rollcall.benchmark.timing import Case, measure

    if device == "auto":
        device = "cuda" if torch.cuda.is_available() else "cpu"
    given = {"clients": parse_values("clients", clients), "active": parse_values("active", active)}
    for name, value in [(name, value) for name, values in given.items() for value in values]:
        if type(value) is not int or value < 1:
            raise SettingError(f"{name}: {value!r} is not allowed; must be a whole number from 1")
    counts = [(m, a) for m, a in product(*given.values()) if a <= m]
    if not counts:
        raise SettingError(f"active: {active} is not allowed; must be whole numbers from 1 to {clients}, the clients")
    rows = []
    for m, a in counts:
        for engine in ("sequential", "vectorised"):
            rows.append(measure(Case(task, engine, device, m, a, STEPS, BATCH), 0.1 if quick else 1.0))
            print(f"{len(rows)} of {2 * len(counts)} measured", file=sys.stderr)
    if as_json:
        print(strict_json(rows))
        return
    table = Grid("engine", "clients", "active", "ms/client-round", "plain loop", "faster", box=None)
    for row in rows:
        ours, plain = row["ms_per_client_round"], row["reference_ms_per_client_round"]
        spread = f"{ours:,.3g} ({row['ms_per_client_round_min']:,.3g}-{row['ms_per_client_round_max']:,.3g})"
        sizes = f"{row['clients']:,}", f"{row['active']:,}"
        table.add_row(row["engine"], *sizes, spread, f"{plain:,.3g}", f"{plain / ours:.2f}x")
    out.print(table)
    print(f"{task}, K {STEPS}, batch {BATCH}; {device}, {rows[0]['threads']} threads; median (least-most) of three")


data = typer.Typer(name="data", help="Show and download data sets.", no_args_is_help=True, add_completion=False)
DataSets = Annotated[list[str] | None, typer.Argument(help="Names of data sets. Default: all.", metavar="NAME")]


@data.command(cls=Command)
def status(names: DataSets = None, as_json: Json = False) -> None:
    """Show which data sets are here, and their sources."""
    root, sources = _chosen(names)
    rows = [_status(source, root) for source in sources]
    if as_json:
        print(json.dumps(rows, indent=1))
        return
    grid = Grid("data set", "here", "from", box=None, padding=(0, 2, 0, 0))
    for row in rows:
        partly = f"{row['files'] - row['missing']} of {row['files']}"
        here = "yes" if row["present"] else "no" if row["missing"] == row["files"] else partly
        hosts = "\n".join(dict.fromkeys(urlsplit(url).netloc for url in row["urls"])) or "scikit-learn"
        grid.add_row(row["name"], here, hosts)
    out.print(grid)
    print(f"in {root.resolve()}")


@data.command(cls=Command)
def fetch(names: DataSets = None) -> None:
    """Download what is missing."""
    from rollcall.tasks.datasets import fetch as download

    root, sources = _chosen(names)
    for source in sources:
        try:
            new = download(source, root)
        except ValueError as error:
            raise SettingError(str(error)) from None
        print(f"{source.name}: {'downloaded' if new else 'was already here'}")


def _chosen(names: list[str] | None) -> "tuple[Path, list[Source]]":
    from rollcall.tasks.datasets import SOURCES, root  # imports torch, which takes seconds

    for name in names or []:
        check_one_of("name", name, SOURCES)
    return root(), [SOURCES[name] for name in names or SOURCES]


def _status(source: "Source", root: Path) -> dict[str, Any]:
    missing = source.missing(root)
    return {
        "name": source.name,
        "present": not missing,
        "files": len(source.files),
        "missing": len(missing),
        "folder": str(root.resolve()),
        "urls": source.urls,
        "download_bytes": source.download_bytes,
    }
