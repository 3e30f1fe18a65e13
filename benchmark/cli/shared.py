"""Options and arguments of several commands, consoles, JSON and pictures."""

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console

from rollcall.benchmark.config.text import strict_json as strict_json  # for the commands

if TYPE_CHECKING:
    from rollcall.leaderboard.plots.figure import Figure

out = Console(markup=False, emoji=False)  # texts of files and users are printed as they are
err = Console(stderr=True, markup=False, emoji=False)

INTERRUPTED = 130
"""The exit code of a command that Ctrl-C ended, as in shells."""

Name = Annotated[str, typer.Argument(help="A name from `rollcall list`, or a YAML file.", metavar="EXPERIMENT")]
Names = Annotated[
    list[str],
    typer.Argument(
        help="Names from `rollcall list`, a paper, a pattern ('*/statements'), or YAML files.", metavar="EXPERIMENT..."
    ),
]
Variant = Annotated[str, typer.Option(help="A named variant, for example as_released.")]
Seeds = Annotated[str, typer.Option(metavar="SEED,...", help="Seeds to use instead of the experiment's.")]
Only = Annotated[
    list[str] | None, typer.Option(metavar="AXIS=VALUE,...", help="Keep only these values of an axis of the grid.")
]
Set = Annotated[
    list[str] | None,
    typer.Option(
        "--set",
        metavar="SETTING=VALUE,...",
        help="Change a setting; several values make an axis. METHOD:SETTING=VALUE: of one method.",
    ),
]
Rounds = Annotated[int | None, typer.Option(help="Number of rounds to use instead of the experiment's.")]
Methods = Annotated[
    list[str] | None, typer.Option("--algorithm", metavar="FILE.py:CLASS", help="Add a method of your own to the grid.")
]
Tuned = Annotated[Path | None, typer.Option(metavar="FILE", help="Use the settings that `rollcall tune` chose.")]
Store = Annotated[Path, typer.Option(envvar="ROLLCALL_STORE", help="Folder of the run folders.")]
Json = Annotated[bool, typer.Option("--json", help="Print JSON instead of text.")]
STORE = Path("runs")


def say(line: str, console: Console = out) -> None:
    """Print a line as it is, however long, without colours."""
    console.print(line, highlight=False, soft_wrap=True)


def draw(name: str, figure: "Figure", file: Path) -> None:
    """Write a picture, and print its name and file on stderr. The ending of the file decides the format.

    Raises:
        SettingError: no format has this ending.
    """
    figure.save(file)
    print(f"{name}: {file}", file=sys.stderr)
