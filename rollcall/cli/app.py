"""The command line: `rollcall`. Each command reads its options, calls the package that does the work, and prints."""

import errno
import sys
from collections.abc import Callable

import typer

from rollcall.benchmark.config.errors import SettingError
from rollcall.benchmark.process import Interrupted, collect_garbage_seldom, keep_freed_memory
from rollcall.cli import check, leaderboard, machine, papers, participation, run, show, store
from rollcall.cli.options import INTERRUPTED, Command

PANELS: dict[str, dict[str, Callable[..., None]]] = {
    "Run": {"run": run.run, "tune": run.tune, "status": store.status, "bench": machine.bench},
    "Look": {
        "list": show.list_,
        "show": show.show,
        "leaderboard": leaderboard.leaderboard,
        "compare": leaderboard.compare,
        "participation": participation.participation,
        "report": papers.report,
        "site": papers.site,
    },
    "Bring your own": {"check": check.check, "enter": check.enter, "verify": check.verify, "export": store.export},
    "Maintain": {"sync": store.sync, "doctor": store.doctor, "clean": store.clean, "archive": papers.archive},
}
"""The headings of the help, and the commands below each."""

app = typer.Typer(
    help="Federated learning with partial client participation: run experiments, compare methods, reproduce tables.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)
for panel, commands in PANELS.items():
    for name, command in commands.items():
        app.command(name, cls=Command, rich_help_panel=panel)(command)
app.add_typer(machine.data, name="data", rich_help_panel="Bring your own")


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
        if error.filename is None and error.errno not in (errno.ENOSPC, errno.EDQUOT):
            raise
        why = error.strerror or error
        print(f"error: {error.filename or 'a file'}: cannot be read or written ({why})", file=sys.stderr)
        sys.exit(2)
