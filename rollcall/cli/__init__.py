"""The command line. `app.py` lists the commands.

A command's module imports at its head what its options and `--help` need. Its function imports what does the work. So
`--help` and a refused option do not wait for torch, and a command that reads results does not either. Elsewhere in the
suite only optional and very slow packages are imported inside functions.
"""

import sys


def main() -> None:
    """Run the command: see `rollcall.cli.app.main`."""
    try:
        from rollcall.cli.app import main as run
    except KeyboardInterrupt:
        print("Stopped before anything ran.", file=sys.stderr)
        sys.exit(130)
    run()
