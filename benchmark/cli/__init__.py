"""The command line, one file for each command."""

from benchmark.cli.app import main

__all__ = ["main"]
