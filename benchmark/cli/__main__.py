"""`python -m benchmark.cli` is `rollcall`."""

from benchmark.cli import main

main()
