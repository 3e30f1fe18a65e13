"""The samples of a search as trials of Tune: one sample with all its seeds is one trial."""

from collections.abc import Mapping, Sequence
from copy import deepcopy
from pathlib import Path
from statistics import fmean
from typing import Any

from rollcall.benchmark.sweep.ray_executor import Config, Plan, TuneTrial, run_plan

# isort: split
from ray.tune.schedulers import ASHAScheduler, HyperBandScheduler, MedianStoppingRule, PopulationBasedTraining

from rollcall.benchmark.config.digest import run_name
from rollcall.benchmark.config.dotted import put_all
from rollcall.benchmark.config.errors import SettingError
from rollcall.benchmark.config.experiment import Search
from rollcall.benchmark.config.metric import Metric
from rollcall.benchmark.config.source import decoded
from rollcall.benchmark.config.trial import Trial
from rollcall.benchmark.federation.run_folder import RunFolder
from rollcall.benchmark.process import Interrupted
from rollcall.benchmark.search.cells import SearchCell
from rollcall.benchmark.search.tune import PARTS, score_of
from rollcall.benchmark.sweep.run import Execution

WORST = 1e9
"""The score of a sample that failed, at the worse end. Tune's objects take no infinite numbers."""

Points = dict[str, list[dict[str, Any]]]
"""The settings of the samples of each cell."""


class SamplePlan(Plan):
    """The samples of cells. The configuration of a trial is its cell, its number in it, and its settings.

    Without drawn samples, the settings are those that a searcher proposes.
    """

    evaluations = False

    def __init__(self, cells: Sequence[SearchCell], metric: Metric, drawn: Points) -> None:
        self.cells = {cell.name: cell for cell in cells}
        self.metric = metric
        self.drawn = drawn
        trials = {cell.name: [Trial.read(spec) for spec in cell.specs] for cell in cells}
        self.plain = {name: [trial.portable for trial in own] for name, own in trials.items()}
        self.sources = {source.file: source.text for own in trials.values() for one in own for source in one.sources}
        paths = dict.fromkeys(path for cell in cells for path in cell.space)
        self.points: list[dict[str, Any]] = [
            {"cell": cell.name, "sample": number}
            | {path: one if isinstance(one := point.get(path), int | float | None) else str(one) for path in paths}
            for cell in cells
            for number, point in enumerate(drawn[cell.name])
        ]

    def settings(self, config: Config) -> dict[str, Any]:
        """The settings of a sample."""
        cell = self.cells[config["cell"]]
        if "sample" in config:
            return self.drawn[cell.name][config["sample"]]
        return {path: domain.read(config[path]) for path, domain in cell.space.items()}

    def work(self, config: Config) -> TuneTrial:
        cell, settings = self.cells[config["cell"]], self.settings(config)
        specs = [put_all(spec, settings) for spec in self.plain[cell.name]]
        folders = list(dict.fromkeys(map(run_name, specs)))  # another machine may not have the files of the settings
        return TuneTrial(folders, specs, cell.milestones)

    def score(self, config: Config, folders: Sequence[RunFolder], rounds: int) -> Mapping[str, Any]:
        score = -WORST if self.metric.direction == "max" else WORST
        if folders and all(folder.finished >= rounds for folder in folders):
            cell = self.cells[config["cell"]]
            score = fmean(score_of(cell, self.metric, folder.history(), rounds) for folder in folders)
        return {"round": rounds, self.metric.name: score}


def search_with_ray(
    cells: Sequence[SearchCell],
    drawn: Points,
    metric: Metric,
    block: Search,
    scheduler: Any,
    searcher: Any,
    home: str,
    execution: Execution,
) -> tuple[Points, tuple[Any, ...], dict[str, str]]:
    """Run the samples of all cells. Returns them, Tune's results, and the errors of those that failed, by first run.

    Drawn samples that no scheduler stops run in one experiment of Tune. Otherwise each cell has one, after the other.

    Raises Interrupted: the search was asked to stop.
    """
    if isinstance(scheduler, PopulationBasedTraining):
        raise SettingError(
            f"scheduler: {type(scheduler).__name__} is not allowed; it changes settings within a run, and a run folder "
            "has one digest. Must be a scheduler that stops samples"
        )
    grids: list[Any] = []
    failed: dict[str, str] = {}
    runs = [trial.digest for cell in cells for point in drawn[cell.name] for trial in cell.trials(point)]
    shared = len(set(runs)) < len(runs)  # runs of two cells, which two trials cannot run at once
    together = not searcher and scheduler == "none" and not shared
    sources = {} if together else SamplePlan(cells, metric, drawn).sources  # a later cell would have other code
    for group in [cells] if together else [[cell] for cell in cells]:
        plan, cell = SamplePlan(group, metric, drawn), group[0]
        space: dict[str, Any] | None = None
        tuning: dict[str, Any] = {"metric": metric.name, "mode": metric.direction}
        if not together:
            tuning["scheduler"] = _scheduler(scheduler, cell.milestones[-1])
        if searcher and cell.space:
            space = {"cell": cell.name} | {path: domain.tune() for path, domain in cell.space.items()}
            tuning |= {"search_alg": _searcher(searcher, block.seeds[0]), "num_samples": block.samples}
        grid, errors, stopped = run_plan(plan, execution.store / home, execution, space, **tuning)
        if grid is None or stopped:
            raise Interrupted(execution.interrupted)
        # Code of a notebook is in no file.
        if changed := [file for file, text in sources.items() if Path(file).is_file() and decoded(Path(file)) != text]:
            raise SettingError(f"{changed[0]} was changed during the search; undo the change, and rerun the command")
        grids.append(grid)
        failed |= errors
        if searcher and cell.space:
            proposed = [plan.settings(grid[number].config or {}) for number in range(len(grid))]
            drawn = drawn | {cell.name: list({str(point): point for point in proposed}.values())}
    return drawn, tuple(grids), failed


def _scheduler(scheduler: Any, rounds: int) -> Any:
    """A scheduler of Tune for samples of so many rounds; a copy of one that the user made."""
    if scheduler == "asha":
        first = max(1, rounds // PARTS)
        return ASHAScheduler(time_attr="round", max_t=rounds, grace_period=first, reduction_factor=3)
    if scheduler == "median":
        return MedianStoppingRule(time_attr="round", grace_period=max(1, rounds // PARTS))
    if scheduler == "hyperband":
        return HyperBandScheduler(time_attr="round", max_t=rounds)
    return None if scheduler == "none" else deepcopy(scheduler)


def _searcher(searcher: Any, seed: int) -> Any:
    """A searcher of Tune; a copy of one that the user made."""
    if searcher != "optuna":
        return deepcopy(searcher)
    import optuna
    from ray.tune.search.optuna import OptunaSearch

    optuna.logging.set_verbosity(optuna.logging.WARNING)
    return OptunaSearch(seed=seed)
