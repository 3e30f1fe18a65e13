"""`rollcall participation`: the participation model of a YAML file or of an experiment, without any learning."""

import sys
from collections.abc import Mapping
from dataclasses import asdict
from inspect import getdoc
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
import typer
from pydantic import Field, PositiveFloat, PositiveInt
from rich.table import Table as Grid

from rollcall.benchmark.config.base import DATA_FILES, Settings, load_yaml, validated
from rollcall.benchmark.config.errors import SettingError, at, listed
from rollcall.benchmark.config.experiment import Experiment
from rollcall.benchmark.config.grid import grid_points
from rollcall.benchmark.config.text import counted, parse_all, strict_json
from rollcall.benchmark.config.trial import ParticipationChoice, Trial
from rollcall.cli.options import Json, Only, out, say

if TYPE_CHECKING:
    from rollcall.participation import Participation
    from rollcall.participation.summary import Summary

ROUND_LENGTH = 600.0
"""Seconds of a round for a recording of intervals alone."""


class ClassShares(Settings):
    """Class distributions for clients without data."""

    count: PositiveInt = Field(10, description="C, the number of classes")
    alpha: PositiveFloat = Field(0.1, description="concentration of the Dirichlet distribution of a client's classes")


class RollCall(Settings):
    """The content of a YAML file with a participation model."""

    clients: PositiveInt = Field(description="m, the number of clients")
    seed: int = Field(0, ge=0, description="seed of all random draws")
    classes: ClassShares = Field(ClassShares(), description="class distributions of the clients")
    participation: ParticipationChoice = Field(description="the participation model")


def participation(
    spec: Annotated[
        str, typer.Argument(help="A YAML file, EXPERIMENT:MODEL, or a recording: its file or name.", metavar="SPEC")
    ],
    only: Only = None,
    rounds: Annotated[
        int | None, typer.Option(min=2, help="Rounds to summarise. Default: a trace's own, else 2,000.")
    ] = None,
    plot: Annotated[Path | None, typer.Option(help="Draw a picture into this file.", metavar="FILE")] = None,
    record: Annotated[
        Path | None, typer.Option(help="Write the rounds as a trace: .npy, .npz, .csv or .parquet.", metavar="FILE")
    ] = None,
    as_json: Json = False,
) -> None:
    """Summarise, draw or record a participation model, without learning."""
    from rollcall.participation import Trace, recording
    from rollcall.participation.fits import compare
    from rollcall.participation.summary import probabilities, summarise

    model, panel = model_of(spec, parse_all("only", only or []))
    trace = model if isinstance(model, Trace) and len(model.mask) > 1 else None
    rounds = rounds or (len(trace.mask) if trace else 2000)
    mask = recording.record(model, rounds)
    summary = summarise(model, mask)
    fits = compare(trace) if trace else {}
    notes = model.notes if isinstance(model, Trace) else []
    if as_json:
        print(strict_json(asdict(summary) | ({"notes": notes, "fits": fits} if trace else {})))
    else:
        for note in notes:
            say(note)
        out.print(_table(f"{spec}, panel {panel}" if panel else spec, summary))
        if fits:
            out.print(_fits(fits))
    if plot is not None:
        from rollcall.leaderboard.figures import save, uplinks

        shown = mask[:400]  # four of the longest cycles in the papers
        save(uplinks(shown, probabilities(model, len(shown))), plot)
        print(f"uplinks: {plot}", file=sys.stderr)
    if record is not None:
        try:
            recording.write(mask, record)
        except ValueError as error:
            raise SettingError(f"record: {error}") from None
        print(f"{counted(rounds, 'round')}: {record}", file=sys.stderr)


def model_of(spec: str, only: Mapping[str, list[Any]] | None = None) -> "tuple[Participation, str]":
    """The model of a YAML file, of EXPERIMENT:MODEL or of a recording, and its panel, empty if there is but one.

    `quickstart` alone has one model. The second `bernoulli` of an axis is called `bernoulli#2`. Of the trials with one
    label, the first counts whose data set is on this machine. A recording has all its devices as clients. `only` keeps
    labels by axis, such as the panel.

    Raises SettingError: the model does not exist, one of its options is not allowed, or its data set is not here.
    """
    from rollcall.participation import Population, recording
    from rollcall.participation.probabilities import class_shares

    is_recording = spec.endswith(DATA_FILES) or recording.named(spec)
    content: Any = load_yaml(Path(spec)) if not is_recording and Path(spec).is_file() else None
    is_model = isinstance(content, dict) and not content.keys() & {"trial", "base", "panels"}
    if only and (is_recording or is_model):
        raise SettingError("--only is not allowed with a file of a participation model; it has no panels")
    if is_recording:
        return _recorded(spec), ""
    if is_model:
        file = validated(RollCall, content)
        nu = class_shares(file.seed, file.clients, file.classes.count, file.classes.alpha)
        with at("participation"):
            return file.participation.build(Population(file.clients, file.seed, nu)), ""
    name, _, wanted = spec.partition(":")
    return _of_experiment(Experiment.read(name).only(only or {}), name, wanted)


def _of_experiment(experiment: Experiment, name: str, wanted: str) -> "tuple[Participation, str]":
    from rollcall.benchmark.federation.build import build
    from rollcall.benchmark.timing import missing

    models: dict[str, list[tuple[str, Trial]]] = {}
    for point in grid_points(experiment):
        if isinstance(point.trial, Trial):
            label = point.labels.get("participation", point.trial.participation.name)
            models.setdefault(label, []).append((point.labels["panel"], point.trial))
    if not models:
        raise SettingError(f"participation: {name} has no participation model; its panels are analyses")
    if wanted not in models and (wanted or len(models) > 1):
        raise SettingError(
            f"participation: {wanted!r} is not a model of {name}; must be one of {listed(models, wanted)}"
        )
    chosen = models[wanted or next(iter(models))]
    for panel, trial in chosen:
        if not missing([trial]):
            return build(trial).participation, panel if len(experiment.panels) > 1 else ""
    absent = missing([trial for _, trial in chosen])
    raise SettingError(f"no data set of {name} is here; to download one: rollcall data fetch {absent[0]}")


def _recorded(spec: str) -> "Participation":
    """A recording as it is, with the clients and the length of a round that its file does not tell."""
    from rollcall.participation import Population, Trace, recording

    try:
        mask = recording.load(spec)
        if not mask.dtype.names:
            return Trace(Population(mask.shape[-1]), mask=mask)
        devices = recording.devices(mask)
        length = ROUND_LENGTH if mask.dtype.names == recording.INTERVALS else None
        trace = Trace(Population(len(devices)), mask=mask, round_length=length, devices=devices)
    except ValueError as error:
        raise SettingError(str(error)) from None
    told = f"rounds of {length:g} s and " if length else ""
    trace.notes.insert(0, f"{told}{counted(len(devices), 'client')}, the devices that occur; a YAML file sets others")
    return trace


def _table(name: str, summary: "Summary") -> Grid:
    """The summary of a model: each quantity with its meaning."""
    from rollcall.benchmark.config.described import parse

    meanings = parse(getdoc(type(summary))).meanings
    title = f"{name}: {counted(summary.clients, 'client')}, {counted(summary.rounds, 'round')}"
    grid = Grid(title=title, title_justify="left", show_header=False)
    for field, value in list(asdict(summary).items())[2:]:
        numbers = list(value.values()) if isinstance(value, dict) else value if isinstance(value, tuple) else [value]
        shown = ("-" if one is None else f"{one:.4g}" for one in numbers)
        grid.add_row(field, ", ".join(shown), meanings[field])
    return grid


def _fits(fits: dict[str, dict[str, float]]) -> Grid:
    """The features of a trace and of the models fitted to it, a row for each."""
    trace = fits["trace"]
    columns = [name for name, value in trace.items() if np.isfinite(value)]
    title = "Models fitted to it; * keeps the feature within a quarter"
    meanings = (
        "shares: correlation with the clients' shares of rounds; lag 1: autocorrelation of a client; rounds: its time; "
        "pairs: correlation of two clients; day, week: correlation of the number on with that of a day or week later"
    )
    grid = Grid("", *columns, title=title, title_justify="left", caption=meanings)
    for model, features in fits.items():
        keeps = {name: abs(features[name] - trace[name]) <= abs(trace[name]) / 4 for name in columns}
        stars = ("*" if model != "trace" and keeps[name] else " " for name in columns)
        grid.add_row(model, *(f"{features[name]:.3f} {star}" for name, star in zip(columns, stars, strict=True)))
    return grid
