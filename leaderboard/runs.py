"""Finished runs: of the user, from run folders and MLflow; and kept ones, small files in an archive folder."""

import json
import lzma
import math
import re
import sys
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache, cached_property
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Literal

import numpy as np
import pandas as pd
from filelock import FileLock
from jaxtyping import Float, Int
from yaml import YAMLError

from rollcall.benchmark.config.digest import flatten, nested
from rollcall.benchmark.config.errors import UNREADABLE, SettingError
from rollcall.benchmark.config.metric import Metric
from rollcall.benchmark.config.source import Source, decoded
from rollcall.benchmark.config.text import command, counted
from rollcall.benchmark.config.trial import Evaluation
from rollcall.benchmark.federation.run_folder import RunFolder, replacing, run_folders

FlatSettings = tuple[tuple[str, str], ...]
"""Settings as text, sorted by dotted name."""

PACKAGE = Path(__file__).parent / "results"
"""Archive of the papers' experiments that comes with Rollcall."""

HERE = Path("leaderboard/results")
"""Archive in the working directory, in which `rollcall archive` keeps results."""

TABLE, SETTINGS = ".csv.xz", ".json.xz"
"""The ends of an archive's two files of an experiment."""


@dataclass(frozen=True)
class Run:
    """One trial that finished or diverged: from a run folder or an MLflow server (`own`), or an archive (`kept`).

    Attributes:
        tags: its origin, such as experiment, seed, commit and version.
        spec: settings as they are written, with the rounds that it has.
        history: [evaluations], indexed by round, a column for each metric.
        server: the address of the MLflow server; empty for run folders and archives.
    """

    tags: dict[str, str]
    spec: dict[str, Any]
    history: pd.DataFrame
    source: Literal["own", "kept"] = "kept"
    server: str = ""

    @property
    def digest(self) -> str:
        """The identity of its trial; see `rollcall.benchmark.config.digest`."""
        return self.tags["rollcall.trial"]

    @cached_property
    def settings(self) -> dict[str, str]:
        """Its settings for people: as text, by dotted name."""
        return flatten(self.spec)

    @property
    def cell(self) -> FlatSettings:
        """All settings but the seed. The runs of one cell have them in common."""
        return self.settings_without("seed")

    def settings_without(self, *names: str) -> FlatSettings:
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
    def regular(self) -> pd.DataFrame:
        """The history without the last evaluations of a shorter run in the same folder."""
        if "rounds" not in self.spec:
            return self.history
        how = _evaluation(self._when)
        return self.history[[how.due(int(t), self.rounds) for t in self.history.index]]

    @property
    def evaluated(self) -> list[int]:
        """The rounds after which its settings evaluate it; those of its history if it is an analysis."""
        if "rounds" not in self.spec:
            return [int(t) for t in self.history.index]
        return [t for t in range(self.rounds + 1) if _evaluation(self._when).due(t, self.rounds)]

    @cached_property
    def _when(self) -> str:
        """When it was evaluated, and on which splits, as JSON."""
        own = self.spec.get("evaluation", {})
        return json.dumps({key: own[key] for key in own if key in ("every", "last", "at", "splits")})

    def cost(self, cost: str) -> tuple[Int[np.ndarray, "t"], Float[np.ndarray, "t"]]:
        """Rounds, and a cost until then: a column of the history, or `round`. Empty if it was not measured.

        Without a clock `time/seconds` are the seconds that the run took, spread evenly over the rounds.
        """
        if cost in self.history:
            return self.known(cost)
        rounds, rate = self.history.index.to_numpy(), 1.0 if cost == "round" else math.nan
        if cost == "time/seconds":
            rate = float(self.tags.get("rollcall.seconds", math.nan))
            done = self.tags.get("rollcall.round", self.tags.get("rollcall.finished", self.rounds))  # of all seconds
            rate /= max(1, int(done))
        return (rounds[:0], rounds[:0] * rate) if math.isnan(rate) else (rounds, rounds * rate)

    def spent(self, cost: str) -> pd.Series:
        """A cost so far, by round; see `cost`."""
        rounds, values = self.cost(cost)
        return pd.Series(values, rounds, dtype=float)

    def has(self, metric: Metric) -> bool:
        return metric.column in self.history and (metric.over == "round" or len(self.cost(metric.over)[0]) > 0)

    def end(self, metric: Metric) -> float:
        """The last round, or the last cost that a threshold counts: until then it was not reached."""
        return float(self.rounds) if metric.over == "round" else float(self.spent(metric.over).max())

    def known(self, column: str) -> tuple[Int[np.ndarray, "t"], Float[np.ndarray, "t"]]:
        """The rounds after which a metric was measured, and its values."""
        if column not in self._known:  # tables, claims and figures ask for the same ones many times
            values = self._values[:, self.history.columns.get_loc(column)]
            measured = ~np.isnan(values)
            self._known[column] = self.history.index.to_numpy()[measured], values[measured]
        return self._known[column]

    @cached_property
    def _values(self) -> Float[np.ndarray, "evaluations metrics"]:
        return self.history.to_numpy(float)

    @cached_property
    def _known(self) -> dict[str, tuple[Int[np.ndarray, "t"], Float[np.ndarray, "t"]]]:
        return {}

    def window(self, metric: Metric, last_rounds: int) -> Float[np.ndarray, "evaluations"]:
        """The evaluations in the last rounds of a metric that was measured.

        They are empty unless they cover the window: the run has that many rounds, and was evaluated after all rounds of
        the window after which its settings say so. The evaluation before the first round does not count.
        """
        rounds, values = self.known(metric.column)
        if "rounds" not in self.spec:  # an analysis
            return values[rounds > rounds.max(initial=0) - last_rounds]
        due = _due(self._when, self.rounds, metric.split, last_rounds)
        at = np.searchsorted(rounds, due)
        covered = self.rounds >= last_rounds and len(due) and at[-1] < len(rounds) and (rounds[at] == due).all()
        return values[at] if covered else values[:0]

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
            curve = self.curve(metric)
            reached = curve.index[curve >= metric.threshold]
            return float(self.spent(metric.over).get(reached[0], math.inf)) if len(reached) else math.inf
        if at is None:
            window = self.window(metric, last_rounds)
            return float(window.mean()) if len(window) else math.nan
        history = self.history[metric.column].dropna()
        if per is None:
            return float(history.get(at, math.nan))
        spent = self.history[per.column].reindex(history.index) if self.has(per) else history * math.nan
        within = history[spent <= at]
        return float(within.iloc[-1]) if spent.max() >= at and len(within) else math.nan

    def curve(self, metric: Metric) -> pd.Series:
        """The regular evaluations of a metric by round, without those in between of the last rounds."""
        values = self.history[metric.column].dropna()
        return values[values.index % _evaluation(self._when).every == 0]


@cache
def _evaluation(settings: str) -> Evaluation:
    """Settings of an evaluation from JSON; many runs have the same ones."""
    return Evaluation.model_validate(json.loads(settings))


@cache
def _due(evaluation: str, rounds: int, split: str, last_rounds: int) -> Int[np.ndarray, "due"]:
    """The last rounds after which a split is evaluated."""
    how = _evaluation(evaluation)
    known = {*(how.splits or ()), *((how.last and how.last.splits) or ())}

    def measured(t: int) -> bool:
        splits = how.splits_at(t, rounds)
        return how.due(t, rounds) and (splits is None or split in splits or split not in known)

    return np.array([t for t in range(max(0, rounds - last_rounds) + 1, rounds + 1) if measured(t)], int)


def finished(
    experiment: str, store: Path | None, mine: bool = False, metrics: Collection[str] | None = None, mlflow: str = ""
) -> list[Run]:
    """The kept runs of an experiment, and then the user's own.

    Args:
        store: folder of the run folders; None: kept runs alone.
        mine: leave out kept runs.
        metrics: columns to read of the user's own; by default all.
        mlflow: address of an MLflow server or database whose runs count instead of the run folders.
    """
    kept = [] if mine else unarchive(experiment)
    return kept + (own(store, experiment, metrics, mlflow) if store is not None else [])


def own(store: Path, experiment: str, metrics: Collection[str] | None = None, mlflow: str = "") -> list[Run]:
    """The user's finished and diverged runs of an experiment, oldest first; for the arguments see `finished`.

    A folder that cannot be read is left out, with a warning. So are runs of another version of the user's own files
    than the present one; where a file is gone, the last version that was run counts.
    """
    if mlflow:
        return _of_one_version(served(mlflow, experiment, metrics))
    dated: list[tuple[float, Run]] = []
    for path in run_folders(store / experiment, below=False):
        folder = RunFolder(path)
        try:
            run = of_folder(folder, experiment, metrics)
            dated += [(folder.status["updated"], run)] if run else []
        except (*UNREADABLE, YAMLError) as error:
            print(f"left out: {path}: {' '.join(str(error).split())}", file=sys.stderr)
    return _of_one_version([run for _, run in sorted(dated, key=lambda pair: pair[0])])


def of_folder(folder: RunFolder, experiment: str, metrics: Collection[str] | None) -> Run | None:
    """The run of a folder; None if it neither finished nor diverged.

    A finished run that is being continued counts with the rounds that it had finished, a diverged one with those that
    were asked for.
    """
    if fault := folder.altered():
        raise ValueError(f"metrics.jsonl: {fault}; see {command('doctor', folder.path)}")
    if fault := folder.altered_settings():
        raise ValueError(f"trial.yaml: {fault}; `rollcall run` of its experiment writes it again")
    status = folder.status
    diverged = status.get("diverged") is not None and status["diverged"] <= status["rounds"]
    rounds = int(status["rounds"]) if diverged else folder.finished
    if not rounds:
        return None
    tags, spec = folder.origin(experiment)
    history = folder.history().set_index("round").astype(float)
    run = Run(tags, spec, history if metrics is None else history.filter([*metrics]), "own")
    return run if "analysis" in spec else replace(run, spec=spec | {"rounds": rounds}).until(rounds)


def served(uri: str, experiment: str, metrics: Collection[str] | None = None) -> list[Run]:
    """The runs that have copies on an MLflow server or in a database, oldest first; for the metrics see `finished`."""
    from rollcall.benchmark.sweep.mlflow_copy import COMPLETE, FILES, STATUS, connect, reason, runs_of, shown

    runs = []
    file = uri.removeprefix("sqlite:///").partition("?")[0]
    if uri.startswith("sqlite:///") and not Path(file).is_file():  # MLflow would create it
        raise SettingError(f"mlflow: {uri} is not allowed; there is no file {file}")
    try:
        client = connect(uri)
        known = client.get_experiment_by_name(experiment)
        for entry in runs_of(client, known.experiment_id) if known is not None else ():
            tags = entry.data.tags
            if COMPLETE not in tags or not {"rollcall.finished", "rollcall.diverged"} & tags.keys():
                continue  # it is none of ours, its copy was cut off, or it has not ended
            there = {file.path for file in client.list_artifacts(entry.info.run_id)}
            with TemporaryDirectory(prefix="rollcall-") as folder:
                for file in there & {STATUS, *FILES}:  # a run that diverged at once has no metrics.jsonl
                    client.download_artifacts(entry.info.run_id, file, folder)
                Path(folder, STATUS).rename(Path(folder, "status.json"))
                try:
                    run = of_folder(RunFolder(Path(folder)), experiment, metrics)
                except (*UNREADABLE, YAMLError) as error:
                    print(f"left out: {entry.info.run_name}: {' '.join(str(error).split())}", file=sys.stderr)
                    continue
            runs += [replace(run, server=shown(uri))] if run else []
    except Exception as error:  # MLflow, SQLAlchemy and the network raise errors of many kinds
        raise SettingError(f"mlflow: {shown(uri)} cannot be read ({reason(error)})") from None
    return runs


def archive(runs: Iterable[Run], experiment: str, metrics: Sequence[str], folder: Path) -> Path:
    """Add runs to an archive. A run replaces an archived run of the same trial that has no more rounds.

    A compressed CSV file, whose path is returned, has the evaluations of these metrics with six digits. A JSON file of
    the same name has settings and tags.
    """
    table = folder / f"{experiment}{TABLE}"
    table.parent.mkdir(parents=True, exist_ok=True)
    with FileLock(folder / "archive.lock", mode=0o666):  # another process may add runs meanwhile
        kept = dict(sorted(longest([*unarchive(experiment, folder), *runs]).items()))
        rows = []
        for digest, run in kept.items():
            columns = [metric for metric in metrics if metric in run.history]
            rows.append(run.regular[columns].dropna(how="all").rename_axis("round").reset_index().assign(trial=digest))
        whole = pd.concat(rows, ignore_index=True)
        whole = whole[["trial", "round", *(metric for metric in metrics if metric in whole)]]
        _compress(settings_file(table), json.dumps(_origins(kept), indent=1) + "\n")  # first: alone, it is no archive
        _compress(table, whole.to_csv(index=False, float_format="%.6g", lineterminator="\n"))
    return table


def settings_file(table: Path) -> Path:
    return table.with_name(table.name.removesuffix(TABLE) + SETTINGS)


def _compress(file: Path, text: str) -> None:
    """Write a text; equal texts give equal files. If it cannot be written, the file stays as it was."""
    with replacing(file, lasting=True) as scratch:
        scratch.write_bytes(lzma.compress(text.encode(), preset=9 | lzma.PRESET_EXTREME))


def unarchive(experiment: str, *folders: Path) -> list[Run]:
    """The runs of an experiment in one or more archives, by default `PACKAGE` and `HERE`.

    If several archives have a trial, the run with the most rounds counts; of equal ones that of the later folder.
    """
    distinct = dict.fromkeys(folder.resolve() for folder in folders or (PACKAGE, HERE))
    return list(longest(run for folder in distinct for run in archived(folder / f"{experiment}{TABLE}")).values())


def _of_one_version(runs: list[Run]) -> list[Run]:
    """The runs, oldest first, whose code is as it was; where a file is gone, those of the last version that was run."""
    last = {run.settings_without("seed", "rounds"): run.tags.get("rollcall.sources", "") for run in runs}
    counting: list[Run] = []
    left: list[Run] = []
    for run in runs:
        recorded = run.tags.get("rollcall.sources", "")
        # A list of choices is a text, too: `['/a/mine.py:One', 'f1']`.
        files = {
            Path(file) for text in run.settings.values() for file in re.findall(r"""(?:^|['"])([^'"]+[.]py):""", text)
        }
        if recorded and files and all(file.is_file() for file in files):
            present = {Source(str(file), decoded(file)).digest[:10] for file in files}
            counts = present <= {pair.rpartition("=")[2] for pair in recorded.split()}
        else:
            counts = not recorded or recorded == last[run.settings_without("seed", "rounds")]
        (counting if counts else left).append(run)
    if left:
        methods = ", ".join(sorted({run.tags["algorithm"] for run in left}))
        print(f"left out: {counted(len(left), 'run')} of another version of your code ({methods})", file=sys.stderr)
    return counting


def longest(runs: Iterable[Run]) -> dict[str, Run]:
    """The longest run of each trial by its digest; of equally long ones the later."""
    return {run.digest: run for run in sorted(runs, key=lambda run: run.rounds)}


def archived(table: Path) -> list[Run]:
    """The runs of an archive's table; none without the file.

    Raises SettingError: the table, or the file of its settings, cannot be read.
    """
    if not table.exists():
        return []
    settings = settings_file(table)
    try:
        return _archived(pd.read_csv(table, dtype={"trial": str}), json.loads(lzma.decompress(settings.read_bytes())))
    except UNREADABLE as error:
        told = f"{type(error).__name__}: {error}" if isinstance(error, KeyError | TypeError) else str(error)
        raise SettingError(f"{table}: cannot be read with {settings.name} ({told}); restore both files") from None


def _archived(rows: pd.DataFrame, origins: Mapping[str, Any]) -> list[Run]:
    """The runs of a table; its digests are texts, as they may look like numbers."""
    common = origins["common"]
    rows = rows.sort_values("trial", kind="stable")
    of, evaluations = rows.pop("trial").to_numpy(str), rows.set_index("round").astype(float)
    digests, starts = np.unique(of, return_index=True)
    measured = map(tuple, np.logical_or.reduceat(evaluations.notna().to_numpy(), starts)) if len(of) else ()
    pieces = dict(
        zip(digests.tolist(), zip(measured, starts, [*starts[1:], len(of)][: len(starts)], strict=True), strict=True)
    )
    frames = {columns: evaluations.loc[:, list(columns)] for columns in {columns for columns, *_ in pieces.values()}}
    runs = []
    for digest, own in origins["trials"].items():
        columns, start, end = pieces.get(digest, ((), 0, 0))
        history = frames[columns].iloc[start:end] if columns else evaluations.iloc[:0, :0]
        run = Run(common["tags"] | own["tags"], nested(common["settings"] | own["settings"]), history)
        if run.rounds < 1 or not run.digest:
            raise ValueError(f"trial {digest} has no rounds")
        runs.append(run)
    return runs


def _origins(runs: Mapping[str, Run]) -> dict[str, Any]:
    """Settings and tags of runs by their digest; the ones that all have in common stand once."""
    origins = {}
    for digest, run in runs.items():
        tags = {key: value for key, value in run.tags.items() if not key.startswith("mlflow.")}
        origins[digest] = {"settings": run.settings, "tags": tags}
    common = {
        part: set.intersection(*({*one[part].items()} for one in origins.values())) for part in ("settings", "tags")
    }
    trials = {
        digest: {part: dict(sorted(values.items() - common[part])) for part, values in one.items()}
        for digest, one in origins.items()
    }
    return {"common": {part: dict(sorted(pairs)) for part, pairs in common.items()}, "trials": trials}
