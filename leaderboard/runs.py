"""Finished runs: of the user, from run folders and MLflow; and kept ones, small files in an archive folder."""

import json
import lzma
import math
import os
import sys
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import pandas as pd
from yaml import YAMLError

from rollcall.benchmark.config.digest import flatten, nested
from rollcall.benchmark.config.metric import Metric
from rollcall.benchmark.config.source import Source
from rollcall.benchmark.config.text import command, counted, parsed
from rollcall.benchmark.config.trial import Evaluation
from rollcall.benchmark.federation.run_folder import RunFolder
from rollcall.benchmark.sweep.mlflow_runs import PARENT, tags

if TYPE_CHECKING:
    from mlflow import MlflowClient

Settings = tuple[tuple[str, str], ...]
"""Settings as text, sorted by dotted name."""

PACKAGE = Path(__file__).parent / "results"
"""Archive of the papers' experiments that comes with Rollcall."""

HERE = Path("leaderboard/results")
"""Archive in the working directory, in which `rollcall archive` keeps results."""

TABLE, SETTINGS = ".csv.xz", ".json.xz"
"""The ends of an archive's two files of an experiment."""


@dataclass(frozen=True)
class Run:
    """One trial that finished or diverged.

    Attributes:
        tags: its origin, such as experiment, seed, commit and version.
        spec: settings as they are written, with the rounds that it has.
        history: [evaluations], indexed by round, a column for each metric.
        source: `own`: from a run folder or from the user's MLflow server; `kept`: from an archive.
    """

    tags: dict[str, str]
    spec: dict[str, Any]
    history: pd.DataFrame
    source: Literal["own", "kept"] = "kept"

    @property
    def digest(self) -> str:
        """The identity of its trial; see `rollcall.benchmark.config.digest`."""
        return self.tags["rollcall.trial"]

    @cached_property
    def settings(self) -> dict[str, str]:
        """Its settings for people: as text, by dotted name."""
        return flatten(self.spec)

    @property
    def cell(self) -> Settings:
        """All settings but the seed. The runs of one cell have them in common."""
        return self.settings_without("seed")

    def settings_without(self, *names: str) -> Settings:
        """All settings but some."""
        return tuple(sorted((key, value) for key, value in self.settings.items() if key not in names))

    @property
    def rounds(self) -> int:
        """The number of rounds; 1 for an analysis."""
        return int(self.spec.get("rounds", 1))

    @property
    def diverged(self) -> bool:
        """Whether it diverged within its rounds. It then has no final value."""
        t = self.tags.get("rollcall.diverged")
        return t is not None and int(t) <= self.rounds

    def until(self, rounds: int) -> "Run":
        """The run as it was after this many rounds; the whole run if it has fewer."""
        spec = self.spec | {"rounds": min(rounds, self.rounds)}
        return replace(self, spec=spec, history=self.history[self.history.index <= rounds])

    @property
    def evaluated(self) -> list[int]:
        """The rounds after which its settings evaluate it; those of its history if it is an analysis."""
        if "rounds" not in self.spec:
            return [int(t) for t in self.history.index]
        return [t for t in range(self.rounds + 1) if self._evaluation.due(t, self.rounds)]

    @cached_property
    def _evaluation(self) -> Evaluation:
        """When it was evaluated, and on which splits."""
        own = self.spec.get("evaluation", {})
        return Evaluation.model_validate({key: own[key] for key in own if key in ("every", "last", "at", "splits")})

    def spent(self, cost: str) -> pd.Series:
        """A cost so far, by round: a column of the history, or `round`. Without entries if it was not measured.

        Without a clock `time/seconds` are the seconds that the run took, spread evenly over the rounds.
        """
        if cost == "round":
            return pd.Series(self.history.index, self.history.index, dtype=float)
        if cost == "time/seconds" and cost not in self.history:
            rate = float(self.tags.get("rollcall.seconds", math.nan)) / max(
                1, int(self.tags.get("rollcall.finished", self.rounds))
            )
            return pd.Series(self.history.index * rate, self.history.index).dropna()
        return self.history[cost].dropna() if cost in self.history else pd.Series(dtype=float)

    def within(self, cost: str, budget: float, metric: Metric) -> "Run":
        """The run as it was at the last evaluation of a metric at which a cost was at most a budget."""
        spent = self.spent(cost).reindex(self.history[metric.column].dropna().index)
        return self if spent.max() <= budget else self.until(int(max(spent.index[spent <= budget], default=0)))

    def has(self, metric: Metric) -> bool:
        """Whether the metric was measured."""
        return metric.column in self.history and (metric.over == "round" or len(self.spent(metric.over)) > 0)

    def end(self, metric: Metric) -> float:
        """The last round, or the last cost that a threshold counts: until then it was not reached."""
        return float(self.rounds) if metric.over == "round" else float(self.spent(metric.over).max())

    def window(self, metric: Metric, last_rounds: int) -> pd.Series:
        """The evaluations in the last rounds, by round, of a metric that was measured.

        They are empty unless they cover the window: the run has that many rounds, and was evaluated after all rounds of
        the window after which its settings say so. The evaluation before the first round does not count.
        """
        key = (metric.column, last_rounds)
        if key not in self._windows:
            self._windows[key] = self._window(metric, last_rounds)
        return self._windows[key]

    @cached_property
    def _windows(self) -> dict[tuple[str, int], pd.Series]:
        """The windows that were asked for: tables, claims and figures ask for the same ones many times."""
        return {}

    def _window(self, metric: Metric, last_rounds: int) -> pd.Series:
        values = self.history[metric.column].dropna()
        if "rounds" not in self.spec:  # an analysis
            return values[values.index > values.index.max() - last_rounds]
        if self.rounds < last_rounds:
            return values[:0]
        how, rounds = self._evaluation, self.rounds
        known = {*(how.splits or ()), *((how.last and how.last.splits) or ())}

        def measured(t: int) -> bool:
            splits = how.splits_at(t, rounds)
            return how.due(t, rounds) and (splits is None or metric.split in splits or metric.split not in known)

        due = [t for t in range(rounds - last_rounds + 1, rounds + 1) if measured(t)]
        return values.reindex(due) if values.index.isin(due).sum() == len(due) else values[:0]

    def final(self, metric: Metric, last_rounds: int = 1, at: int | None = None, per: Metric | None = None) -> float:
        """The final value of a metric that was measured.

        Args:
            metric: with a threshold the value is the first round that reaches it, or the cost until then, infinite if
                none does; see `Metric`.
            last_rounds: the value is the mean of the `window` of this many last rounds; NaN if it is empty.
            at: take the evaluation after this round instead; NaN if there is none.
            per: `at` is a value of this metric, which grows with the rounds, such as a cost: take the last evaluation
                at which it was at most `at`; NaN if the run ended earlier.
        """
        if metric.threshold is not None:
            return float(self.spent(metric.over).get(first_round(self.curve(metric), metric), math.inf))
        if at is None:
            return float(self.window(metric, last_rounds).mean())
        history = self.history[metric.column].dropna()
        if per is not None:
            spent = self.history[per.column].reindex(history.index) if self.has(per) else history * math.nan
            within = history[spent <= at]
            return float(within.iloc[-1]) if spent.max() >= at and len(within) else math.nan
        return float(history.get(at, math.nan))

    def curve(self, metric: Metric) -> pd.Series:
        """The regular evaluations of a metric by round, without those in between of the last rounds."""
        values = self.history[metric.column].dropna()
        return values[values.index % self._evaluation.every == 0]


def first_round(curve: pd.Series, metric: Metric) -> float:
    """The first round at which a curve reaches the threshold of a metric; infinite if it does not."""
    reached = curve.index[curve >= metric.threshold]
    return float(reached[0]) if len(reached) else math.inf


def finished(
    experiment: str, store: Path | None, mine: bool = False, metrics: Collection[str] | None = None
) -> list[Run]:
    """The kept runs of an experiment, and then the user's own.

    Args:
        store: folder of the run folders; None: kept runs alone.
        mine: leave out kept runs.
        metrics: columns to read of the user's own; by default all.
    """
    kept = [] if mine else unarchive(experiment, PACKAGE, HERE)
    return kept + (own(store, experiment, metrics) if store is not None else [])


def own(store: Path, experiment: str, metrics: Collection[str] | None = None) -> list[Run]:
    """The user's finished and diverged runs of an experiment, oldest first.

    They are those in the run folders, and those on the MLflow server that MLFLOW_TRACKING_URI names; of a trial that
    both have, the folder counts. A server that does not answer is left out, with a warning. So are runs of another
    version of the user's own files than the present one; where a file is gone, the last version that was run counts.
    Of the metrics, these columns are read; by default all.
    """
    runs = _of_folders(store, experiment, metrics)
    if os.environ.get("MLFLOW_TRACKING_URI") and find_spec("mlflow"):
        from rollcall.benchmark.sweep.mlflow_client import client

        here = {run.digest for run in runs}
        try:
            runs = load(client(store), experiment, metrics, without=here) + runs
        except Exception as error:  # MLflow, SQLAlchemy and the network raise errors of many kinds
            print(f"MLflow: {error}. Only the run folders in {store} are read.", file=sys.stderr)
    return _of_one_version(runs)


def load(
    client: "MlflowClient", experiment: str, metrics: Collection[str] | None = None, without: Collection[str] = ()
) -> list[Run]:
    """The finished and the diverged runs of an experiment in MLflow, oldest first, with their histories.

    A finished run that is being continued counts with the rounds that it had finished. Digests in `without` are left
    out. Of the metrics, these columns are read; by default all, which is slow if every client was measured.
    """
    stored = client.get_experiment_by_name(experiment)
    runs = []
    token: str | None = ""
    while stored is not None and token is not None:
        page = client.search_runs([stored.experiment_id], order_by=["start_time"], page_token=token or None)
        token = page.token or None
        for entry in page:
            tags = dict(entry.data.tags)
            rounds = _rounds(tags)
            if PARENT in tags or tags.get("rollcall.trial") in without or rounds is None:
                continue
            columns = {}
            for metric in [one for one in entry.data.metrics if metrics is None or one in metrics]:
                values = client.get_metric_history(entry.info.run_id, metric)
                columns[metric] = pd.Series({value.step: value.value for value in values}, dtype=float)
            history = pd.DataFrame(columns).sort_index().rename_axis("round")
            runs.append(_of_rounds(rounds, tags, nested(entry.data.params), history))
    return runs


def archive(runs: Iterable[Run], experiment: str, metrics: Sequence[str], folder: Path) -> Path:
    """Add runs to an archive. A run replaces an archived run of the same trial that has no more rounds.

    A compressed CSV file, whose path is returned, has the evaluations of these metrics with six digits. A JSON file of
    the same name has settings and tags.
    """
    kept = dict(sorted(_longest([*unarchive(experiment, folder), *runs]).items()))
    table = folder / f"{experiment}{TABLE}"
    table.parent.mkdir(parents=True, exist_ok=True)
    rows = []
    for digest, run in kept.items():
        columns = [metric for metric in metrics if metric in run.history]
        rows.append(run.history[columns].dropna(how="all").rename_axis("round").reset_index().assign(trial=digest))
    whole = pd.concat(rows, ignore_index=True)
    whole = whole[["trial", "round", *(metric for metric in metrics if metric in whole)]]
    _compress(table, whole.to_csv(index=False, float_format="%.6g", lineterminator="\n"))
    _compress(settings_file(table), json.dumps(_origins(kept), indent=1) + "\n")
    return table


def settings_file(table: Path) -> Path:
    """The file of settings and tags beside an archive's table."""
    return table.with_name(table.name.removesuffix(TABLE) + SETTINGS)


def _compress(file: Path, text: str) -> None:
    """Write a text; equal texts give equal files."""
    file.write_bytes(lzma.compress(text.encode(), preset=9 | lzma.PRESET_EXTREME))


def unarchive(experiment: str, *folders: Path) -> list[Run]:
    """The runs of an experiment in one or more archives, by default the one that comes with Rollcall.

    If several archives have a trial, the run with the most rounds counts; of equal ones that of the later folder.
    """
    distinct = dict.fromkeys(folder.resolve() for folder in folders or (PACKAGE,))
    return list(_longest(run for folder in distinct for run in archived(folder / f"{experiment}{TABLE}")).values())


def _rounds(tags: Mapping[str, str]) -> int | None:
    """Rounds of a finished run; rounds that were asked for of a diverged one; None of any other."""
    rounds, diverged, asked = (tags.get(f"rollcall.{name}") for name in ("finished", "diverged", "rounds"))
    if diverged is not None and asked is not None and int(diverged) <= int(asked):
        rounds = asked
    return None if rounds is None else int(rounds)


def _of_rounds(rounds: int, tags: dict[str, str], spec: dict[str, Any], history: pd.DataFrame) -> Run:
    """The user's run, cut to these rounds; an analysis has none."""
    run = Run(tags, spec, history, "own")
    return run if "analysis" in spec else replace(run, spec=spec | {"rounds": rounds}).until(rounds)


def _of_folders(store: Path, experiment: str, metrics: Collection[str] | None) -> list[Run]:
    """The runs in run folders, oldest first; a folder that cannot be read is left out, with a warning."""
    dated: list[tuple[float, Run]] = []
    for file in (store / experiment).glob("*/status.json"):
        folder = RunFolder(file.parent)
        if ".damaged" in folder.path.name:  # set aside by `rollcall doctor`
            continue
        try:
            run = _of_folder(folder, experiment, metrics)
        except (OSError, ValueError, KeyError, YAMLError) as error:
            print(f"left out: {folder.path}: {' '.join(str(error).split())}", file=sys.stderr)
            continue
        if run is not None:
            dated.append((folder.status["updated"], run))
    return [run for _, run in sorted(dated, key=lambda pair: pair[0])]


def _of_folder(folder: RunFolder, experiment: str, metrics: Collection[str] | None) -> Run | None:
    """The run of a folder, with the tags that it has in MLflow; None if it neither finished nor diverged."""
    status, altered = folder.status, folder.altered()
    if altered:
        file, fault = next(iter(altered.items()))
        raise ValueError(f"{file.name}: {fault}; see {command('doctor', folder.path)}")
    last = {name: status.get(name) for name in ("rounds", "diverged", "round", "seconds", "state")}
    last["finished"] = folder.finished or None
    more = {f"rollcall.{name}": str(value) for name, value in last.items() if value is not None}
    rounds = _rounds(more)
    if rounds is None:
        return None
    spec = parsed(folder.settings.read_text(encoding="utf-8"))
    history = folder.history().set_index("round")
    if metrics is not None:
        history = history[[metric for metric in history if metric in metrics]]
    return _of_rounds(rounds, tags(experiment, flatten(spec), status) | more, spec, history.astype(float))


def _of_one_version(runs: list[Run]) -> list[Run]:
    """The runs, oldest first, whose code is as it was; where a file is gone, those of the last version that was run."""
    own = [run for run in runs if run.tags.get("rollcall.sources")]
    last = {run.settings_without("seed", "rounds"): run.tags["rollcall.sources"] for run in own}
    left = []
    for run in own:
        recorded = run.tags["rollcall.sources"]
        files = {Path(text.rpartition(":")[0]) for text in run.settings.values() if ".py:" in text}
        if files and all(file.is_file() for file in files):
            present = {Source(str(file), file.read_bytes().decode()).digest[:10] for file in files}
            counts = present <= {pair.rpartition("=")[2] for pair in recorded.split()}
        else:
            counts = recorded == last[run.settings_without("seed", "rounds")]
        left += [] if counts else [run]
    if left:
        methods = ", ".join(sorted({run.tags["algorithm"] for run in left}))
        print(f"left out: {counted(len(left), 'run')} of another version of your code ({methods})", file=sys.stderr)
    return [run for run in runs if not any(run is one for one in left)]


def _longest(runs: Iterable[Run]) -> dict[str, Run]:
    """The longest run of each trial by its digest; of equally long ones the later."""
    return {run.digest: run for run in sorted(runs, key=lambda run: run.rounds)}


def archived(table: Path) -> list[Run]:
    """The runs of an archive's table; none without the file."""
    if not table.exists():
        return []
    origins = json.loads(lzma.decompress(settings_file(table).read_bytes()))
    common = origins["common"]
    rows = pd.read_csv(table, dtype={"trial": str})  # a digest may look like a number
    rows = rows.sort_values("trial", kind="stable")
    of, evaluations = rows.pop("trial").to_numpy(str), rows.set_index("round")
    digests, starts = np.unique(of, return_index=True)
    measured = map(tuple, np.logical_or.reduceat(evaluations.notna().to_numpy(), starts)) if len(of) else ()
    pieces = dict(zip(digests.tolist(), zip(measured, starts, [*starts[1:], len(of)], strict=True), strict=True))
    frames = {columns: evaluations.loc[:, list(columns)] for columns, *_ in pieces.values()}

    def history(digest: str) -> pd.DataFrame:
        columns, start, end = pieces.get(digest, ((), 0, 0))
        return frames[columns].iloc[start:end] if columns else evaluations.iloc[:0, :0]

    return [
        Run(common["tags"] | own["tags"], nested(common["settings"] | own["settings"]), history(digest))
        for digest, own in origins["trials"].items()
    ]


def _origins(runs: Mapping[str, Run]) -> dict[str, Any]:
    """Settings and tags of runs by their digest; the ones that all have in common stand once."""
    origins = {
        digest: {
            "settings": run.settings,
            "tags": {key: value for key, value in run.tags.items() if not key.startswith("mlflow.")},
        }
        for digest, run in runs.items()
    }
    common = {
        part: dict(sorted(set.intersection(*({*origin[part].items()} for origin in origins.values()))))
        for part in ("settings", "tags")
    }
    own = {
        digest: {part: dict(sorted(origin[part].items() - common[part].items())) for part in origin}
        for digest, origin in origins.items()
    }
    return {"common": common, "trials": own}
