"""The command line, one file for each command."""

from benchmark.cli.main import main

__all__ = ["main"]
