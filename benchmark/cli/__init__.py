"""The command line, one file for each command."""

from rollcall.benchmark.cli.app import main

__all__ = ["main"]
