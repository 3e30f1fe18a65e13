"""Reference of the command line, from the typer application."""

import typer
from typer.cli import get_docs_for_click
from typer.main import get_command

from benchmark.cli.app import app


def pages() -> dict[str, str]:
    """One page with all commands, their arguments and options."""
    command = get_command(app)
    context = typer.Context(command, info_name="rollcall")
    return {"commands.md": get_docs_for_click(obj=command, ctx=context, name="rollcall", title="Commands")}
