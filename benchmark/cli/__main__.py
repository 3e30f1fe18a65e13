"""`python -m benchmark.cli` is `rollcall`."""

from benchmark.cli.app import main

main()
