"""`rollcall data`: the state of the data sets, downloading and verifying them."""

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any
from urllib.parse import urlsplit

import typer
from rich.table import Table as Grid

from rollcall.benchmark.config.errors import SettingError, listed
from rollcall.cli.options import Json, out

if TYPE_CHECKING:
    from rollcall.tasks.datasets import Source

data = typer.Typer(name="data", help="Show, download and verify data sets.", no_args_is_help=True, add_completion=False)
Names = Annotated[list[str] | None, typer.Argument(help="Names of data sets. Default: all.", metavar="NAME")]


@data.command()
def status(names: Names = None, as_json: Json = False) -> None:
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


@data.command()
def fetch(names: Names = None) -> None:
    """Download what is missing."""
    from rollcall.tasks.datasets import fetch as download

    root, sources = _chosen(names)
    for source in sources:
        try:
            new = download(source, root)
        except ValueError as error:
            raise SettingError(str(error)) from None
        print(f"{source.name}: {'downloaded' if new else 'was already here'}")


@data.command()
def verify(names: Names = None) -> None:
    """Compare files with their checksums.

    The exit code is 1 if a file is damaged. For data sets that are named, a missing file counts as damaged.
    """
    bad = 0
    root, sources = _chosen(names)
    for source in sources:
        verified = source.verify(root)
        if not verified and not names:
            continue  # no file is here, and the set was not named
        states = {path: "damaged" for path, intact in verified.items() if intact is False}
        states |= dict.fromkeys(source.missing(root), "missing")
        for path, state in states.items():
            print(f"{source.name}: {path} is {state}", file=sys.stderr)
        unchecked = list(verified.values()).count(None)
        more = f", {unchecked} without a known checksum" if unchecked else ""
        print(f"{source.name}: {list(verified.values()).count(True)} good{more}")
        bad += len(states)
    raise typer.Exit(1 if bad else 0)


def _chosen(names: list[str] | None) -> "tuple[Path, list[Source]]":
    """The data root, and the data sets with these names, by default all."""
    from rollcall.tasks.datasets import SOURCES, root  # imports torch, which takes seconds

    for name in names or []:
        if name not in SOURCES:
            raise SettingError(f"name: {name!r} is not allowed; must be one of {listed(SOURCES, name)}")
    return root(), [SOURCES[name] for name in names or SOURCES]


def _status(source: "Source", root: Path) -> dict[str, Any]:
    """A row of the table, as `--json` gives it."""
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
