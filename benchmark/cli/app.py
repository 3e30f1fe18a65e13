"""The command line: `rollcall`. Each command reads its options, calls the package that does the work, and prints."""

import sys
from importlib.metadata import entry_points

import typer

from benchmark.allocator import collect_garbage_seldom, keep_freed_memory
from benchmark.cli.bench import bench
from benchmark.cli.check import check
from benchmark.cli.clean import clean
from benchmark.cli.data import data
from benchmark.cli.doctor import doctor
from benchmark.cli.export import export
from benchmark.cli.list import list_
from benchmark.cli.options import INTERRUPTED
from benchmark.cli.participation import participation
from benchmark.cli.run import run
from benchmark.cli.show import show
from benchmark.cli.status import status
from benchmark.cli.sync import sync
from benchmark.cli.tune import tune
from benchmark.config.errors import SettingError
from benchmark.federation.interruption import Interrupted

app = typer.Typer(
    help="Federated learning with partial client participation: run experiments, compare methods, reproduce tables.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)
app.command("list")(list_)
for command in (show, run, tune, status, check, participation, bench, sync, export, doctor, clean):
    app.command()(command)
app.add_typer(data, name="data")
for entry in entry_points(group="rollcall.commands"):  # of the leaderboard, and of installed plugins
    app.command(entry.name)(entry.load())


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
