"""Kept results: which experiments have some, what a file of them must fulfil, and whether a rerun agrees with it."""

import json
import lzma
import math
import re
from collections.abc import Iterable, Iterator
from pathlib import Path

import numpy as np
import pandas as pd

from rollcall.benchmark.config.digest import FREE
from rollcall.benchmark.config.errors import UNREADABLE, SettingError
from rollcall.benchmark.config.experiment import names
from rollcall.benchmark.config.grid import GridPoint, grid_points
from rollcall.benchmark.config.metric import Metric
from rollcall.benchmark.config.text import counted
from rollcall.benchmark.config.trial import Analysis, Trial
from rollcall.benchmark.federation.simulation import simulate
from rollcall.benchmark.search.entry import TOLERANCE
from rollcall.leaderboard.paper.experiment import PaperExperiment
from rollcall.leaderboard.runs import SETTINGS, TABLE, Run, archived

PROVENANCE = dict.fromkeys(("seed", "version", "device", "machine"), ".+") | {"commit": "[0-9a-f]{7}.*"}
"""The tags that every trial has, and what they match."""


def papers(chosen: list[str] | None = None) -> list[PaperExperiment]:
    """Experiments by name; by default all that reproduce a table or figure of a paper."""
    experiments = [PaperExperiment.read(name) for name in chosen or names()]
    return [experiment for experiment in experiments if chosen or experiment.source]


def planned(experiments: Iterable[PaperExperiment]) -> dict[str, list[GridPoint]]:
    """The points of experiments and of their variants by the digests of their trials."""
    found: dict[str, list[GridPoint]] = {}
    for one in experiments:
        for variant in ("", *one.variants):
            for point in grid_points(one.as_(variant) if variant else one):
                found.setdefault(point.digest, []).append(point)
    return found


def problems(file: Path) -> list[str]:
    """What is wrong with the settings and the table that `rollcall archive` wrote: a line for each problem."""
    csv = file.with_name(file.name.removesuffix(SETTINGS) + TABLE)
    try:
        trials = json.loads(lzma.decompress(file.read_bytes()))["trials"]
        rows = pd.read_csv(csv, dtype={"trial": str}).set_index("trial").astype(float)
        runs = dict(zip(trials, archived(csv), strict=True))
        names = {run.tags.get("experiment", "") for run in runs.values()}
        if len(names) != 1 or not file.resolve().as_posix().endswith(f"/{(name := names.pop())}{SETTINGS}"):
            return [f"{file}: the tag experiment must be one, and the end of the file's path"]
        of_digest = planned([one for one in papers() if one.home == name] or [PaperExperiment.read(name)])
    except SettingError as error:
        return [f"{file}: {error}"]
    except UNREADABLE as error:
        return [f"{file}: cannot be read ({type(error).__name__}: {error}); must be as `rollcall archive` writes it"]
    found: dict[str, list[str]] = {}
    for digest in {*rows.index} - runs.keys():
        found.setdefault("is in the CSV file alone", []).append(digest)
    for digest, run in runs.items():
        for problem in _of_run(digest, run, of_digest.get(digest, [])):
            found.setdefault(problem, []).append(digest)
    return [f"{file}: {counted(len(of), 'trial')} ({of[0]}): {problem}" for problem, of in found.items()]


def _of_run(digest: str, run: Run, of: list[GridPoint]) -> Iterator[str]:
    """Problems of a trial, which an experiment has at these points."""
    for name, pattern in (PROVENANCE | {"rollcall.trial": digest}).items():
        if not re.fullmatch(pattern, run.tags.get(name, "")):
            yield f"the tag {name} is {run.tags.get(name, 'missing')}; must be that of the run"
    if not of:
        yield "the experiment has no trial of this digest; the settings must be those of its file"
        return
    if {str(of[0].seed)} != {run.tags.get("seed"), run.settings.get("seed", run.tags.get("seed"))}:
        yield f"the seed is not that of the digest, {of[0].seed}"
    if run.rounds > (most := max(point.rounds for point in of)):
        yield f"{run.rounds} rounds; the experiment plans {most}"
        return
    if "rounds" not in run.spec and "analysis" not in run.spec:
        yield "rounds is missing"
    written = of[0].settings
    for name in sorted({*written, *run.settings}):
        if not name.startswith(FREE) and written.get(name) != run.settings.get(name):
            yield f"{name} is {run.settings.get(name, 'missing')}; {written.get(name, 'nothing')} gives this digest"
    if not run.diverged and [*run.history.index] != run.evaluated:
        yield "the CSV file must have the rounds after which the settings evaluate, and no other"
    if not run.diverged and np.isinf(run.history).any(axis=None):
        yield "a value is infinite, and the tags do not say that the run diverged"


DIGITS = 6
"""Significant digits of kept numbers."""

ROUNDING = 1e-12
"""Numbers below this are what rounding left of 0, in double precision."""


def verdict_on(kept: Run, trial: Trial | Analysis) -> str:
    """Run a kept run again, and say where its numbers are not equal, if anywhere."""
    if isinstance(trial, Analysis):
        new = trial.table().set_index("round")
    else:
        result = simulate(trial.model_copy(update={"rounds": kept.rounds}))
        if kept.diverged != (result.diverged is not None):
            return "differs: the kept run diverged, this one did not" if kept.diverged else "differs: it diverges now"
        new = result.history.set_index("round")
    return compared(kept.history, new)


def compared(kept: pd.DataFrame, new: pd.DataFrame) -> str:
    """The verdict on two histories, by round: kept numbers with `DIGITS` digits, and new ones with all.

    Accuracies may differ by `TOLERANCE`, other numbers by this part of the kept one. The rounding of another engine is
    relative to the terms of a sum, and a number near 0, such as a bias, is a sum of larger ones. So numbers may also
    differ in the last of the `DIGITS` digits of the largest kept number of their column, and by `ROUNDING`.
    """
    columns = [name for name in kept if name in new and kept[name].notna().any()]
    if not columns and not kept.empty:
        return "differs: none of its metrics is measured now"
    old = kept[columns].astype(float)
    now = new[columns].reindex(old.index).astype(float)
    stored = now.map(lambda value: float(f"{value:.{DIGITS}g}"))
    if ((stored == old) | old.isna()).all(axis=None):
        return f"equal at the stored digits ({old.size:,} numbers)"
    shares = [Metric(str(name)).percent for name in columns]
    last_digit = (old.abs().replace(math.inf, math.nan).max() * 10.0**-DIGITS).clip(lower=ROUNDING)
    part, floor = np.where(shares, 0.0, TOLERANCE), np.where(shares, TOLERANCE, last_digit)
    away = old.notna() & ~np.isclose(now, old, rtol=part, atol=floor)
    if not away.any(axis=None):
        return "equal within tolerance (engine changed)"
    where = away.stack()
    t, name = where.index[where.to_numpy()][0]
    return f"differs: {name} after round {t:g} is {now.loc[t, name]:.6g}; kept: {old.loc[t, name]:.6g}"
