"""`rollcall participation`."""

from dataclasses import asdict
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import numpy as np
import typer
from jaxtyping import Bool
from matplotlib.figure import Figure
from rich.table import Table as Grid

from rollcall.benchmark.cli.shared import Json, Only, draw, err, out, strict_json
from rollcall.benchmark.config.errors import SettingError
from rollcall.benchmark.config.text import counted, parse_all
from rollcall.leaderboard.plots import participation as pictures
from rollcall.participation import Participation, recording
from rollcall.participation.summary import Summary, probabilities, separation_curves, summarise


class Picture(StrEnum):
    uplinks = "uplinks"
    probabilities = "probabilities"
    separation = "separation"


def participation(
    spec: Annotated[str, typer.Argument(help="A YAML file, or EXPERIMENT:MODEL.", metavar="SPEC")],
    only: Only = None,
    rounds: Annotated[int, typer.Option(min=2, help="Number of rounds to summarise.")] = 2000,
    plot: Annotated[Path | None, typer.Option(help="Draw a picture into this file.", metavar="FILE")] = None,
    picture: Annotated[Picture | None, typer.Option(help="Which picture --plot draws. Default: uplinks.")] = None,
    record: Annotated[
        Path | None, typer.Option(help="Write the rounds as a trace: .npy, .npz, .csv or .parquet.", metavar="FILE")
    ] = None,
    as_json: Json = False,
) -> None:
    """Summarise, draw or record the rounds of a participation model, without any learning."""
    if picture is not None and plot is None:
        raise SettingError("--picture is not allowed without --plot; add --plot FILE")
    from rollcall.benchmark.cli.participation_spec import load

    model, panel = load(spec, parse_all("only", only or []))
    mask = recording.record(model, rounds)
    summary = summarise(model, mask)
    if as_json:
        print(strict_json(asdict(summary)))
    else:
        out.print(_table(f"{spec}, panel {panel}" if panel else spec, summary))
    if plot is not None:
        drawn = picture or Picture.uplinks
        draw(drawn.value, _figure(drawn, model, mask), plot)
    if record is not None:
        try:
            recording.write(mask, record)
        except ValueError as error:
            raise SettingError(f"record: {error}") from None
        err.print(f"{counted(rounds, 'round')}: {record}", highlight=False, soft_wrap=True)


def _figure(picture: Picture, model: Participation, mask: Bool[np.ndarray, "T m"]) -> Figure:
    """A picture of a model and its first rounds."""
    if picture is Picture.uplinks:
        shown = mask[:400]  # four of the longest cycles in the papers
        return pictures.uplinks(shown, probabilities(model, len(shown)))
    if picture is Picture.probabilities:
        return pictures.probabilities(mask.mean(axis=0) if model.stationary is None else model.stationary)
    try:
        return pictures.separation(*separation_curves(model))
    except ValueError as error:
        raise SettingError(str(error)) from None


def _table(name: str, summary: Summary) -> Grid:
    """The summary of a model, a row for each quantity."""
    stated = "" if summary.memory[1] is None else f" (stated mean {summary.memory[1]:.3f})"
    off = (
        "no stationary law is stated"
        if summary.stationary is None
        else f"at most {summary.stationary:.1f} standard errors from the stated law"
    )
    rows = {
        "on in a round": "{:.1f} on average, {} to {}".format(*summary.active),
        "empty rounds": f"{summary.empty:.2%}",
        "availability": "{:.3f} to {:.3f}, median {:.3f}; ".format(*(summary.availability[i] for i in (0, 2, 1))) + off,
        "lag-1 autocorrelation": f"{summary.memory[0]:.3f} on average{stated}",
        "correlation of clients": f"{summary.together:.3f} on average",
        "rounds between participations": "median {:.0f}, 95 % quantile {:.0f}".format(*summary.interval),
        "rounds since the last one": "median {:.0f}, 95 % quantile {:.0f}".format(*summary.staleness),
        "FedAvg's weights": ", ".join(
            f"{name.replace('_', ' ')} {value:.3f}" for name, value in summary.weights.items()
        )
        + " from uniform",
    }
    title = f"{name}: {counted(summary.clients, 'client')}, {counted(summary.rounds, 'round')}"
    grid = Grid(title=title, title_justify="left", show_header=False)
    for name, value in rows.items():
        grid.add_row(name, value)
    return grid
