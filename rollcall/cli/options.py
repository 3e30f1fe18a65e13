"""Options and arguments of several commands, consoles, and pictures."""

import sys
from datetime import timedelta
from math import inf
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from rich.console import Console
from typer import Argument, Option

from rollcall.benchmark.config.errors import SettingError
from rollcall.benchmark.config.text import read_time
from rollcall.benchmark.sweep.run import Execution, Executor

if TYPE_CHECKING:
    import altair as alt

out = Console(markup=False, emoji=False)  # texts of files and users are printed as they are
err = Console(stderr=True, markup=False, emoji=False)

INTERRUPTED = 130
"""The exit code of a command that Ctrl-C ended, as in shells."""

METRIC = "NAME[=max|min|zero]"
STORE = Path("runs")

# The experiment, and what is changed in it.
Name = Annotated[str, Argument(help="A name from `rollcall list`, or a YAML file.", metavar="EXPERIMENT")]
Names = Annotated[
    list[str], Argument(help="Names, a paper, a pattern ('*/statements'), or YAML files.", metavar="EXPERIMENT...")
]
Variant = Annotated[str, Option(help="A named variant, for example as_released.")]
Seeds = Annotated[str, Option(metavar="SEED,...", help="Seeds to use instead of the experiment's.")]
Only = Annotated[
    list[str] | None, Option(metavar="AXIS=VALUE,...", help="Keep only these values of an axis of the grid.")
]
Set = Annotated[
    list[str] | None,
    Option("--set", metavar="[METHOD:]SETTING=VALUE,...", help="Change a setting; several values make an axis."),
]
Rounds = Annotated[int | None, Option(help="Number of rounds to use instead of the experiment's.")]
Methods = Annotated[
    list[str] | None, Option("--algorithm", metavar="FILE.py:CLASS", help="Add a method of your own to the grid.")
]
Tuned = Annotated[Path | None, Option(metavar="FILE", help="Use the settings that `rollcall tune` chose.")]

# How trials run.
ExecutorChoice = Annotated[
    Executor | None, Option("--executor", help="Parallel (ray), or one by one (inline). Default: ray if installed.")
]
Gpus = Annotated[str, Option("--gpus-per-trial", metavar="SHARE", help="GPU share of a trial with ray; 0: CPU.")]
Retries = Annotated[int, Option(min=0, help="Restarts of a trial whose process died, with ray.")]
Every = Annotated[
    str, Option("--checkpoint-every", metavar="TIME", help="Time between two checkpoints of a trial: 30s, 5m.")
]
Address = Annotated[
    str,
    Option("--ray-address", metavar="HOST:PORT", help="Ray cluster, or auto. Default: RAY_ADDRESS or this machine."),
]
Storage = Annotated[
    str, Option("--storage", metavar="URL", help="Place for run folders of a cluster without shared disk.")
]

# Results.
Store = Annotated[Path, Option(envvar="ROLLCALL_STORE", help="Folder of the run folders.")]
Mine = Annotated[bool, Option("--mine", help="Leave out kept results; use your own runs alone.")]
Json = Annotated[bool, Option("--json", help="Print JSON instead of text.")]


def execution(
    store: Path, executor: Executor | None, gpus: str, retries: int, every: str, storage: str, address: str, **more: Any
) -> Execution:
    """How trials run, from the options of a command.

    Raises:
        SettingError: an option is not allowed.
    """
    try:
        share = float(gpus)
    except ValueError:
        share = -1.0
    if not 0 <= share < inf:
        raise SettingError(f"gpus-per-trial: {gpus!r} is not allowed; must be a number from 0, such as 0.25")
    pause = timedelta(seconds=read_time(every, "checkpoint-every"))
    return Execution(store, executor, share, retries, pause, storage, address, console=err, **more)


def say(line: str, console: Console = out) -> None:
    """Print a line as it is, however long, without colours."""
    console.print(line, highlight=False, soft_wrap=True)


def draw(name: str, chart: "alt.ConcatChart", file: Path) -> None:
    """Write a picture, and print its name and file on stderr. The ending of the file decides the format.

    Raises:
        SettingError: no format has this ending.
    """
    from rollcall.leaderboard.figures import save

    save(chart, file)
    print(f"{name}: {file}", file=sys.stderr)
