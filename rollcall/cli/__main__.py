"""`python -m rollcall.cli` is `rollcall`."""

from rollcall.cli.app import main

main()
