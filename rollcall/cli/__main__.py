"""`python -m rollcall.cli` is `rollcall`."""

from rollcall.cli import main

main()
