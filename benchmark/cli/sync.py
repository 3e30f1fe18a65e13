"""`rollcall sync`."""

from typing import Annotated

import typer

from benchmark.cli.options import STORE, Store, need_mlflow, out


def sync(
    experiments: Annotated[
        list[str] | None, typer.Argument(help="Experiments to copy. Default: all in the store.", metavar="EXPERIMENT")
    ] = None,
    store: Store = STORE,
) -> None:
    """Copy run folders into MLflow that are not there yet, such as those of other machines."""
    need_mlflow()
    from benchmark.sweep.mlflow_mirror import sync as copy

    for name, count in copy(store, experiments or []).items():
        out.print(f"{name}: {count} run folders", highlight=False)
