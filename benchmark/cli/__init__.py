"""The command line, one file for each command."""


def main() -> None:
    """The entry point of `rollcall`."""
    # Here, because the commands that `app` collects by entry points import modules of this package.
    from benchmark.cli.app import main as run

    run()
