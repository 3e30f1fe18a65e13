"""The command line. `app.py` lists the commands and where each is defined."""

from rollcall.benchmark.cli.app import main

__all__ = ["main"]
