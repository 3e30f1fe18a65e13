"""`rollcall list` and `rollcall show`: names that can be used, and the content of an experiment file."""

import json
import os
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from difflib import get_close_matches
from functools import partial
from inspect import getdoc
from typing import Annotated, Any

import numpy as np
import typer
from rich.console import Group, RenderableType
from rich.progress import track
from rich.table import Table as Grid
from rich.text import Text

from rollcall.benchmark.config.choice import KINDS, find, installed, kind_of
from rollcall.benchmark.config.digest import flatten, own_code
from rollcall.benchmark.config.errors import SettingError, listed
from rollcall.benchmark.config.experiment import file_of, is_number, names, places
from rollcall.benchmark.config.source import definition
from rollcall.benchmark.config.text import command, counted, duration, first_sentence, strict_json
from rollcall.benchmark.config.trial import Analysis, Trial
from rollcall.benchmark.federation.run_folder import RunFolder
from rollcall.cli import options as opt
from rollcall.cli.options import STORE, err, out
from rollcall.cli.plan import described, plans_of
from rollcall.leaderboard.names import label_name, paper_of
from rollcall.leaderboard.paper.experiment import PaperExperiment

LONG = 6
"""The most numbers of a vector, and labels of an axis, that are printed in full."""


def list_(
    kind: Annotated[str, typer.Argument(help="One kind in detail, such as algorithm.", metavar="[KIND]")] = "",
    as_json: opt.Json = False,
) -> None:
    """List experiments, and the names that experiment files can use."""
    if kind not in ("", "experiment", *KINDS):
        raise SettingError(f"kind: {kind!r} is not allowed; must be one of {listed(['experiment', *KINDS], kind)}")
    if as_json:
        print(json.dumps({one: _summaries(one) for one in ("experiment", *KINDS) if kind in ("", one)}, indent=1))
    elif kind:
        grid = Grid.grid(padding=(0, 2, 1, 0))
        grid.add_column(no_wrap=True)
        for name, summary in _summaries(kind).items():
            said = label_name(kind, name)
            told = "; ".join(filter(None, (said if said != name else "", paper_of(kind, name))))
            grid.add_row(Text(name, style="cyan"), "\n".join(filter(None, (told, summary))))
        out.print(grid)
    else:
        grid = Grid.grid(padding=(0, 2, 0, 0))
        homes = Counter(name.rpartition("/")[0] for name in names())
        grid.add_row("experiment", ", ".join(f"{home or 'others'} {count}" for home, count in homes.items()))
        for one, entry in KINDS.items():
            grid.add_row(one, entry.about)
        out.print(grid, highlight=False)
        out.print("Names, papers and what they are: rollcall list KIND", highlight=False)


def _summaries(kind: str) -> dict[str, str]:
    """What an experiment file can name, with a sentence about each."""
    if kind == "experiment":
        found = {name: PaperExperiment.read(name) for name in names()}
        return {name: f"{one.title}{f' ({one.source})' if one.source else ''}" for name, one in found.items()}
    points = {name: f"{one.value}, of the installed package {one.dist.name}" for name, one in installed(kind).items()}
    known = KINDS[kind].known.items()  # imports torch, for most kinds
    described = {name: one.args[0] if isinstance(one, partial) else one for name, one in known}
    return {name: first_sentence(getdoc(one) or "") for name, one in described.items()} | points


def show(
    experiment: opt.Names,
    variant: opt.Variant = "",
    seeds: opt.Seeds = "",
    only: opt.Only = None,
    settings: opt.Set = None,
    rounds: opt.Rounds = None,
    methods: opt.Methods = None,
    tuned: opt.Tuned = None,
    estimate: Annotated[
        bool, typer.Option("--estimate", help="Probe for a few seconds how long all trials take.")
    ] = False,
    store: opt.Store = STORE,
    as_json: opt.Json = False,
) -> None:
    """Show an experiment and its trials, or a part and its options."""
    if shown := [part for name in experiment if (part := _part_of(name))]:
        if len(shown) < len(experiment):
            raise SettingError("show: experiments are not allowed beside parts; show them one after the other")
        print(json.dumps(shown, indent=1)) if as_json else out.print(*map(_part_card, shown), sep="\n")
        return
    plans = plans_of(experiment, variant, seeds, only, settings, rounds, methods, tuned)
    if as_json:
        print(strict_json([described(job) for plan in plans for job in plan.jobs(store)]))
        return
    from rollcall.leaderboard.cells import kept_runs

    for plan in plans:
        if plan.file is not None and not own_code([point.spec for point in plan.runs]):  # reading runs no own code
            _ = plan.trials  # refuses a setting that is not allowed, as `run` does
        out.print(card(plan.experiment), "")
        where = store / plan.experiment.home
        finished = sum(RunFolder(where / place.name).finished >= place.rounds for place in plan.runs)
        complete, shorter = kept_runs(plan.experiment)
        kept = f"; {complete} in the kept results" if complete or shorter else ""
        kept += f", {shorter} with fewer rounds" if shorter else ""
        all_trials, total = counted(len(plan.runs), "trial"), counted(sum(place.rounds for place in plan.runs), "round")
        print(f"{all_trials}, {total} in all; {finished} finished in {where}{kept}")
        if estimate:
            print(_how_long(plan.trials), end="\n\n")


def _part_of(name: str) -> dict[str, Any] | None:
    """A part by its name, `KIND/NAME` or `FILE.py:NAME`; None for an experiment, which wins.

    Raises:
        SettingError: an unknown name, a name of several kinds, or own code that cannot be read.
    """
    if file_of(name).is_file() or names(of=name) or name.endswith((".yaml", ".yml")):
        return None
    from rollcall.benchmark.config.described import options_in_words, parse, text_of, without_marks

    kind, _, short = name.partition("/")
    if kind in KINDS and short:
        kinds = [kind]
    elif ":" in name:
        kinds, short = [kind_of(name)], name
    else:
        kinds, short = [kind for kind, one in KINDS.items() if name in one.known or name in installed(kind)], name
    if not kinds:
        near = get_close_matches(name, [*names(), *(one for entry in KINDS.values() for one in entry.known)], 1)
        raise SettingError(
            f"show: {name!r} is not allowed; must be a name of `rollcall list`, `KIND/NAME`, `FILE.py:NAME` or "
            f"a .yaml file{f'. Did you mean {near[0]}?' if near else ''}"
        )
    if len(kinds) > 1:
        raise SettingError(
            f"show: {name!r} is not allowed; must be one of {', '.join(f'{one}/{name}' for one in kinds)}"
        )
    choice = find(kinds[0], short)
    said = parse(text_of(choice.factory))
    offered = options_in_words(kinds[0], choice.factory).items()
    told = [one if one.startswith(" ") else " ".join(one.split()) for one in said.body.split("\n\n")]
    told += [f"{title}: {' '.join(text.split())}" for title, text in said.sections.items() if title != "Formula"]
    return {
        "name": choice.name,
        "kind": kinds[0],
        "text": "\n\n".join(told),
        "options": {key: list(map(without_marks, entry)) for key, entry in offered},
        "source": "; ".join(filter(None, (paper_of(kinds[0], choice.name), definition(choice.factory)))),
    }


def _part_card(part: dict[str, Any]) -> Group:
    """What `_part_of` tells, for a terminal."""
    rows = [(key, f"{values}\n{meaning}".strip()) for key, (values, meaning) in part["options"].items()]
    options = _rows("options", rows) or ["", Text("no options")]
    head = Text.assemble((part["name"], "bold"), f" ({part['kind']})")
    return Group(head, Text(part["text"]), *options, "", Text(f"source: {part['source']}"))


def _how_long(trials: list[Trial | Analysis]) -> str:
    """The estimated time of all trials, finished ones included."""
    from rollcall.benchmark.estimate import estimates, missing, wall

    absent = missing(trials)
    if absent:
        return f"No estimate without {', '.join(absent)}. To download: {command('data', 'fetch', *absent)}"
    costs = estimates(
        trials, lambda kinds: track(kinds, "probing", console=err, transient=True, disable=not err.is_terminal)
    )
    cores = os.cpu_count() or 1  # with Ray, as many trials run at the same time
    seconds = [costs[trial.digest] for trial in trials if isinstance(trial, Trial)]
    return (
        f"about {duration(wall(seconds, cores))} with {cores} at once on this machine, "
        f"{duration(sum(seconds))} one after another (estimated from short probes)"
    )


def card(experiment: PaperExperiment) -> Group:
    """All that an experiment file says. Settings are shown as they are written, before they are validated."""
    report = experiment.report
    metrics = ", ".join(f"{metric.name} {metric.arrow}" for metric in report.metrics)
    rounds = "at the last evaluation" if report.last_rounds == 1 else f"mean of the last {report.last_rounds:,} rounds"
    parts: list[RenderableType] = [Text(experiment.title, style="bold")]
    source = experiment.source and f"Source: {experiment.source}"
    parts += [Text(text) for text in (experiment.about, source) if text]
    parts += _rows("settings of all trials", _flat(experiment.trial).items())
    for name, panel in experiment.panels.items():
        title = f"panel {name}: {panel.title}".removesuffix(": ") if name else "grid"
        parts += _rows(title, _panel(experiment, name))
    overrides, first = [], dict[str, str]()
    for override in experiment.overrides:
        where = "; ".join(f"{axis} {', '.join(labels)}" for axis, labels in override.when.items())
        values = ", ".join(f"{path} {value}" for path, value in _flat(override.set).items())
        known = first.setdefault(override.found, where)  # a reason that several share is told once
        found = override.found if known == where else f"as for {known}"
        overrides.append((where, values, found))
    parts += _rows("overrides", overrides)
    parts += _rows("choices", experiment.choices.items())
    parts += _rows("variants", [(name, variant.about) for name, variant in experiment.variants.items()])
    parts += _rows("claims", [(f"{n}", claim.says) for n, claim in enumerate(experiment.judged, 1)])
    parts += _rows("report", [("", f"{metrics}; {rounds}")])
    return Group(*parts)


def _panel(experiment: PaperExperiment, name: str) -> list[tuple[str, str]]:
    """The settings of a panel, its axes, and how many trials or analyses they make."""
    panel = experiment.panels[name]
    specs = [place.spec for place in places(experiment) if place.labels["panel"] == name]
    axes = {axis: _labels(list(values)) for axis, values in (experiment.grid | panel.grid).items()}
    if panel.analysis is not None:
        axes = {axis: labels for axis, labels in axes.items() if axis in panel.grid or axis.startswith("analysis.")}
        size = "1 analysis" if len(specs) == 1 else f"{len(specs):,} analyses"
        return [*_flat({"analysis": panel.analysis}).items(), *axes.items(), ("", size)]
    numbers = sorted({int(spec["rounds"]) for spec in specs if isinstance(spec.get("rounds"), int | float)})
    size = f"{counted(len(specs), 'trial')} of {', '.join(f'{number:,}' for number in numbers)} rounds"
    return [*_flat(panel.trial).items(), *axes.items(), ("", size)]


def _rows(title: str, rows: Iterable[tuple[str, ...]]) -> list[RenderableType]:
    """A heading and its rows; nothing if there are no rows."""
    grid = Grid.grid(padding=(0, 3, 0, 0))
    for first, *others in rows:
        grid.add_row(Text(f"  {first}", style="cyan"), *map(Text, others))
    return ["", Text(title, style="bold"), grid] if grid.row_count else []


def _flat(spec: Mapping[str, Any]) -> dict[str, Any]:
    """Settings by dotted name, long vectors shortened."""
    return flatten(shortened(dict(spec)))


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
    return f"{' x '.join(map(str, numbers.shape))} numbers from {numbers.min():g} to {numbers.max():g}"


def _labels(names: Sequence[str]) -> str:
    """The labels of an axis; of many numbers, the first three and the last."""
    if len(names) <= 2 * LONG or not all(map(is_number, names)):
        return ", ".join(names)
    return f"{', '.join(names[:3])}, ..., {names[-1]} ({len(names)})"
