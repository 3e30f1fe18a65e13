"""`rollcall participation`."""

import json
from dataclasses import asdict
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.table import Table as Grid

from benchmark.cli.options import Json, err, out
from benchmark.config.errors import SettingError


class Picture(StrEnum):
    uplinks = "uplinks"
    probabilities = "probabilities"
    separation = "separation"


def participation(
    spec: Annotated[str, typer.Argument(help="A YAML file, or EXPERIMENT:MODEL.", metavar="SPEC")],
    rounds: Annotated[int, typer.Option(min=2, help="How many to look at.")] = 2000,
    plot: Annotated[Path | None, typer.Option(help="Draw a picture into this file.", metavar="FILE")] = None,
    picture: Annotated[Picture, typer.Option(help="Which one.")] = Picture.uplinks,
    record: Annotated[
        Path | None, typer.Option(help="Write the rounds as a trace: .npy, .npz, .csv, .parquet.")
    ] = None,
    as_json: Json = False,
) -> None:
    """A participation model by itself: what its rounds look like, a picture of them, a trace."""
    from benchmark.cli.participation_spec import load
    from leaderboard.plots import participation as plots
    from participation import recording
    from participation import summary as figures_of

    model = load(spec)
    mask = recording.record(model, rounds)
    summary = figures_of.summarise(model, mask)
    if as_json:
        print(json.dumps(asdict(summary), indent=1))
    else:
        out.print(_roll_call(spec, summary))
    if plot is not None:
        shown = mask[:400]  # four of the longest cycles in the papers
        if picture is Picture.uplinks:
            figure = plots.uplinks(shown, figures_of.probabilities(model, len(shown)))
        elif picture is Picture.probabilities:
            figure = plots.probabilities(mask.mean(axis=0) if model.stationary is None else model.stationary)
        else:
            try:
                figure = plots.separation(*figures_of.separation_curves(model))
            except ValueError as error:
                raise SettingError(str(error)) from None
        plot.parent.mkdir(parents=True, exist_ok=True)
        figure.savefig(plot, dpi=150)
        err.print(f"{picture.value}: {plot}", highlight=False, soft_wrap=True)
    if record is not None:
        try:
            recording.write(mask, record)
        except ValueError as error:
            raise SettingError(f"record: {error}") from None
        err.print(f"{rounds} rounds: {record}", highlight=False, soft_wrap=True)


def _roll_call(spec: str, summary: Any) -> Grid:
    stated = "" if summary.memory[1] is None else f" (stated mean {summary.memory[1]:.3f})"
    off = (
        "no stationary law is stated"
        if summary.stationary is None
        else f"within {summary.stationary:.1f} standard errors"
    )
    rows = {
        "on in a round": "{:.1f} on average, {} to {}".format(*summary.active),
        "empty rounds": f"{summary.empty:.2%}",
        "availability": "{:.3f} to {:.3f}, median {:.3f}; ".format(*(summary.availability[i] for i in (0, 2, 1))) + off,
        "lag-1 autocorrelation": f"{summary.memory[0]:.3f} on average{stated}",
        "correlation of clients": f"{summary.together:.3f} on average",
        "between participations": "{:.0f} rounds in the median, {:.0f} at 95 %".format(*summary.interval),
        "staleness": "{:.0f} rounds in the median, {:.0f} at 95 %".format(*summary.staleness),
        "FedAvg's weights": ", ".join(
            f"{name.replace('_', ' ')} {value:.3f}" for name, value in summary.weights.items()
        )
        + " from uniform",
    }
    grid = Grid(
        title=f"{spec}: {summary.clients} clients, {summary.rounds} rounds", title_justify="left", show_header=False
    )
    for name, value in rows.items():
        grid.add_row(name, value)
    return grid
