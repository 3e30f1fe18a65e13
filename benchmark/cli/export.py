"""`rollcall export`."""

from pathlib import Path
from typing import Annotated

import typer

from rollcall.benchmark.cli.shared import out
from rollcall.benchmark.config.text import counted


def export(
    run: Annotated[Path, typer.Argument(help="Folder of a finished run.", metavar="RUN")],
    to: Annotated[
        Path | None, typer.Option(metavar="FILE", help="File to write. Default: the run's name with .pt.")
    ] = None,
) -> None:
    """Write the trained model of a run as a torch state dict."""
    import torch

    from rollcall import load

    state = load(run).state_dict()
    file = Path(f"{run.resolve().name}.pt") if to is None else to
    file.parent.mkdir(parents=True, exist_ok=True)
    with file.open("wb") as stream:
        torch.save(state, stream)
    numbers = sum(tensor.numel() for tensor in state.values())
    line = f"Wrote {file}: {counted(len(state), 'tensor')}, {counted(numbers, 'number')}."
    out.print(line, highlight=False, soft_wrap=True)
    out.print("To load it into the task's module:", highlight=False)
    out.print(f'  module = rollcall.load("{run}").module()', highlight=False, markup=False, soft_wrap=True)
    out.print(f'  module.load_state_dict(torch.load("{file}"))', highlight=False, markup=False, soft_wrap=True)
    if all(name.startswith("network.") for name in state):
        out.print("To load it into a network of the same layers, without Rollcall:", highlight=False)
        stripped = '{name.removeprefix("network."): value for name, value in torch.load("FILE").items()}'
        line = f"  network.load_state_dict({stripped.replace('FILE', str(file))})"
        out.print(line, highlight=False, markup=False, soft_wrap=True)
