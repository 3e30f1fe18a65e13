"""The command line: `rollcall`. Each command reads its options, calls the package that does the work, and prints.

A command's module is imported when the command is called. Only slow imports that `--help` and the refusal of a wrong
option do not need stand inside functions: torch, Lightning, Ray, MLflow, and the modules that import them.
"""

import sys
from pkgutil import resolve_name
from typing import Any

import typer
from typer.core import TyperCommand, TyperGroup
from typer.main import get_command

from rollcall.benchmark.allocator import collect_garbage_seldom, keep_freed_memory
from rollcall.benchmark.cli.shared import INTERRUPTED
from rollcall.benchmark.config.errors import SettingError
from rollcall.benchmark.federation.interruption import Interrupted

COMMANDS = {
    "list": ("rollcall.benchmark.cli.show:list_", "List the experiments, and the names that experiment files can use."),
    "show": (
        "rollcall.benchmark.cli.show:show",
        "Show an experiment's settings, grid and claims, and how many of its trials are finished.",
    ),
    "run": (
        "rollcall.benchmark.cli.run:run",
        "Run an experiment's trials. Rerunning resumes interrupted trials and skips finished ones.",
    ),
    "tune": ("rollcall.benchmark.cli.tune:tune", "Search hyper-parameters, for every cell alike. Rerunning resumes."),
    "status": (
        "rollcall.benchmark.cli.store:status",
        "Show how many trials in the store are finished, running, interrupted, failed or diverged.",
    ),
    "check": (
        "rollcall.benchmark.cli.check:check",
        "Run the conformance checks on parts, your own included, and explain each failure.",
    ),
    "participation": (
        "rollcall.benchmark.cli.participation:participation",
        "Summarise, draw or record the rounds of a participation model, without any learning.",
    ),
    "bench": (
        "rollcall.benchmark.cli.bench:bench",
        "Time a client's round with each engine, beside a plain loop in the same run.",
    ),
    "sync": (
        "rollcall.benchmark.cli.store:sync",
        "Copy run folders into MLflow that are not there yet, such as those of other machines.",
    ),
    "export": ("rollcall.benchmark.cli.store:export", "Write the trained model of a run as a torch state dict."),
    "doctor": (
        "rollcall.benchmark.cli.store:doctor",
        "Find damaged files in run folders, and a damaged mlflow.db, and set them aside with --fix.",
    ),
    "clean": (
        "rollcall.benchmark.cli.store:clean",
        "List or delete the run folders of failed trials; with --unlisted also of trials that are not in the file.",
    ),
    "archive": ("rollcall.leaderboard.cli.papers:archive", "Keep finished runs of papers' experiments as small files."),
    "leaderboard": (
        "rollcall.leaderboard.cli.leaderboard:leaderboard",
        "Print the table of an experiment and write it, with a figure, as files.",
    ),
    "compare": (
        "rollcall.leaderboard.cli.compare:compare",
        "Compare two methods, or two variants of an experiment, cell by cell and seed by seed.",
    ),
    "report": (
        "rollcall.leaderboard.cli.papers:report",
        "Write REPRODUCTION.md, FINDINGS.md, a page for each experiment, and figures: claim by claim, what reproduced.",
    ),
    "site": (
        "rollcall.leaderboard.cli.papers:site",
        "Write static pages: home, claims, experiments, methods, participation models, comparison.",
    ),
    "data": ("rollcall.benchmark.cli.data:data", "Show, download and verify data sets."),
}
"""By the name of a command: the address of its function, and the first paragraph of the function's docstring."""


PANELS = {
    "Run": "run tune status bench",
    "Look": "list show leaderboard compare participation report site",
    "Bring your own": "check data export",
    "Maintain": "sync doctor clean archive",
}
"""The headings of the help, and the commands below each."""


class Commands(TyperGroup):
    """The group of all commands; their help is known before they are imported."""

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        name, known, others = super().resolve_command(ctx, args)
        return name, known and imported(str(name)), others


def imported(name: str) -> Any:
    """The command itself, with its options."""
    command = resolve_name(COMMANDS[name][0])
    if not isinstance(command, typer.Typer):  # `data` is a group
        single = typer.Typer(add_completion=False)
        single.command(name)(command)
        command = single
    return get_command(command)


app = Commands(
    help="Federated learning with partial client participation: run experiments, compare methods, reproduce tables.",
    no_args_is_help=True,
    commands={
        name: TyperCommand(name, help=COMMANDS[name][1], rich_help_panel=panel)
        for panel, names in PANELS.items()
        for name in names.split()
    },
)


def main() -> None:
    """Run the command.

    A `SettingError`, or a file that cannot be read or written, ends it with one line and code 2; a request to stop ends
    it with one line and code 130.
    """
    keep_freed_memory()
    collect_garbage_seldom()
    try:
        app()
    except SettingError as error:
        print(f"error: {error}", file=sys.stderr)
        sys.exit(2)
    except Interrupted as reason:
        print(reason, file=sys.stderr)
        sys.exit(INTERRUPTED)
    except BrokenPipeError:  # the reader, such as `head`, has read enough
        sys.exit(1)
    except OSError as error:
        if error.filename is None:
            raise
        print(f"error: {error.filename}: cannot be read or written ({error.strerror})", file=sys.stderr)
        sys.exit(2)
