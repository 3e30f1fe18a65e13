"""`rollcall data`: what data sets there are here, bringing them, checking them."""

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated
from urllib.parse import urlsplit

import typer
from rich.console import Console
from rich.filesize import decimal
from rich.table import Table as Grid

from benchmark.config.errors import SettingError

if TYPE_CHECKING:
    from tasks.datasets import Source

data = typer.Typer(help="The data sets: what is here, fetch, verify.", no_args_is_help=True)
out = Console()

Names = Annotated[list[str] | None, typer.Argument(help="By default all.", metavar="NAME")]
Json = Annotated[bool, typer.Option("--json", help="Print JSON instead.")]


@data.command()
def status(names: Names = None, as_json: Json = False) -> None:
    """Which data sets are here, where, how large, and where they would come from."""
    from tasks.datasets import root

    rows = [_status(source, root()) for source in _chosen(names)]
    if as_json:
        print(json.dumps(rows, indent=1))
        return
    grid = Grid("data set", "here", "on disk", "download", "from", box=None, padding=(0, 2, 0, 0))
    for row in rows:
        some = f"{row['files'] - row['missing']} of {row['files']}"
        here = "yes" if row["present"] else "no" if row["missing"] == row["files"] else some
        hosts = "\n".join(dict.fromkeys(urlsplit(url).netloc for url in row["urls"])) or "scikit-learn"
        sizes = (decimal(size) if size else "-" for size in (row["bytes"], row["download_bytes"]))
        grid.add_row(row["name"], here, *sizes, hosts)
    out.print(grid)
    out.print(f"in {root().resolve()}", highlight=False, soft_wrap=True)


@data.command()
def fetch(names: Names = None) -> None:
    """Download what is missing. Stopped, or cut off: the same command goes on."""
    from tasks.datasets import root
    from tasks.datasets.fetch import fetch as bring

    for source in _chosen(names):
        try:
            new = bring(source, root())
        except ValueError as error:
            raise SettingError(str(error)) from None
        out.print(f"{source.name}: {'fetched' if new else 'was there'}", highlight=False)


@data.command()
def verify(names: Names = None) -> None:
    """Compare the files that are here with their checksums; exit code 1 if one is damaged.

    With names, a file that is missing counts as damaged.
    """
    from tasks.datasets import root

    bad = 0
    for source in _chosen(names):
        missing = source.missing(root())
        found = source.verify(root())
        wrong = [path for path, intact in found.items() if intact is False]
        if not found and not names:
            continue  # nothing of it is here, and nobody asked
        for path in wrong:
            print(f"{source.name}: {path} is damaged", file=sys.stderr)
        for path in missing:
            print(f"{source.name}: {path} is missing", file=sys.stderr)
        unchecked = sum(intact is None for intact in found.values())
        good = len(found) - len(wrong) - unchecked
        more = f", {unchecked} without a checksum to compare with" if unchecked else ""
        out.print(f"{source.name}: {good} good{more}", highlight=False)
        bad += len(wrong) + len(missing)
    raise typer.Exit(1 if bad else 0)


def _chosen(names: list[str] | None) -> "list[Source]":
    from tasks.datasets import SOURCES

    for name in names or []:
        if name not in SOURCES:
            raise SettingError(f"name: {name!r} is not allowed; must be one of {', '.join(SOURCES)}")
    return [SOURCES[name] for name in names or SOURCES]


def _status(source: "Source", root: Path) -> dict:
    """A row of the table, as `--json` gives it."""
    missing = source.missing(root)
    return {
        "name": source.name,
        "present": not missing,
        "files": len(source.files(root)),
        "missing": len(missing),
        "folder": str(root.resolve()),
        "bytes": sum(_size(root / path) for path in source.places()),
        "urls": [url for archive in source.archives() for url in archive.urls],
        "download_bytes": source.download_bytes,
    }


def _size(path: Path) -> int:
    """Bytes of a file, or of all files in a folder."""
    if path.is_dir():
        return sum(file.stat().st_size for file in path.rglob("*") if file.is_file())
    return path.stat().st_size if path.is_file() else 0
