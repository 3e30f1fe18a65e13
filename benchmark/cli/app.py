"""The command line: `rollcall`. Each command reads its options, calls the package that does the work, and prints.

A command's module is imported when the command is called. Only slow imports that `--help` and the refusal of a wrong
option do not need stand inside functions: torch, Lightning, Ray, MLflow, and the modules that import them.
"""

import re
import sys
from pathlib import Path
from pkgutil import resolve_name
from typing import Any, cast

import typer
from typer.core import TyperCommand, TyperGroup
from typer.main import get_command

from rollcall.benchmark.allocator import collect_garbage_seldom, keep_freed_memory
from rollcall.benchmark.cli.shared import INTERRUPTED
from rollcall.benchmark.config.errors import SettingError
from rollcall.benchmark.federation.interruption import Interrupted

COMMANDS = {
    "list": "rollcall.benchmark.cli.show:list_",
    "show": "rollcall.benchmark.cli.show:show",
    "run": "rollcall.benchmark.cli.run:run",
    "tune": "rollcall.benchmark.cli.tune:tune",
    "status": "rollcall.benchmark.cli.store:status",
    "check": "rollcall.benchmark.cli.check:check",
    "participation": "rollcall.benchmark.cli.participation:participation",
    "bench": "rollcall.benchmark.cli.bench:bench",
    "sync": "rollcall.benchmark.cli.store:sync",
    "export": "rollcall.benchmark.cli.store:export",
    "doctor": "rollcall.benchmark.cli.store:doctor",
    "clean": "rollcall.benchmark.cli.store:clean",
    "archive": "rollcall.leaderboard.cli.papers:archive",
    "leaderboard": "rollcall.leaderboard.cli.leaderboard:leaderboard",
    "report": "rollcall.leaderboard.cli.papers:report",
    "data": "rollcall.benchmark.cli.data:data",
}
"""The address of each command's function. The first paragraph of its docstring is the help."""


class Commands(TyperGroup):
    """The group of all commands. Their help is read from their source files before they are imported."""

    def get_command(self, ctx: Any, name: str) -> Any:
        module, _, function = COMMANDS.get(name, "").partition(":")
        if not function:
            return None
        file = Path(__file__).parents[2].joinpath(*module.split(".")[1:]).with_suffix(".py")
        written = re.search(
            rf'^def {function}\(.*?"""(.*?)(\n\n|""")', file.read_text(encoding="utf-8"), re.DOTALL | re.M
        )
        return TyperCommand(name, help=written[1]) if written else imported(name)  # `data` is a group

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        name, known, others = super().resolve_command(ctx, args)
        return name, known and imported(str(name)), others


def imported(name: str) -> Any:
    """The command itself, with its options."""
    command = resolve_name(COMMANDS[name])
    if not isinstance(command, typer.Typer):  # `data` is a group
        single = typer.Typer(add_completion=False)
        single.command(name)(command)
        command = single
    return get_command(command)


app = Commands(
    help="Federated learning with partial client participation: run experiments, compare methods, reproduce tables.",
    no_args_is_help=True,
    commands=cast(Any, COMMANDS),
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
