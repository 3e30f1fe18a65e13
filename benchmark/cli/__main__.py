"""`python -m rollcall.benchmark.cli` is `rollcall`."""

from rollcall.benchmark.cli import main

main()
