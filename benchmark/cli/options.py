"""Options and arguments that several commands share, and where they print."""

from importlib.util import find_spec
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from benchmark.config.errors import SettingError

out = Console()
err = Console(stderr=True)

Name = Annotated[str, typer.Argument(help="A name that `rollcall list` shows, or a YAML file.", metavar="EXPERIMENT")]
Names = Annotated[
    str,
    typer.Argument(
        help="A name that `rollcall list` shows, a paper for all of its, or a YAML file.", metavar="EXPERIMENT"
    ),
]
Variant = Annotated[str, typer.Option(help="Another reading that the experiment has, such as as_released.")]
Seeds = Annotated[str, typer.Option(metavar="SEED,...", help="Instead of the experiment's.")]
Only = Annotated[
    list[str] | None, typer.Option(metavar="AXIS=VALUE,...", help="Only these values of an axis of the grid.")
]
Set = Annotated[
    list[str] | None,
    typer.Option("--set", metavar="SETTING=VALUE,...", help="Change a setting; try several."),
]
Rounds = Annotated[int | None, typer.Option(help="Instead of the experiment's.")]
Methods = Annotated[
    list[str] | None, typer.Option("--algorithm", metavar="FILE.py:CLASS", help="Add a method of your own.")
]
Store = Annotated[Path, typer.Option(envvar="ROLLCALL_STORE", help="Where run folders lie.")]
Json = Annotated[bool, typer.Option("--json", help="Print JSON instead.")]
STORE = Path("runs")


def need_mlflow() -> None:
    """For a command that reads results.

    Raises:
        SettingError: MLflow is not installed.
    """
    if not find_spec("mlflow"):
        raise SettingError("this command needs MLflow: pip install mlflow")
