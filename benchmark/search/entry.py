"""An entry of a board: the searches and final runs of one method, as one file.

The file is JSON, compressed, and ends in `.entry`. It has all that the board's rule decides (settings, draws, seeds,
digests of the trials) and all that was measured, so that `problems` can verify the former and `rerun` the latter.
"""

import gzip
import hashlib
import json
import math
from collections.abc import Sequence
from datetime import date
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

from rollcall.benchmark.config.base import Settings, validated
from rollcall.benchmark.config.digest import serialised
from rollcall.benchmark.config.errors import SettingError
from rollcall.benchmark.federation.build import build
from rollcall.benchmark.federation.interruption import Interrupted
from rollcall.benchmark.search.board import Board, best
from rollcall.benchmark.sweep.jobs import Ends, Job
from rollcall.benchmark.sweep.lockstep import run_lockstep
from rollcall.benchmark.sweep.pool import Pool

ENDING = ".entry"

SCORE, RESULT = "validation/accuracy", "test/accuracy"

COSTS = ("gradients", "floats_up", "floats_down", "memory")


class Sample(Settings):
    """A sample of a search: its settings, the digest of its trial, its score (None: it diverged)."""

    settings: dict[str, Any]
    run: str
    score: float | None


class Final(Settings):
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
    curve: tuple[tuple[int, float], ...]
    costs: dict[str, float]
    seconds: float


class Searched(Settings):
    """One search: its seed, its samples, the number of the best one (None: all diverged), and the final runs."""

    seed: int
    samples: tuple[Sample, ...]
    best: int | None
    finals: tuple[Final, ...]


class Entry(Settings):
    """The content of an entry file.

    Attributes:
        board, rule: the board, and the digest of its rule.
        method, algorithm: the label and the settings of the method, as an experiment file has them.
        space: what was searched, as it was written.
        source: the texts of the user's own files, by name.
        origin: date, version, commit and machine.
        cells: the searches of each condition.
        impossible: the reason for each condition that the method cannot have.
    """

    board: str
    rule: str
    method: str
    algorithm: Any
    space: dict[str, Any]
    source: dict[str, str]
    origin: dict[str, Any]
    cells: dict[str, tuple[Searched, ...]]
    impossible: dict[str, str]

    @property
    def content(self) -> str:
        """The digest of all of it."""
        return hashlib.sha256(json.dumps(self.model_dump(mode="json"), sort_keys=True).encode()).hexdigest()[:16]

    def write(self, folder: Path) -> Path:
        """Write `METHOD.entry` into a folder; returns its path."""
        folder.mkdir(parents=True, exist_ok=True)
        text = json.dumps(self.model_dump(mode="json") | {"content": self.content}, separators=(",", ":"))
        path = folder / f"{self.method}{ENDING}"
        path.write_bytes(gzip.compress(text.encode(), mtime=0))
        return path

    @classmethod
    def read(cls, path: Path) -> "Entry":
        """The entry of a file.

        Raises:
            SettingError: it cannot be read, or was changed after it was written.
        """
        try:
            data = json.loads(gzip.decompress(path.read_bytes()))
            content = data.pop("content")
            entry = validated(cls, data)
        except (OSError, EOFError, ValueError, KeyError, AttributeError) as error:
            raise SettingError(f"{path}: cannot be read ({error}); must be as rollcall enter writes it") from None
        if entry.content != content:
            raise SettingError(f"{path}: was changed after rollcall enter wrote it; its digest is not {content}")
        return entry


class Method(NamedTuple):
    """A method to enter: its label, its settings, the space of its search, its own files' texts by name."""

    label: str
    algorithm: Any
    space: dict[str, Any]


class Plan:
    """What is run for a method, and its results."""

    def __init__(self, board: Board, method: Method, store: Path) -> None:
        """Raise `SettingError` if no condition is possible."""
        self.board, self.method, self.store = board, method, store
        known = method.label in board.methods and method.algorithm == board.methods[method.label]
        conditions = board.conditions(method.label, None if known else method.algorithm)
        self.draws = [board.draws(method.space, search) for search in range(len(board.search.seeds))]
        self.impossible = {name: "left out by the board" for name in board.patterns if name not in conditions}
        for name, spec in list(conditions.items()):
            try:
                build(board.sample(spec, self.draws[0][0], 0))
            except SettingError as error:
                self.impossible[name] = str(error)
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
                Job(self.board.sample(self.conditions[name], point, search), folder, self.store)
                for point in self.draws[search]
            ]
            for name, search in self.keys
        }

    @cached_property
    def scores(self) -> dict[tuple[str, int], list[float | None]]:
        """Those of the samples, once they have run."""
        return {key: [mean_of(job, SCORE, self.board.last) for job in own] for key, own in self.samples.items()}

    @cached_property
    def finals(self) -> dict[tuple[str, int], list[Job]]:
        """The final runs of each search; none if all its samples diverged."""
        chosen = {key: best(scores) for key, scores in self.scores.items()}
        return {
            (name, search): [
                Job(
                    self.board.final(self.conditions[name], self.draws[search][index], seed),
                    self.board.name,
                    self.store,
                )
                for seed in self.board.finals(search)
            ]
            for (name, search), index in chosen.items()
            if index is not None
        }

    def searched(self, name: str, search: int) -> Searched:
        """The results of a search."""
        rows = zip(self.draws[search], self.samples[name, search], self.scores[name, search], strict=True)
        return Searched(
            seed=self.board.search.seeds[search],
            samples=tuple(Sample(settings=point, run=job.trial.digest, score=score) for point, job, score in rows),
            best=best(self.scores[name, search]),
            finals=tuple(final_of(job, self.board.last) for job in self.finals.get((name, search), ())),
        )

    @property
    def entry(self) -> Entry:
        """All of it, once it has run."""
        first = self.samples[self.keys[0]][0]
        status = first.folder.status
        searches = range(len(self.draws))
        return Entry(
            board=self.board.name,
            rule=self.board.rule,
            method=self.method.label,
            algorithm=serialised(self.method.algorithm),
            space=self.method.space,
            source={name: source.text for name, source in first.trial.copies.items()},
            origin={"date": date.today().isoformat()}
            | {key: status.get(key) for key in ("commit", "machine", "python", "versions")},
            cells={name: tuple(self.searched(name, search) for search in searches) for name in self.conditions},
            impossible=self.impossible,
        )


def enter(board: Board, methods: Sequence[Method], store: Path, pool: Pool) -> list[Entry]:
    """Run the searches and the final runs of methods; a second call resumes.

    Raises:
        SettingError: a trial failed, or a method is possible under no condition.
        Interrupted: asked to stop; call again to resume.
    """
    plans = [Plan(board, method, store) for method in methods]
    run(pool, [job for plan in plans for jobs in plan.samples.values() for job in jobs])
    run(pool, [job for plan in plans for jobs in plan.finals.values() for job in jobs])
    return [plan.entry for plan in plans]


def run(pool: Pool, jobs: Sequence[Job]) -> None:
    """Run jobs to their end; without Ray, those that share their data together."""
    together = pool.executor == "inline"
    ends = Ends(jobs, run_lockstep([job for job in jobs if not job.ended])) if together else pool(jobs)
    for name, error in ends.failed.items():
        raise SettingError(f"{name}: failed: {error}. Nothing is entered; rerun the command to resume")
    if ends.stopped or ends.elsewhere:
        raise Interrupted("Interrupted. Nothing is entered yet. Rerun the command to resume.")


def mean_of(job: Job, column: str, last: int) -> float | None:
    """The mean of a column over the last rounds of a run; None if it diverged."""
    if not job.finished:
        return None
    history = job.folder.history()
    value = float(history[column][history["round"] > job.trial.rounds - last].mean())
    return round(value, 8) if math.isfinite(value) else None


def final_of(job: Job, last: int) -> Final:
    history = job.folder.history()
    curve = [(int(t), round(float(value), 6)) for t, value in zip(history["round"], history[RESULT], strict=True)]
    return Final(
        seed=job.trial.seed,
        run=job.trial.digest,
        rounds=job.trial.rounds,
        value=mean_of(job, RESULT, last),
        curve=tuple((t, value) for t, value in curve if math.isfinite(value)),
        costs={name: float(history[f"cost/{name}"].iloc[-1]) for name in COSTS},
        seconds=round(float(job.folder.status.get("seconds", 0.0)), 2),
    )
