"""`rollcall list` and `rollcall show`: names that can be used, and the content of an experiment file."""

import json
import os
from collections import Counter
from collections.abc import Mapping
from functools import partial
from inspect import getdoc
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer
from rich.console import Group
from rich.table import Table as Grid
from rich.text import Text

from rollcall.benchmark.config.axes import is_default
from rollcall.benchmark.config.choice import KINDS, find, installed, kind_of
from rollcall.benchmark.config.digest import own_code, serialised
from rollcall.benchmark.config.errors import SettingError, check_one_of, near
from rollcall.benchmark.config.experiment import Experiment, file_of, names
from rollcall.benchmark.config.source import definition
from rollcall.benchmark.config.text import command, counted, dumped, duration, first_sentence, strict_json
from rollcall.benchmark.config.trial import Analysis, Trial
from rollcall.benchmark.federation.run_folder import RunFolder
from rollcall.cli import options as opt
from rollcall.cli.options import STORE, described, out, requests_of, tracked
from rollcall.leaderboard.names import label_name, paper_of
from rollcall.leaderboard.paper.experiment import PaperExperiment

LONG = 6
"""The most numbers of a vector that are printed in full."""


def list_(
    kind: Annotated[str, typer.Argument(help="One kind in detail, such as algorithm.", metavar="KIND")] = "",
    as_json: opt.Json = False,
) -> None:
    """List experiments, and the names that experiment files can use."""
    if kind:
        check_one_of("kind", kind, ["experiment", *KINDS])
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
    experiment: Annotated[
        list[str],
        typer.Argument(help="Experiments, papers, patterns, YAML files, or parts such as mifa.", metavar="NAME"),
    ],
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
        of_trials: dict[str, Any] = {"--variant": variant, "--seeds": seeds, "--only": only, "--set": settings}
        of_trials |= {"--rounds": rounds is not None, "--algorithm": methods, "--tuned": tuned, "--estimate": estimate}
        if given := [option for option, value in of_trials.items() if value]:
            raise SettingError(f"{given[0]} is not allowed for a part, which has no trials; it takes --json")
        print(json.dumps(shown, indent=1)) if as_json else out.print(*map(_part_card, shown), sep="\n")
        return
    requests = requests_of(experiment, variant, seeds, only, settings, rounds, methods, tuned)
    if as_json:
        print(strict_json([described(job) for request in requests for job in request.jobs(store)]))
        return
    from rollcall.leaderboard.cells import kept_runs

    for request in requests:
        changed = request.file is not None or methods or seeds or settings or tuned or rounds is not None
        if changed and not own_code([point.spec for point in request.runs]):  # reading runs no own code
            _ = request.trials  # refuses a setting that is not allowed, as `run` does
        out.print(card(request.experiment), highlight=False, soft_wrap=True)
        where = store / request.experiment.home
        finished = sum(RunFolder(where / point.name).finished >= point.rounds for point in request.runs)
        complete, shorter = kept_runs(request.experiment)
        kept = f"; {complete} in the kept results" if complete or shorter else ""
        kept += f", {shorter} with fewer rounds" if shorter else ""
        all_trials = counted(len(request.runs), "trial")
        total = counted(sum(point.rounds for point in request.runs), "round")
        print(f"{all_trials}, {total} in all; {finished} finished in {where}{kept}")
        if estimate:
            print(_how_long(request.trials), end="\n\n")


def _part_of(name: str) -> dict[str, Any] | None:
    """A part by its name, `KIND/NAME` or `FILE.py:NAME`; None for an experiment, which wins.

    Raises SettingError: an unknown name, a name of several kinds, or own code that cannot be read.
    """
    if file_of(name).is_file() or names(of=name) or name.endswith((".yaml", ".yml")):
        return None
    from rollcall.benchmark.config.described import options_in_words, parse, text_of

    kind, _, short = name.partition("/")
    if kind in KINDS and short and not Path(name.rpartition(":")[0]).is_file():
        kinds = [kind]
    elif ":" in name:
        kinds, short = [kind_of(name)], name
    else:
        kinds, short = [kind for kind, one in KINDS.items() if name in one.known or name in installed(kind)], name
    if not kinds:
        known = [*names(), *(one for entry in KINDS.values() for one in entry.known)]
        raise SettingError(
            f"show: {name!r} is not allowed; must be a name of `rollcall list`, `KIND/NAME`, `FILE.py:NAME` or "
            f"a .yaml file{near(known, name)}"
        )
    if len(kinds) > 1:
        raise SettingError(
            f"show: {name!r} is not allowed; must be one of {', '.join(f'{one}/{name}' for one in kinds)}"
        )
    choice = find(kinds[0], short)
    said = parse(text_of(choice.factory))
    offered = options_in_words(kinds[0], choice.factory).items()
    told = [one if one.startswith(" ") else " ".join(one.split()) for one in said.body.split("\n\n")]
    told += [f"{title}: {' '.join(text.split())}" for title, text in said.sections.items()]
    return {
        "name": choice.name,
        "kind": kinds[0],
        "text": "\n\n".join(told),
        "options": {key: list(entry) for key, entry in offered},
        "source": "; ".join(filter(None, (paper_of(kinds[0], choice.name), definition(choice.factory)))),
    }


def _part_card(part: dict[str, Any]) -> Group:
    options = Grid.grid(padding=(0, 3, 0, 0))
    for key, (values, meaning) in part["options"].items():
        options.add_row(Text(f"  {key}", style="cyan"), Text(f"{values}\n{meaning}".strip()))
    head = Text.assemble((part["name"], "bold"), f" ({part['kind']})")
    title = Text("\noptions" if part["options"] else "\nno options", style="bold")
    return Group(head, Text(part["text"]), title, options, "", Text(f"source: {part['source']}"))


def _how_long(trials: list[Trial | Analysis]) -> str:
    """The estimated time of all trials, finished ones included."""
    from rollcall.benchmark.timing import estimates, missing, wall

    absent = missing(trials)
    if absent:
        return f"No estimate without {', '.join(absent)}. To download: {command('data', 'fetch', *absent)}"
    costs = estimates(trials, lambda kinds: tracked(kinds, "probing"))
    cores = os.cpu_count() or 1  # with Ray, as many trials run at the same time
    seconds = [costs[trial.digest] for trial in trials if isinstance(trial, Trial)]
    return (
        f"about {duration(wall(seconds, cores))} with {cores} at once on this machine, "
        f"{duration(sum(seconds))} one after another (estimated from short probes)"
    )


def card(experiment: PaperExperiment) -> str:
    """What an experiment file says, its base and the changes of the command included, as YAML; and its claims."""
    content = experiment.model_dump(include=set(Experiment.model_fields) - {"name", "variants"}, exclude_defaults=True)
    content = {key: content[key] for key in Experiment.model_fields if key in content}
    grids = [content, *content.get("panels", {}).values()]
    for part in (one for one in grids if "grid" in one):
        part["grid"] = {axis: _axis(values) for axis, values in part["grid"].items()}
    reasons: set[str] = set()
    for one in (one for one in content.get("overrides", ()) if "found" in one):
        reason = one["found"]
        one["found"] = "as above" if reason in reasons else reason
        reasons.add(reason)
    variants = {name: variant.about for name, variant in experiment.variants.items()}
    said = {"variants": variants, "choices": experiment.choices, "claims": [one.says for one in experiment.judged]}
    style: dict[str, Any] = {"width": out.width, "allow_unicode": True}
    texts = dumped({key: value for key, value in said.items() if value}, **style) if any(said.values()) else ""
    return dumped(serialised(shortened(content)), default_flow_style=None, **style) + texts


def _axis(values: dict[str, Any]) -> Any:
    """The values of an axis; without their labels where these follow from the values."""
    return list(values.values()) if all(map(is_default, values, values.values())) else values


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
