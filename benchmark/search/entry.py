"""An entry of a board: the searches and final runs of one method, as one file.

The file is JSON, compressed, and ends in `.entry`. It has all that the board's rule decides (settings, draws, seeds,
digests of the trials) and all that was measured, so that `problems` can verify the former and `rerun` the latter.
"""

import gzip
import hashlib
import json
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import date
from functools import cached_property
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple, Self
from unicodedata import normalize

import numpy as np
import pandas as pd
from pydantic import BaseModel, ConfigDict, field_validator, model_validator

from rollcall.algorithms import Algorithm
from rollcall.benchmark.config.base import validated
from rollcall.benchmark.config.digest import digest, from_copies, own_code, serialised
from rollcall.benchmark.config.errors import UNREADABLE, SettingError
from rollcall.benchmark.config.trial import Evaluation, Trial
from rollcall.benchmark.federation.build import build, first_traffic
from rollcall.benchmark.federation.run_folder import replacing
from rollcall.benchmark.federation.simulation import simulate
from rollcall.benchmark.process import Interrupted
from rollcall.benchmark.search.board import Board, Spec, best
from rollcall.benchmark.sweep.jobs import Job, Sweep
from rollcall.benchmark.sweep.lockstep import run_lockstep
from rollcall.benchmark.sweep.run import Execution, run_jobs

ENDING = ".entry"

SCORE, RESULT = "validation/accuracy", "test/accuracy"

TOLERANCE = 0.005
"""Of an accuracy: other machines round differently, which can turn the answer for a sample of the test split."""

COSTS = ("gradients", "floats_up", "floats_down", "memory")


class Part(BaseModel):
    """A part of an entry."""

    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)


class Sample(Part):
    """A sample of a search: its settings, the digest of its trial, its score (None: it diverged)."""

    settings: dict[str, Any]
    run: str
    score: float | None


class Final(Part):
    """A final run.

    Attributes:
        seed, run, rounds: of the trial; `run` is its digest.
        value: mean test accuracy of the last rounds; None if the run diverged.
        curve: rounds and test accuracy of all evaluations.
        costs: gradients, floats sent and stored, at the end.
        seconds: that it took.
    """

    seed: int
    run: str
    rounds: int
    value: float | None
    curve: list[tuple[int, float]]
    costs: dict[str, float]
    seconds: float

    @field_validator("costs")
    @classmethod
    def _all(cls, costs: dict[str, float]) -> dict[str, float]:
        if missing := [name for name in COSTS if name not in costs]:
            raise ValueError(f"without {', '.join(missing)}")
        return costs


class Searched(Part):
    """One search: its seed, its samples, the number of the best one (None: all diverged), and the final runs."""

    seed: int
    samples: list[Sample]
    best: int | None
    finals: list[Final]

    @model_validator(mode="after")
    def _best_exists(self) -> Self:
        if self.best is not None and not 0 <= self.best < len(self.samples):
            raise ValueError(f"best: {self.best} is not the number of a sample")
        return self


class Marks(Part):
    """What a method needs.

    Attributes:
        knows: oracle knowledge.
        stores: who keeps a vector for each client: `server`, `clients`, or nobody.
        up, down: vectors that a client of a round sends and receives.
        absent: whether clients compute that are not available.
    """

    knows: list[str]
    stores: str
    up: int
    down: int
    absent: bool

    @classmethod
    def of(cls, method: Algorithm[Any]) -> "Marks":
        """Those of a method."""
        traffic, properties = first_traffic(method, 1), method.properties
        return cls(
            knows=list(method.requires),
            stores=properties.stores,
            up=max(1, traffic.up),  # of one client that a method selects in its first round
            down=max(1, traffic.down),
            absent=properties.asks_all,
        )


class Entry(Part):
    """The content of an entry file.

    Attributes:
        board, rule: the board, and the digest of its rule.
        method, algorithm: the label and the settings of the method, as an experiment file has them.
        space: what was searched, as it was written.
        marks: what the method needs.
        source: the texts of the user's own files, by name.
        origin: date, commit, machine, device and versions.
        cells: the searches of each condition.
        impossible: the reason for each condition that the method cannot have.
    """

    board: str
    rule: str
    method: str
    algorithm: Any
    space: dict[str, Any]
    marks: Marks
    source: dict[str, str]
    origin: dict[str, Any]
    cells: dict[str, list[Searched]]
    impossible: dict[str, str]

    @field_validator("source")
    @classmethod
    def _plain(cls, source: dict[str, str]) -> dict[str, str]:
        """Names of files in one folder, with texts that can be written."""
        for name, text in source.items():
            if Path(name).name != name or name == ".." or "\0" in name:
                raise ValueError(f"source: {name!r} is not the name of a file")
            text.encode()  # fails for what UTF-8 does not have
        return source

    @property
    def own_code(self) -> list[str]:
        """The addresses of code that is not the suite's: to run the method runs it."""
        return own_code(self.algorithm)

    def write(self, folder: Path) -> Path:
        """Write `METHOD.entry` into a folder; returns its path."""
        folder.mkdir(parents=True, exist_ok=True)
        data = self.model_dump(mode="json")
        text = json.dumps(data | {"content": _content(data)}, separators=(",", ":"))
        path = folder / f"{self.method}{ENDING}"
        with replacing(path) as scratch:  # a full disk leaves no half of a file
            scratch.write_bytes(gzip.compress(text.encode(), mtime=0))
        return path

    @classmethod
    def read(cls, path: Path) -> "Entry":
        """The entry of a file.

        Raises SettingError: it cannot be read, was changed after it was written, or has another method's name.
        """
        try:
            data = json.loads(gzip.decompress(path.read_bytes()))
            content = data.pop("content")
            entry = cls.model_validate(data)
        except UNREADABLE as error:
            told = " ".join(str(error).split())[:200]
            raise SettingError(f"{path}: cannot be read ({told}); must be as rollcall enter writes it") from None
        if _content(data) != content:
            raise SettingError(f"{path}: was changed after rollcall enter wrote it; its digest is not {content}")
        if normalize("NFC", path.name) != normalize("NFC", f"{entry.method}{ENDING}"):  # a file system may decompose it
            raise SettingError(f"{path}: is not allowed as the name of this entry; must be {entry.method}{ENDING}")
        return entry


def _content(data: Mapping[str, Any]) -> str:
    """The digest of an entry."""
    return hashlib.sha256(json.dumps(data, sort_keys=True).encode()).hexdigest()[:16]


class Method(NamedTuple):
    """A method to enter: its label, its settings, and the space of its search."""

    label: str
    algorithm: Any
    space: dict[str, Any]


class EntryPlan:
    """What is run for a method, and its results."""

    def __init__(self, board: Board, method: Method, store: Path) -> None:
        """Raise `SettingError` if no condition is possible."""
        self.board, self.method, self.store = board, method, store
        conditions = board.conditions(method.label, method.algorithm)
        self.draws = [board.draws(method.space, search) for search in range(len(board.search.seeds))]
        self.impossible = {name: "left out by the board" for name in board.patterns if name not in conditions}
        for name, spec in list(conditions.items()):
            if reason := refused(board, spec, self.draws[0][0]):
                self.impossible[name] = reason
                del conditions[name]
        if not conditions:
            first = next(iter(self.impossible.values()))
            raise SettingError(f"{method.label}: is possible under no condition. The first: {first}")
        self.conditions = conditions
        self.keys = [(name, search) for name in conditions for search in range(len(self.draws))]

    @cached_property
    def samples(self) -> dict[tuple[str, int], list[Job]]:
        """The samples of each search, by condition and number of the search."""
        folder = f"{self.board.name}/search"
        return {
            (name, search): [
                Job(Trial.read(self.board.sample(self.conditions[name], point, search)), folder, self.store)
                for point in self.draws[search]
            ]
            for name, search in self.keys
        }

    @cached_property
    def scores(self) -> dict[tuple[str, int], list[float | None]]:
        """Those of the samples, once they have run."""
        return {key: [value_of(job, SCORE, self.board.last) for job in own] for key, own in self.samples.items()}

    @cached_property
    def finals(self) -> dict[tuple[str, int], list[Job]]:
        """The final runs of each search; none if all its samples diverged."""
        finals, board = {}, self.board
        for (name, search), scores in self.scores.items():
            if (index := best(scores)) is not None:
                spec, point = self.conditions[name], self.draws[search][index]
                trials = [Trial.read(board.final(spec, point, seed)) for seed in board.finals(search)]
                if any(trial.copies != self.samples[name, search][index].trial.copies for trial in trials):
                    raise SettingError(f"{self.method.label}: its code was changed during the search; enter it again")
                finals[name, search] = [Job(trial, board.name, self.store) for trial in trials]
        return finals

    def searched(self, name: str, search: int) -> Searched:
        """The results of a search."""
        rows = zip(self.draws[search], self.samples[name, search], self.scores[name, search], strict=True)
        return Searched(
            seed=self.board.search.seeds[search],
            samples=[Sample(settings=point, run=job.trial.digest, score=score) for point, job, score in rows],
            best=best(self.scores[name, search]),
            finals=[final_of(job, self.board.last) for job in self.finals.get((name, search), ())],
        )

    @property
    def entry(self) -> Entry:
        """All of it, once it has run."""
        first = self.samples[self.keys[0]][0]
        assert isinstance(first.trial, Trial)
        status = first.folder.status
        searches = range(len(self.draws))
        return Entry(
            board=self.board.name,
            rule=self.board.rule,
            method=self.method.label,
            algorithm=serialised(self.method.algorithm),
            space=self.method.space,
            marks=Marks.of(first.trial.algorithm.build()),
            source={name: source.text for name, source in first.trial.copies.items()},
            origin={"date": date.today().isoformat()}
            | {key: status.get(key) for key in ("commit", "machine", "device", "python", "versions")},
            cells={name: [self.searched(name, search) for search in searches] for name in self.conditions},
            impossible=self.impossible,
        )


def refused(board: Board, spec: Spec, point: Spec) -> str:
    """Why a method cannot have a condition, as its trial says; empty if it can."""
    try:
        build(Trial.read(board.sample(spec, point, 0)))
    except SettingError as error:
        return str(error)
    return ""


Tell = Callable[[str], None]


def enter(board: Board, methods: Sequence[Method], execution: Execution, tell: Tell = lambda line: None) -> list[Entry]:
    """Run the searches and the final runs of methods; a second call resumes. `tell` takes lines on the progress.

    Raises SettingError: a trial failed, or a method is possible under no condition. Raises Interrupted: asked to stop;
    call again to resume.
    """
    plans = [EntryPlan(board, method, execution.store) for method in methods]
    for plan in plans:
        for name, reason in plan.impossible.items():
            tell(f"{plan.method.label} cannot have {name}: {reason}")
    samples = [job for plan in plans for jobs in plan.samples.values() for job in jobs]
    run(execution, samples, lambda line: tell(f"samples: {line}"))
    finals = [job for plan in plans for jobs in plan.finals.values() for job in jobs]
    run(execution, finals, lambda line: tell(f"final runs: {line}"))
    return [plan.entry for plan in plans]


def run(execution: Execution, jobs: Sequence[Job], tell: Tell) -> None:
    """Run jobs to their end; without Ray, those that share their data together."""
    changed = [job for job in jobs if job.ended and job.changed]
    if changed:
        modules = ", ".join(sorted({module for job in changed for module in job.changed}))
        tell(f"{len(changed)} were computed by other code of {modules}; remove {changed[0].folder.path.parent} to redo")
    for job in jobs:
        job.folder.verify()
        job.restore()
    todo = [job for job in jobs if not job.ended]
    if execution.executor == "inline":
        errors, asked = run_lockstep(todo, tell)
        ends = Sweep(jobs, todo, errors, asked=asked)
    else:
        ends = run_jobs(jobs, execution)
    for name, error in ends.failed.items():
        raise SettingError(f"{name}: failed: {error}. Nothing is entered; rerun the command to resume")
    if ends.stopped or ends.elsewhere or ends.asked:
        raise Interrupted("Interrupted. Nothing is entered yet. Rerun the command to resume.")


def mean_of(history: pd.DataFrame, column: str, rounds: int, last: int) -> float | None:
    """The mean of a column over the last of these rounds of a run, which may have more; None if it is not finite."""
    window = history["round"].between(rounds - last, rounds, inclusive="right")
    value = float(history[column][window].mean())
    return round(value, 8) if math.isfinite(value) else None


def value_of(job: Job, column: str, last: int) -> float | None:
    """The mean of a column over the last rounds of a run; None if it diverged."""
    return mean_of(job.history, column, job.trial.rounds, last) if job.finished else None


def final_of(job: Job, last: int) -> Final:
    trial, history = job.trial, job.history
    curve = [(int(t), round(float(value), 6)) for t, value in zip(history["round"], history[RESULT], strict=True)]
    return Final(
        seed=trial.seed,
        run=trial.digest,
        rounds=trial.rounds,
        value=value_of(job, RESULT, last),
        curve=[(t, value) for t, value in curve if math.isfinite(value)],
        costs={name: float(history[f"cost/{name}"].iloc[-1]) for name in COSTS},
        seconds=round(float(job.folder.status.get("seconds", 0.0)), 2),
    )


def problems(entry: Entry, board: Board, trust: bool = False) -> list[str]:
    """What an entry has that the board's rule does not allow: a line for each problem. No trial is run.

    Space, marks and impossible conditions are compared with what the method says, of the user's own only with `trust`,
    since that runs its code. It cannot see whether a run gives the numbers of the entry: see `rerun`.

    Raises SettingError: no condition can be built, such as without the data.
    """
    if entry.rule != board.rule:
        return [f"rule: {entry.rule} is not that of {board.name}, {board.rule}; enter the method again"]
    absent = [
        code for code in entry.own_code if ".py:" in code and Path(code.rpartition(":")[0]).name not in entry.source
    ]
    if absent:
        return [f"algorithm: the code of {', '.join(absent)} is not in the entry"]
    lines = []
    search = board.search
    if entry.method in board.methods and serialised(board.methods[entry.method]) != serialised(entry.algorithm):
        lines.append(f"method: {entry.method} is a method of the board, with other settings; give yours another name")
    own = [path for path in entry.space if path not in search.space]
    changed = [path for path in entry.space if path in search.space and entry.space[path] != search.space[path]]
    lines += [f"space: {path} is not that of the board, {search.space[path]}" for path in changed]
    if len(own) > 1 or any(not path.startswith("algorithm.") or path.endswith(".name") for path in own):
        lines.append(f"space: {', '.join(own)} is not allowed; at most one option of the method is free")
    with TemporaryDirectory() as folder:
        conditions = conditions_of(entry, board, Path(folder))
        missing = [name for name in conditions if name not in entry.cells and name not in entry.impossible]
        lines += [f"{name}: is missing; every possible pattern must be there" for name in missing]
        for name, cells in entry.cells.items():
            if name not in conditions or len(cells) != len(search.seeds):
                lines.append(f"{name}: is not a pattern of {board.name} with {len(search.seeds)} searches")
                continue
            for number, one in enumerate(cells):
                told = _of_search(board, entry, conditions[name], number, one)
                lines += [f"{name}, search {number}: {line}" for line in told]
        if not lines and (trust or not entry.own_code):
            lines += _of_method(board, entry, conditions)
    return lines


def conditions_of(entry: Entry, board: Board, folder: Path) -> dict[str, dict[str, Any]]:
    """The settings of an entry's method by condition. The user's own files are written into a folder."""
    (folder / "source").mkdir(exist_ok=True)
    for name, text in entry.source.items():
        (folder / "source" / Path(name).name).write_text(text, encoding="utf-8")
    return board.conditions(entry.method, from_copies(entry.algorithm, folder))


def _of_method(board: Board, entry: Entry, conditions: dict[str, Spec]) -> Iterator[str]:
    """The space, marks and impossible conditions that are not those of the method."""
    first = next(iter(conditions.values()))
    allowed = [path for path in board.space(entry.method, first["algorithm"]) if path in board.search.space]
    yield from (f"space: {path} is missing; must be that of the board" for path in allowed if path not in entry.space)
    point = board.draws(entry.space, 0)[0]
    reasons = {name: refused(board, spec, point) for name, spec in conditions.items()}
    possible = [name for name in conditions if not reasons[name]]
    if not possible:
        raise SettingError(
            f"{entry.method}: is possible under no pattern: {', '.join(dict.fromkeys(reasons.values()))}"
        )
    for name in entry.impossible:
        if name not in board.patterns or not reasons.get(name, "left out by the board"):
            yield f"{name}: is declared impossible, but the method can have it; every possible pattern must be there"
    yield from (f"{name}: has results, but {reasons[name]}" for name in entry.cells if reasons[name])
    marks = Marks.of(Trial.read(board.sample(conditions[possible[0]], point, 0)).algorithm.build())
    for mark, due in marks:
        if (stated := getattr(entry.marks, mark)) != due:
            yield f"marks: {mark}: {stated!r} is not what the method has, {due!r}"


def _of_search(board: Board, entry: Entry, spec: dict[str, Any], number: int, one: Searched) -> Iterator[str]:
    """The problems of one search."""
    draws = board.draws(entry.space, number)
    chosen = best([sample.score for sample in one.samples])
    stated: dict[str, Any] = {"seed": one.seed}
    due: dict[str, Any] = {"seed": board.search.seeds[number]}
    stated |= {f"sample {i}": (sample.settings, sample.run) for i, sample in enumerate(one.samples)}
    due |= {f"sample {i}": (point, digest(board.sample(spec, point, number))) for i, point in enumerate(draws)}
    stated["best"], due["best"] = one.best, chosen
    stated |= {f"final run {i}": (run.seed, run.rounds, run.run) for i, run in enumerate(one.finals)}
    if chosen is not None and chosen < len(draws):
        due |= {
            f"final run {i}": (seed, spec["rounds"], digest(board.final(spec, draws[chosen], seed)))
            for i, seed in enumerate(board.finals(number))
        }
    for key in dict.fromkeys([*stated, *due]):
        if stated.get(key) != due.get(key):
            yield f"{key}: {stated.get(key)} is not what the rule gives, {due.get(key)}"
    evaluation = validated(Evaluation, spec.get("evaluation", {}))
    evaluated = [t for t in range(spec["rounds"] + 1) if evaluation.due(t, spec["rounds"])]
    for run in one.finals:
        if run.value is not None and [t for t, _ in run.curve] != evaluated:
            yield f"seed {run.seed}: its curve has other rounds than the evaluations of the board"
        if run.value is not None and abs(run.value - _window(run, board.last)) > 1e-5:
            yield f"seed {run.seed}: {run.value} is not the mean of the last {board.last} rounds of its curve"


def _window(run: Final, last: int) -> float:
    values = [value for t, value in run.curve if t > run.rounds - last]
    return sum(values) / len(values) if values else math.nan


class Rerun(NamedTuple):
    """A run of an entry that was run again: where it is, what the entry says, and what came out.

    `chosen` is the score of the chosen sample, beside another one of its search.
    """

    where: str
    stated: float | None
    measured: float | None
    chosen: float | None = None

    @property
    def equal(self) -> bool:
        """Whether both diverged, agree within `TOLERANCE`, or are both too low to be chosen.

        At a rate that is too large, rounding grows to several points, as between trials side by side and one alone.
        """
        values = [value for value in (self.stated, self.measured) if value is not None]
        if self.chosen is not None and max(values, default=-math.inf) < self.chosen - TOLERANCE:
            return True
        return not values or (len(values) == 2 and abs(values[0] - values[1]) <= TOLERANCE)


def rerun(entry: Entry, board: Board, every: bool, seed: int | None = None) -> Iterator[Rerun]:
    """Run one sample and one final run again, drawn at random, or all of them."""
    rng = np.random.default_rng(seed)
    samples: list[tuple[str, float | None, Spec, str, float | None]] = []
    finals: list[tuple[str, float | None, Spec, str, float | None]] = []
    with TemporaryDirectory() as folder:
        for name, spec in conditions_of(entry, board, Path(folder)).items():
            for number, one in enumerate(entry.cells.get(name, ())):
                where = f"{name}, search {number}"
                for index, sample in enumerate(one.samples):
                    made = board.sample(spec, sample.settings, number)
                    best = None if one.best in (None, index) else one.samples[one.best].score
                    samples.append((f"{where}, sample {index}", sample.score, made, SCORE, best))
                for run in one.finals if one.best is not None else ():
                    made = board.final(spec, one.samples[one.best or 0].settings, run.seed)
                    finals.append((f"{where}, seed {run.seed}", run.value, made, RESULT, None))
        for runs in filter(None, (samples, finals)):
            for where, stated, made, column, chosen in runs if every else [runs[rng.integers(len(runs))]]:
                outcome = simulate(made)
                mean = mean_of(outcome.history, column, made["rounds"], board.last)
                yield Rerun(where, stated, mean if outcome.diverged is None else None, chosen)
