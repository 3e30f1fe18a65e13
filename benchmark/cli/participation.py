"""`rollcall participation`: the participation model of a YAML file or of an experiment, without any learning."""

import sys
from collections.abc import Mapping
from dataclasses import asdict
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer
from jaxtyping import Bool
from pydantic import Field, PositiveFloat, PositiveInt
from rich.table import Table as Grid

from rollcall.benchmark.cli.shared import Json, Only, draw, out, strict_json
from rollcall.benchmark.config.base import Settings, load_yaml, validated
from rollcall.benchmark.config.errors import SettingError, at, listed
from rollcall.benchmark.config.experiment import Experiment, places
from rollcall.benchmark.config.text import counted, parse_all
from rollcall.benchmark.config.trial import ParticipationChoice, Trial
from rollcall.leaderboard.plots import participation as pictures
from rollcall.leaderboard.plots.figure import Figure
from rollcall.participation import Participation, Population, recording
from rollcall.participation.streams import stream
from rollcall.participation.summary import Summary, probabilities, summarise


class Picture(StrEnum):
    uplinks = "uplinks"
    probabilities = "probabilities"


class Classes(Settings):
    """Class distributions for clients without data."""

    count: PositiveInt = Field(10, description="C, the number of classes")
    alpha: PositiveFloat = Field(0.1, description="concentration of the Dirichlet distribution of a client's classes")


class RollCall(Settings):
    """The content of a YAML file with a participation model."""

    clients: PositiveInt = Field(description="m, the number of clients")
    seed: int = Field(0, ge=0, description="seed of all random draws")
    classes: Classes = Field(Classes(), description="class distributions of the clients")
    participation: ParticipationChoice = Field(description="the participation model")


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
        print(f"{counted(rounds, 'round')}: {record}", file=sys.stderr)


def load(spec: str, only: Mapping[str, list[Any]] | None = None) -> tuple[Participation, str]:
    """The model of a YAML file or of an experiment: `fedpbc/table1:markov`, or `quickstart`, which has only one.

    The second `bernoulli` of an axis is called `bernoulli#2`. Of the models with one label, the first counts. If panels
    differ in their data, the first panel whose data set is on this machine counts.

    Args:
        spec: the file, or EXPERIMENT:MODEL.
        only: labels to keep by axis of the experiment, such as the panel.

    Returns:
        the model; and its panel, empty if there is but one.

    Raises:
        SettingError: the model does not exist, one of its options is not allowed, or its data set is not here.
    """
    content: Any = load_yaml(Path(spec)) if Path(spec).is_file() else None
    if isinstance(content, dict) and "trial" not in content:
        if only:
            raise SettingError("--only is not allowed with a file of a participation model; it has no panels")
        file = validated(RollCall, content)
        concentration = np.full(file.classes.count, file.classes.alpha)
        nu = stream(file.seed, "partition").dirichlet(concentration, size=file.clients)
        with at("participation"):
            return file.participation.build(Population(file.clients, file.seed, nu)), ""
    name, _, wanted = spec.partition(":")
    experiment = Experiment.read(name).only(only or {})
    models = _models(experiment)
    if not models:
        raise SettingError(f"participation: {name} has no participation model; its panels are analyses")
    if wanted not in models and (wanted or len(models) > 1):
        raise SettingError(
            f"participation: {wanted!r} is not a model of {name}; must be one of {listed(models, wanted)}"
        )
    from rollcall.benchmark.federation.build import build  # imports torch, which takes seconds
    from rollcall.benchmark.sweep.estimate import missing

    panels = models[wanted or next(iter(models))]
    for panel, trial in panels.items():
        if not missing([trial]):
            return build(trial).participation, panel if len(experiment.panels) > 1 else ""
    absent = missing(list(panels.values()))
    raise SettingError(f"no data set of {spec} is here; to download one: rollcall data fetch {absent[0]}")


def _models(experiment: Experiment) -> dict[str, dict[str, Trial]]:
    """For each participation model of an experiment, by label, the first trial of each panel that has it."""
    models: dict[str, dict[str, Trial]] = {}
    for place in places(experiment):
        if isinstance(place.trial, Trial):
            label = place.labels.get("participation", place.trial.participation.name)
            models.setdefault(label, {}).setdefault(place.labels["panel"], place.trial)
    return models


def _figure(picture: Picture, model: Participation, mask: Bool[np.ndarray, "T m"]) -> Figure:
    """A picture of a model and its first rounds."""
    if picture is Picture.uplinks:
        shown = mask[:400]  # four of the longest cycles in the papers
        return pictures.uplinks(shown, probabilities(model, len(shown)))
    return pictures.probabilities(mask.mean(axis=0) if model.stationary is None else model.stationary)


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
