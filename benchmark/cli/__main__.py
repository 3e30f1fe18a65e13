"""`python -m benchmark.cli` is `rollcall`."""

from benchmark.cli.main import main

main()
