"""`tune`: a search from an experiment and a space to its answer.

Tune proposes, runs and stops samples. Here is what it does not know: the cells of an experiment, which are searched
alike, held-out data, the answer, and what the user should know about it.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from importlib.util import find_spec
from pathlib import Path
from statistics import fmean
from typing import TYPE_CHECKING, Any, Literal

import pandas as pd
from filelock import FileLock

from rollcall.benchmark.config.base import validated
from rollcall.benchmark.config.errors import SettingError, check_one_of
from rollcall.benchmark.config.experiment import Experiment, Scheduler, Search
from rollcall.benchmark.config.metric import Direction, Metric, direction_of
from rollcall.benchmark.config.text import counted
from rollcall.benchmark.config.trial import Trial
from rollcall.benchmark.process import Interrupted
from rollcall.benchmark.search.answer import Best, How, Tuned, seeds_of
from rollcall.benchmark.search.cells import VALIDATION, SearchCell, cells_of
from rollcall.benchmark.search.space import draw_points, grid, read_space
from rollcall.benchmark.sweep.jobs import Job, check, check_metrics, refuse_other_data
from rollcall.benchmark.sweep.run import Execution, mirrored, run_jobs

if TYPE_CHECKING:
    from ray import tune as ray_tune

PARTS = 9
"""A sample that may be stopped reports its score so often. `asha` halves after a ninth and a third of the rounds."""

LEARNED = 0.1
"""A sample has learned something if its score is better than that of the untrained model by more than this share."""


TRIED = 30
"""Number of points that are tried before a searcher starts; at least one must be allowed."""

UNEQUAL = 1.5
"""A note names two cells where one took more than this multiple of the other's client gradients."""


@dataclass(frozen=True)
class Tuning:
    """The result of `tune`.

    Attributes:
        tuned: the answers; there is none for a cell whose samples all failed.
        samples: a row for each sample: cell, index, settings, score and its spread, rounds, state, gradients, seconds,
            error, and the scores of the untrained model (`start`) and after the first comparison (`first`).
        grids: Tune's `ResultGrid`s; none of a search in this process.
        file: `tuned.yaml`, or `tuned-VARIANT.yaml`: these answers, and those of earlier searches for other cells.
        notes: for the user, a sentence each.
    """

    tuned: Tuned
    samples: pd.DataFrame
    grids: tuple[Any, ...]
    file: Path
    notes: tuple[str, ...]

    def beside(self, name: str) -> Path:
        """The path of another file of the search, such as `samples.json`; of a variant `samples-VARIANT.json`."""
        path = Path(name)
        return self.file.parent / "search" / f"{path.stem}{self.file.stem.removeprefix('tuned')}{path.suffix}"

    @property
    def best(self) -> dict[str, Any]:
        """For each cell, the best settings, their score and so on, as plain data."""
        return {name: one.model_dump(mode="json") for name, one in self.tuned.best.items()}


def tune(
    experiment: Experiment | str | Path,
    space: Mapping[str, Any] | str | Path | None = None,
    *,
    samples: int | Literal["grid"] | None = None,
    search_alg: Any = None,
    scheduler: "Scheduler | ray_tune.schedulers.TrialScheduler | None" = None,
    metric: str | None = None,
    mode: Direction | None = None,
    seeds: Sequence[int] | None = None,
    rounds: int | None = None,
    per: Sequence[str] | None = None,
    execution: Execution | None = None,
    **how: Any,
) -> Tuning:
    """Search hyper-parameters, separately for every cell of an experiment. A second call resumes.

    With Ray, a sample with all its seeds is a trial of Tune. Without a searcher and a scheduler, it also runs in this
    process. What is not given is as in the `search` block of the experiment's file.

    Args:
        experiment: a name, the path of a YAML file, or an `Experiment`, such as `Experiment.read(NAME).as_(VARIANT)`.
        space: what to search; see `read_space`.
        samples: of each cell, at most; `grid`: all combinations.
        search_alg: by default random samples; `optuna` for Tune's `OptunaSearch`, or a searcher of Tune without metric
            and mode. Each cell has a copy.
        scheduler: `none`, `asha`, `median`, `hyperband`, or a scheduler of Tune without metric and mode. Each cell has
            a copy. Samples that it may stop report nine times, with `round`.
        metric: that the samples are judged by.
        mode: which end is better; by default as in the report of the experiment, else `max` for accuracies and `min`
            for losses. Other metrics need it.
        seeds: of the search. A sample is judged by the mean over them. Seeds of the experiment are refused.
        rounds: of a sample; by default those of its cell in the experiment.
        per: the axes that make a cell; by default all axes that are not searched.
        execution, how: how trials run, or the arguments of `Execution`. MLflow has the runs as EXPERIMENT/search.

    Raises:
        SettingError: a setting is not allowed.
        Interrupted: the search was asked to stop, or another process runs one of its trials; call again to resume.
    """
    if not isinstance(experiment, Experiment):
        experiment = Experiment.read(str(experiment))
    stops: Any = None if scheduler is None or isinstance(scheduler, str) else scheduler
    given: dict[str, Any] = {"space": space, "samples": samples, "rounds": rounds, "seeds": seeds, "per": per}
    given |= {"metric": metric, "scheduler": None if stops else scheduler}
    written = experiment.search.model_dump() if experiment.search else {}
    written |= {key: value for key, value in given.items() if value is not None}
    if not written.get("space"):
        raise SettingError("space: is missing; must be given, or be in `search` of the experiment's file")
    block = validated(Search, written | {"space": read_space(written["space"])})
    stops = stops or block.scheduler
    if search_alg == "optuna" and not find_spec("optuna"):
        raise SettingError("--search optuna needs Optuna: pip install '.[ray,tune]'")
    if search_alg is not None and block.samples == "grid":
        raise SettingError("--search optuna is not allowed with --grid; must be left out")
    judged = metric_of(block.metric.name, mode, experiment.report.metrics)
    if execution is not None and how:
        raise SettingError(f"{next(iter(how))}: is not allowed beside execution; must be left out")
    execution = execution or Execution(**how)
    if search_alg or stops != "none":
        execution.need_ray("a searcher" if search_alg else "a scheduler")
    parts = PARTS if stops != "none" or execution.callbacks or execution.stop else 1
    cells = cells_of(with_seeds(experiment, block.seeds), block.space, block.per, judged, block.rounds, parts)
    suffix = f"-{experiment.variant}" if experiment.variant else ""  # no variant overwrites the files of another
    file = execution.store / experiment.name / f"tuned{suffix}.yaml"
    _earlier(file)  # what cannot be read is refused before the search
    home = f"{experiment.home}/search"

    made: dict[tuple[str, str], tuple[list[Job], str]] = {}

    def sample(cell: SearchCell, settings: Mapping[str, Any]) -> tuple[list[Job], str]:
        """Its runs; of settings that are not allowed together none, and the error.

        The same before and after the search, although the user's own files may change meanwhile.
        """
        key = cell.name, str(dict(settings))
        if key not in made:
            try:
                made[key] = [Job(trial, home, execution.store) for trial in cell.trials(settings)], ""
            except SettingError as error:
                made[key] = [], str(error)
        return made[key]

    def row_of(cell: SearchCell, settings: Mapping[str, Any]) -> dict[str, Any]:
        runs, refused = sample(cell, settings)
        error = next((failed[job.trial.name] for job in runs if job.trial.name in failed), refused)
        return measured(cell, judged, runs, error)

    def example_of(cell: SearchCell) -> list[Job]:
        """The runs of a sample that is allowed; refused if none is."""
        points = drawn[cell.name] or draw_points(cell.space, TRIED, block.seeds[0])
        for point in points:
            if runs := sample(cell, point)[0]:
                return runs
        raise SettingError(sample(cell, points[0])[1])

    def jobs_of_all() -> list[Job]:
        return [job for cell in cells for point in drawn[cell.name] for job in sample(cell, point)[0]]

    drawn = {cell.name: [] if search_alg and cell.space else _points(cell, block) for cell in cells}
    examples = [job for cell in cells for job in example_of(cell)]
    refuse_other_data(jobs_of_all())
    check(jobs_of_all() or examples, execution)
    by_task = {job.trial.task.label: job.trial for job in examples if isinstance(job.trial, Trial)}
    check_metrics({"metric": [judged]}, list(by_task.values()))
    grids: tuple[Any, ...] = ()
    if execution.executor == "inline":
        longest = {job.trial.digest: job for job in sorted(jobs_of_all(), key=lambda job: job.trial.rounds)}
        ends = run_jobs(list(longest.values()), execution)  # cells may share runs
        if ends.stopped:
            raise Interrupted(execution.interrupted)
        failed = ends.failed
    else:
        from rollcall.benchmark.search.samples import search_with_ray

        with mirrored(home, execution):
            allowed = {cell.name: [point for point in drawn[cell.name] if sample(cell, point)[0]] for cell in cells}
            ran, grids, failed = search_with_ray(cells, allowed, judged, block, stops, search_alg, home, execution)
        drawn = {name: points or ran[name] for name, points in drawn.items()}
    if count := sum(job.folder.in_use for job in jobs_of_all()):
        raise Interrupted(f"Another process runs {count} of the trials. Rerun the command when it has ended.")
    refuse_other_data(jobs_of_all())  # a searcher chose them meanwhile
    rows = [
        {"cell": cell.name, "index": number, **point} | row_of(cell, point)
        for cell in cells
        for number, point in enumerate(drawn[cell.name])
    ]
    names = {"search": "grid" if block.samples == "grid" else search_alg or "random", "scheduler": stops}
    names = {key: one if isinstance(one, str) else type(one).__name__ for key, one in names.items()}
    record = How(**block.model_dump() | names, date=date.today().isoformat(), mode=judged.direction)
    frame = pd.DataFrame(rows)
    answers = {cell.name: answer_of(cell, [row for row in rows if row["cell"] == cell.name], record) for cell in cells}
    best = {name: one for name, one in answers.items() if one is not None}
    tuned = Tuned(experiment=experiment.home, variant=experiment.variant, best=best)
    tuning = Tuning(tuned, frame, grids, file, notes(cells, frame, tuned, judged))
    if best:
        with FileLock(file.with_suffix(".lock")):  # another search may have written its answers meanwhile
            earlier = _earlier(file)
            (tuned.after(earlier) if earlier else tuned).write(file)
    table = tuning.beside("samples.json")
    table.parent.mkdir(parents=True, exist_ok=True)
    frame.to_json(table, orient="records", indent=1)
    return tuning


def _earlier(file: Path) -> Tuned | None:
    """The answers of earlier searches, if there are any."""
    try:
        return Tuned.read(file) if file.is_file() else None
    except SettingError as error:
        raise SettingError(f"{error}. Delete it and rerun the command: all samples are kept") from None


def _points(cell: SearchCell, block: Search) -> list[dict[str, Any]]:
    """The samples of a cell: those of a grid, or random ones."""
    return grid(cell.space) if block.samples == "grid" else draw_points(cell.space, block.samples, block.seeds[0])


def measured(cell: SearchCell, metric: Metric, jobs: Sequence[Job], error: str = "") -> dict[str, Any]:
    """The row of a sample, without its settings, from the run folders of its jobs; `error` if it failed now.

    A sample without jobs is one that was refused. A folder may have more rounds than the search: a failure in them does
    not count. The score is of the last milestone that all its runs have finished: the mean over the evaluations in the
    last share of the rounds, then over the points of the cell, then over seeds.
    """
    each = [max((one for one in cell.milestones if one <= job.folder.finished), default=0) for job in jobs]
    done = min(each, default=0)
    statuses, histories = [job.folder.status for job in jobs], [job.history for job in jobs]
    left = [status for job, status in zip(jobs, statuses, strict=True) if not job.finished]
    errors = [str(one.get("error") or one["reason"]) for one in left if one.get("state") in ("failed", "diverged")]
    errors += [error] if error and (left or not jobs) else []
    begun = [history for history in histories if metric.column in history]
    if not begun and done:
        errors.append(f"no trial records {metric.column}")
    by_seed: dict[int, list[float]] = {}
    for job, history in zip(jobs, histories, strict=True):
        if done and not errors:
            by_seed.setdefault(job.trial.seed, []).append(score_of(cell, metric, history, done))
    scores = pd.Series([fmean(values) for values in by_seed.values()], dtype=float)
    return {
        "score": scores.mean(),
        "spread": scores.std(),
        "rounds": done,
        "state": "failed" if errors else "finished" if done == cell.milestones[-1] else "stopped",
        "gradients": sum(float(history["cost/gradients"].iloc[-1]) for history in begun),
        "seconds": sum(status.get("seconds", 0.0) for status in statuses),
        "error": errors[0] if errors else "",
        "start": fmean([float(history[metric.column].iloc[0]) for history in begun] or [math.nan]),
        "first": fmean([score_of(cell, metric, history, cell.milestones[0]) for history in begun] or [math.nan]),
    }


def score_of(cell: SearchCell, metric: Metric, history: pd.DataFrame, rounds: int) -> float:
    """The score of a run after so many rounds: see `measured`."""
    first = min(rounds - cell.share * rounds, rounds - 1)
    window = history[(history["round"] > first) & (history["round"] <= rounds)]
    return float(window[metric.column].mean(skipna=False)) if metric.column in window else math.nan


def answer_of(cell: SearchCell, rows: Sequence[Mapping[str, Any]], how: How) -> Best | None:
    """The best of the samples that ran the most rounds; None if all failed."""
    working = [row for row in rows if not math.isnan(row["score"])]
    top = max((row["rounds"] for row in working), default=0)
    sign = -1 if how.mode == "max" else 1
    best = min((row for row in working if row["rounds"] == top), key=lambda row: sign * row["score"], default=None)
    if best is None:
        return None
    settings = {path: best[path] for path in cell.space}
    return Best(
        when=cell.labels,
        settings=settings,
        score=best["score"],
        spread=None if math.isnan(best["spread"]) else best["spread"],
        rounds=top,
        samples=len(rows),
        failed=sum(row["state"] == "failed" for row in rows),
        gradients=sum(row["gradients"] for row in rows),
        at_edge=tuple(path for path, value in settings.items() if cell.space[path].edge(value)),
        points=tuple({path: row[path] for path in cell.space} for row in rows),
        how=how,
    )


def metric_of(name: str, mode: Direction | None, declared: Sequence[Metric]) -> Metric:
    """The metric of a search, `SPLIT/METRIC`, with its better end, which may follow from the report's metrics.

    Raises SettingError: it is of the test split; or its better end is not known.
    """
    metric = Metric(name)
    if metric.split == "test":
        raise SettingError(
            f"metric: {name!r} is not allowed; settings that are chosen on test data make test results too good. "
            "Must be of another split, such as validation/accuracy"
        )
    if not metric.split or metric.threshold is not None:
        raise SettingError(f"metric: {name!r} is not allowed; must be SPLIT/METRIC, such as validation/accuracy")
    if mode is not None:
        check_one_of("mode", mode, ("max", "min"))
    direction = mode or direction_of(name, declared)
    if direction is None:
        raise SettingError(f"mode: is missing; which end of {name} is better? Add --mode max or --mode min")
    if direction == "zero":
        raise SettingError(f"metric: {name!r} is not allowed; must be one whose highest or lowest value is best")
    return Metric(name, direction)


def with_seeds(experiment: Experiment, seeds: Sequence[int]) -> Experiment:
    """The experiment with the seeds of a search. Its own are refused, unless it reports validation data only."""
    final = any(not name.startswith("validation/") for name in experiment.metrics)
    taken = [seed for seed in seeds if final and seed in seeds_of(experiment)]
    if taken or not seeds:
        raise SettingError(
            f"seeds: {taken[0] if taken else 'none'} is not allowed in a search; the seeds of the experiment are for "
            "the final table. Use others, such as 1000"
        )
    return experiment.varied({"seed": list(seeds)})


def notes(cells: Sequence[SearchCell], samples: pd.DataFrame, tuned: Tuned, metric: Metric) -> tuple[str, ...]:
    """The warnings and remarks on a search for the user."""
    lines = []
    if any(cell.held_out for cell in cells):
        lines.append(f"The search held out {VALIDATION:.0%} of the training samples (task.validation: {VALIDATION}).")
    begun = samples[samples["first"].notna()]
    gain = (begun["first"] - begun["start"]) * (1 if metric.direction == "max" else -1)
    chance = int((gain < LEARNED * begun["start"].abs()).sum())
    if (samples["state"] == "stopped").any() and 2 * chance > len(begun):
        rung = counted(max(cell.milestones[0] for cell in cells), "round")
        lines.append(
            f"Warning: after the first comparison, {rung}, {chance} of {len(begun)} samples are less than "
            f"{LEARNED:.0%} better than the untrained model: samples are stopped by chance. Use more rounds (--rounds)."
        )
    common = dict.fromkeys(key for one in tuned.best.values() for key in one.how.space if ":" not in key)
    for cell in cells:
        if left_out := [path for path in common if path not in cell.space]:
            lines.append(f"{cell.name}: has no {', '.join(left_out)}; left out of its space.")
        if (one := tuned.best.get(cell.name)) is None:
            error = samples[samples["cell"] == cell.name]["error"].iloc[0]
            lines.append(f"Warning: {cell.name}: all samples failed; there is no answer. The first: {error}")
            continue
        for path in one.at_edge:
            best = f"the best {path}, {one.settings[path]},"
            lines.append(f"Warning: {cell.name}: {best} is at the edge of its space. Widen the space.")
        if one.failed:
            lines.append(f"{cell.name}: {one.failed} of {one.samples} samples failed or diverged.")
    costs = {name: one.gradients for name, one in tuned.best.items()}
    if costs and max(costs.values()) > UNEQUAL * min(costs.values()):
        low, high = min(costs, key=costs.__getitem__), max(costs, key=costs.__getitem__)
        lines.append(
            f"The cells took unequal numbers of client gradients: {low} {costs[low]:.2g}, {high} {costs[high]:.2g}."
        )
    return tuple(lines)
