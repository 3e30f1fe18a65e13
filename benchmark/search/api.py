"""`tune`: a search from an experiment and a space to its answer."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import Any, Literal, get_args

import pandas as pd
from rich.console import Console

from rollcall.benchmark.config.errors import SettingError
from rollcall.benchmark.config.experiment import Experiment
from rollcall.benchmark.config.metric import Direction, Metric, direction_of
from rollcall.benchmark.config.text import counted
from rollcall.benchmark.federation.interruption import Interrupted
from rollcall.benchmark.search.answer import How, Tuned, answer_of, found, seeds_of
from rollcall.benchmark.search.cells import VALIDATION, Cell, Scheduler, cells_of
from rollcall.benchmark.search.propose import proposals
from rollcall.benchmark.search.space import Space
from rollcall.benchmark.search.study import Sample, Search
from rollcall.benchmark.sweep.jobs import Job
from rollcall.benchmark.sweep.pool import Pool, RayOptions

SEEDS = (1000,)
"""The seeds of a search, unless others are given."""

LEARNED = 0.1
"""A sample has learned something if its score is better than that of the untrained model by more than this share."""

UNEQUAL = 1.5
"""A note names two cells where one took more than this multiple of the other's client gradients."""


@dataclass(frozen=True)
class Tuning:
    """The result of `tune`.

    Attributes:
        how: the search.
        tuned: its answers; there is none for a cell whose samples all failed.
        samples: a row for each sample: cell, index, settings, score, rounds, state, gradients, seconds, error.
        file: `tuned.yaml`, or `tuned-VARIANT.yaml`: these answers, and those of earlier searches for other cells.
        notes: for the user, a sentence each.
    """

    how: How
    tuned: Tuned
    samples: pd.DataFrame
    file: Path
    notes: tuple[str, ...]

    def beside(self, name: str) -> Path:
        """The path of another file of the search, such as `samples.json`; of a variant `samples-VARIANT.json`."""
        path = Path(name)
        return self.file.parent / "search" / f"{path.stem}{self.file.stem.removeprefix('tuned')}{path.suffix}"

    @property
    def found(self) -> str:
        """How the settings were found, in a sentence; for a search with an answer."""
        return found(list(self.tuned.best.values()))

    @property
    def settings(self) -> list[str]:
        """The settings that were searched for any cell."""
        return list(dict.fromkeys(path for one in self.tuned.best.values() for path in one.settings))

    @property
    def best(self) -> dict[str, Any]:
        """For each cell, the best settings, their score and so on, as plain data."""
        return {name: one.model_dump(mode="json") for name, one in self.tuned.best.items()}


def tune(
    experiment: Experiment | str | Path,
    space: Space | Mapping[str, Any] | str | Path,
    *,
    samples: int = 30,
    grid: bool = False,
    search: Literal["random", "optuna"] = "random",
    scheduler: Scheduler = "none",
    metric: str = "validation/accuracy",
    mode: Direction | None = None,
    seeds: Sequence[int] = SEEDS,
    rounds: int | None = None,
    per: Sequence[str] = (),
    store: Path | str = "runs",
    executor: Literal["ray", "inline"] | None = None,
    ray: RayOptions | None = None,
    allow_test: bool = False,
    mlflow: bool = True,
    console: Console | None = None,
) -> Tuning:
    """Search hyper-parameters, separately for every cell of an experiment. A second call resumes.

    Args:
        experiment: a name, the path of a YAML file, or an `Experiment`, such as `Experiment.read(NAME).as_(VARIANT)`.
        space: of the settings: a mapping, the path of a YAML file, or a text such as `local.lr=loguniform(1e-3,1)`.
        samples: of each cell, at most.
        grid: try all combinations of the space instead of samples.
        search: `random` samples, or `optuna` for TPE.
        scheduler: which samples are stopped early: see `rollcall.benchmark.search.study`.
        metric: that the samples are judged by.
        mode: which end is better; by default as in the report of the experiment, else `max` for accuracies and `min`
            for losses. Other metrics need it.
        seeds: of the search. A sample is judged by the mean over them. Seeds of the experiment are refused.
        rounds: of a sample; by default those of its cell in the experiment.
        per: the axes that make a cell; by default all axes that are not searched.
        store: folder of the run folders.
        executor: `ray` or `inline`; by default Ray if it is installed.
        ray: how trials run with Ray; by default as `RayOptions()`.
        allow_test: whether the metric may be of the test split.
        mlflow: whether to mirror the trials to MLflow, if it is installed, as the experiment EXPERIMENT/search.
        console: for the progress; None for no output.

    Raises:
        SettingError: a setting is not allowed.
        Interrupted: the search was asked to stop, or another process runs one of its trials; call again to resume.
    """
    pool = Pool.of(executor, ray or RayOptions(), console, mlflow)
    if not isinstance(experiment, Experiment):
        experiment = Experiment.read(str(experiment))
    if samples < 1:
        raise SettingError(f"samples: {samples} is not allowed; must be at least 1")
    if scheduler not in get_args(Scheduler):
        raise SettingError(f"scheduler: {scheduler!r} is not allowed; must be one of {', '.join(get_args(Scheduler))}")
    space, judged = Space.read(space), metric_of(metric, mode, allow_test, experiment.report.metrics)
    cells = cells_of(with_seeds(experiment, seeds), space, per, judged, rounds, scheduler)
    store = Path(store)
    suffix = f"-{experiment.variant}" if experiment.variant else ""  # no variant overwrites the files of another
    file = store / experiment.name / f"tuned{suffix}.yaml"
    if file.is_file():
        Tuned.read(file)  # what cannot be read is refused before the search
    strategy = "grid" if grid else search
    plan = Search(f"{experiment.home}/search", store, judged, scheduler)

    def execute(jobs: Sequence[Job]) -> None:
        ends = pool(jobs)
        if ends.stopped:
            reason = "The running trials have saved their last round. Rerun the command to resume."
        elif ends.elsewhere:
            reason = f"Another process runs {ends.elsewhere} of the trials. Rerun the command when it has ended."
        else:
            return
        raise Interrupted(f"Interrupted. {reason}")

    with pool:
        by_cell = plan.run(cells, proposals(strategy, seeds[0], samples, judged), execute)
    how = How(
        date=date.today().isoformat(),
        metric=judged.name,
        mode=judged.direction,
        search=strategy,
        scheduler=scheduler,
        seeds=tuple(seeds),
        space=space.text,
    )
    answers = {cell.name: answer_of(cell, by_cell[cell.name], judged, how) for cell in cells}
    best = {name: one for name, one in answers.items() if one is not None}
    tuned = Tuned(experiment=experiment.home, variant=experiment.variant, best=best)
    rows = [
        {
            "cell": cell.name,
            "index": sample.index,
            **sample.settings,
            "score": sample.score,
            "rounds": sample.rounds,
            "state": sample.state(cell.rungs[-1]),
            "gradients": sample.gradients,
            "seconds": sample.seconds,
            "error": sample.error,
        }
        for cell in cells
        for sample in by_cell[cell.name]
    ]
    tuning = Tuning(how, tuned, pd.DataFrame(rows), file, notes(cells, by_cell, tuned, space, judged))
    if best:
        (tuned.after(Tuned.read(file)) if file.is_file() else tuned).write(file)
    table = tuning.beside("samples.json")
    table.parent.mkdir(parents=True, exist_ok=True)
    tuning.samples.to_json(table, orient="records", indent=1)
    return tuning


def metric_of(name: str, mode: Direction | None, allow_test: bool, declared: Sequence[Metric]) -> Metric:
    """The metric of a search, `SPLIT/METRIC`, with its better end, which may follow from the report's metrics.

    Raises:
        SettingError: it is of the test split, and that is not explicitly allowed; or its better end is not known.
    """
    metric = Metric(name)
    if metric.split == "test" and not allow_test:
        raise SettingError(
            f"metric: {name!r} is not allowed; settings that are chosen on test data make test results too good. "
            "Use validation/accuracy, or add --allow-test"
        )
    if not metric.split or metric.threshold is not None:
        raise SettingError(f"metric: {name!r} is not allowed; must be SPLIT/METRIC, such as validation/accuracy")
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
            f"the final table. Use others, such as {SEEDS[0]}"
        )
    return experiment.varied({"seed": list(seeds)})


def notes(
    cells: Sequence[Cell], by_cell: Mapping[str, Sequence[Sample]], tuned: Tuned, space: Space, metric: Metric
) -> tuple[str, ...]:
    """The warnings and remarks on a search for the user."""
    lines = []
    if metric.split == "test":
        lines.append("Warning: the settings were chosen on test data. Test results with them are too good.")
    if any(cell.held_out for cell in cells):
        lines.append(f"The search held out {VALIDATION:.0%} of the training samples (task.validation: {VALIDATION}).")
    halved = [cell for cell in cells if len(cell.rungs) > 1]
    firsts = [(cell.rungs[0], one) for cell in halved for one in by_cell[cell.name] if one.scores]
    chance = [
        one
        for first, one in firsts
        if metric.penalty(one.score_at(first)) > metric.penalty(one.start) - LEARNED * abs(one.start)
    ]
    if 2 * len(chance) > len(firsts):
        rung = counted(max(first for first, _ in firsts), "round")
        lines.append(
            f"Warning: after the first rung, {rung}, {len(chance)} of {len(firsts)} samples are less than "
            f"{LEARNED:.0%} better than the untrained model: samples are stopped by chance. Use more rounds (--rounds)."
        )
    for cell in cells:
        left_out = [path for path in space.common if path not in cell.space]
        if left_out:
            lines.append(f"{cell.name}: has no {', '.join(left_out)}; left out of its space.")
    for name, one in tuned.best.items():
        for path in one.at_edge:
            value = one.settings[path]
            lines.append(f"Warning: {name}: the best {path}, {value}, is at the edge of its space. Widen the space.")
        if one.failed:
            lines.append(f"{name}: {one.failed} of {one.samples} samples failed or diverged.")
    costs = {name: one.gradients for name, one in tuned.best.items()}
    if costs and max(costs.values()) > UNEQUAL * min(costs.values()):
        low, high = min(costs, key=costs.__getitem__), max(costs, key=costs.__getitem__)
        lines.append(
            f"The cells took unequal numbers of client gradients: {low} {costs[low]:.2g}, {high} {costs[high]:.2g}."
        )
    for cell in cells:
        if cell.name not in tuned.best:
            error = by_cell[cell.name][0].error
            lines.append(f"Warning: {cell.name}: all samples failed; there is no answer. The first: {error}")
    return tuple(lines)
