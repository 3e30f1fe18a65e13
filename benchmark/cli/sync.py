"""`rollcall sync`."""

from typing import Annotated

import typer

from benchmark.cli.options import STORE, Store, need_mlflow, out


def sync(
    experiments: Annotated[
        list[str] | None, typer.Argument(help="By default all of the store.", metavar="EXPERIMENT")
    ] = None,
    store: Store = STORE,
) -> None:
    """Bring run folders into MLflow: those of inline runs where it was not installed, or of other machines."""
    need_mlflow()
    from benchmark.sweep.mlflow_mirror import sync as bring_in

    for name, count in bring_in(store, experiments or []).items():
        out.print(f"{name}: {count} run folders", highlight=False)
