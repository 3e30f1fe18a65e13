"""`rollcall show`."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer
from rich.console import Group, RenderableType
from rich.table import Table as Grid
from rich.text import Text

from rollcall.benchmark.cli.selection import described, how_long, plans_of
from rollcall.benchmark.cli.shared import (
    STORE,
    Json,
    Methods,
    Names,
    Only,
    Rounds,
    Seeds,
    Set,
    Store,
    Variant,
    draw,
    out,
    strict_json,
)
from rollcall.benchmark.config.digest import flatten
from rollcall.benchmark.config.errors import SettingError, at
from rollcall.benchmark.config.experiment import Experiment, Override, places
from rollcall.benchmark.config.report import Report
from rollcall.benchmark.config.text import counted
from rollcall.benchmark.federation.run_folder import RunFolder
from rollcall.leaderboard.paper.cells import kept_runs

LONG = 6
"""The most numbers of a vector, and labels of an axis, that are printed in full."""


def show(
    experiment: Names,
    variant: Variant = "",
    seeds: Seeds = "",
    only: Only = None,
    settings: Set = None,
    rounds: Rounds = None,
    methods: Methods = None,
    partition: Annotated[bool, typer.Option("--partition", help="Show what the first trial's clients hold.")] = False,
    plot: Annotated[Path | None, typer.Option(help="Draw this partition into a file.", metavar="FILE")] = None,
    estimate: Annotated[
        bool, typer.Option("--estimate", help="Probe for a few seconds how long all trials take.")
    ] = False,
    store: Store = STORE,
    as_json: Json = False,
) -> None:
    """Show an experiment's settings, grid and claims, and how many of its trials are finished."""
    plans = plans_of(experiment, variant, seeds, only, settings, rounds, methods)
    if partition or plot is not None:
        _show_partition(plans[0].places[0].trial, plot, as_json)
        return
    if as_json:
        print(strict_json([described(job) for plan in plans for job in plan.jobs(store)]))
        return
    for plan in plans:
        out.print(card(plan.experiment), "", highlight=False)
        where = store / plan.experiment.home
        rounds_of = plan.rounds
        finished = sum(RunFolder(where / name).finished >= rounds for name, rounds in rounds_of.items())
        all_trials, total = counted(len(rounds_of), "trial"), counted(sum(rounds_of.values()), "round")
        complete, shorter = kept_runs(plan.experiment)
        kept = f"; {complete} in the kept results" if complete or shorter else ""
        kept += f", {shorter} with fewer rounds" if shorter else ""
        out.print(
            f"{all_trials}, {total} in all; {finished} finished in {where}{kept}",
            highlight=False,
            soft_wrap=True,
        )
        if estimate:
            out.print(how_long(plan.places), "", highlight=False, soft_wrap=True)


def _show_partition(trial: Any, plot: Path | None, as_json: bool) -> None:
    """Print a summary of what the clients of a trial hold, and draw it if a file is given."""
    from rollcall.leaderboard.plots.participation import bubbles
    from rollcall.tasks.partitions import summarise

    with at("task"):
        _, data = trial.task.build(trial.seed)
    if data.histogram is None:
        raise SettingError(f"partition: {trial.task.name!r} is not allowed; must be a task with classes")
    summary = summarise(data.histogram)
    if as_json:
        print(strict_json(asdict(summary)))
    else:
        title = f"{trial.task.name}, seed {trial.seed}: {counted(summary.clients, 'client')}, {summary.classes} classes"
        grid = Grid("of each client", "least", "median", "largest", title=title, title_justify="left")
        grid.add_row("samples", *(f"{value:,.0f}" for value in summary.samples))
        grid.add_row("classes", *(f"{value:g}" for value in summary.held))
        grid.add_row("largest share of a class", *(f"{value:.1%}" for value in summary.largest))
        out.print(grid)
    if plot is not None:
        draw("partition", bubbles(data.histogram), plot)


def card(experiment: Experiment) -> Group:
    """All that an experiment file says. Settings are shown as they are written, before they are validated."""
    parts: list[RenderableType] = [Text(experiment.title, style="bold")]
    if experiment.about:
        parts.append(Text(experiment.about))
    if experiment.source:
        parts.append(Text(f"Source: {experiment.source}"))
    parts += _rows("settings of all trials", _settings(experiment.trial))
    for name, panel in experiment.panels.items():
        title = f"panel {name}: {panel.title}".removesuffix(": ") if name else "grid"
        parts += _rows(title, _panel(experiment, name))
    parts += _rows("overrides", [_override(override) for override in experiment.overrides])
    parts += _rows("choices", experiment.choices.items())
    parts += _rows("variants", [(name, variant.about) for name, variant in experiment.variants.items()])
    parts += _rows("claims", [(f"{n}", claim.says) for n, claim in enumerate(experiment.claims, 1)])
    parts += _rows("report", [("", _report(experiment.report))])
    return Group(*parts)


def _panel(experiment: Experiment, name: str) -> list[tuple[str, str]]:
    """The settings of a panel, its axes, and how many trials or analyses they make."""
    panel = experiment.panels[name]
    grid = experiment.grid | panel.grid
    specs = [place.spec for place in places(experiment) if place.labels["panel"] == name]
    if panel.analysis is not None:
        axes = [(axis, _labels(list(grid[axis]))) for axis in grid if axis.startswith("analysis.")]
        size = "1 analysis" if len(specs) == 1 else f"{len(specs):,} analyses"
        return [*_settings({"analysis": panel.analysis}), *axes, ("", size)]
    axes = [(axis, _labels(list(grid[axis]))) for axis in grid]
    numbers = sorted({int(spec["rounds"]) for spec in specs if isinstance(spec.get("rounds"), int | float)})
    rounds = ", ".join(f"{number:,}" for number in numbers)
    return [*_settings(panel.trial), *axes, ("", f"{counted(len(specs), 'trial')} of {rounds} rounds")]


def _rows(title: str, rows: Iterable[tuple[str, ...]]) -> list[RenderableType]:
    """A heading and its rows; nothing if there are no rows."""
    grid = Grid.grid(padding=(0, 3, 0, 0))
    for first, *others in rows:
        grid.add_row(Text(f"  {first}", style="cyan"), *map(Text, others))
    return ["", Text(title, style="bold"), grid] if grid.row_count else []


def _settings(spec: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Settings by dotted name, long vectors shortened."""
    return list(flatten(shortened(dict(spec))).items())


def shortened(value: Any) -> Any:
    """Settings in which a long vector is replaced by its shape and its range."""
    if isinstance(value, Mapping):
        return {key: shortened(item) for key, item in value.items()}
    if not isinstance(value, list | tuple | np.ndarray):
        return value
    try:
        numbers = np.asarray(value, dtype=np.float64)
    except (TypeError, ValueError):
        return [shortened(item) for item in value]
    if numbers.size <= LONG:
        return value
    size = " x ".join(map(str, numbers.shape))
    return f"{size} numbers from {numbers.min():g} to {numbers.max():g}"


def _labels(names: Sequence[str]) -> str:
    """The labels of an axis; of many numbers, the first three and the last."""
    numbers = all(name.lstrip("-").replace(".", "", 1).isdigit() for name in names)
    if not numbers or len(names) <= 2 * LONG:
        return ", ".join(names)
    return f"{', '.join(names[:3])}, ..., {names[-1]} ({len(names)})"


def _override(override: Override) -> tuple[str, str, str]:
    """Where an override applies, what it sets, and how its values were found."""
    where = "; ".join(f"{axis} {', '.join(labels)}" for axis, labels in override.when.items())
    what = ", ".join(f"{path} {value}" for path, value in flatten(shortened(override.set)).items())
    return where, what, override.found


def _report(report: Report) -> str:
    metrics = ", ".join(f"{metric.name} {metric.arrow}" for metric in report.metrics)
    last = report.last_rounds
    return f"{metrics}; {'at the last evaluation' if last == 1 else f'mean of the last {last:,} rounds'}"
