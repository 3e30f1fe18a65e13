"""Optuna's TPE, and Optuna's storage, which optuna-dashboard opens.

Before each batch a study is rebuilt from the samples so far. So the next samples follow from (seed, cell, history),
and a search that was killed goes on as if it had not been.
"""

import logging
import warnings
from collections.abc import Mapping, Sequence
from pathlib import Path
from statistics import fmean
from typing import Any
from zlib import crc32

import optuna
from optuna.distributions import BaseDistribution, CategoricalDistribution, FloatDistribution, IntDistribution
from optuna.study import StudyDirection
from optuna.trial import FrozenTrial, TrialState

from rollcall.benchmark.config.metric import Metric
from rollcall.benchmark.search.cells import Cell
from rollcall.benchmark.search.space import Domain, Range, random_samples
from rollcall.benchmark.search.study import BATCH, Sample

STARTUP = 10
"""The first samples are random."""


class Tpe:
    """Proposes samples by TPE. A `Propose`.

    Args:
        seed: of the search.
        count: samples of each cell.
        metric: that the samples are judged by.
    """

    def __init__(self, seed: int, count: int, metric: Metric) -> None:
        self.seed = seed
        self.count = count
        self.metric = metric
        optuna.logging.set_verbosity(logging.WARNING)

    def __call__(self, cell: Cell, samples: list[Sample]) -> list[dict[str, Any]]:
        begun, left = len(samples), self.count - len(samples)
        first = random_samples(cell.space, self.seed, cell.name, min(STARTUP, self.count))
        if begun < len(first) or len(first) < STARTUP:  # of a small space they are all combinations
            return first[begun:]
        sampler = optuna.samplers.TPESampler(
            seed=(self.seed + crc32(f"{cell.name}/{begun}".encode())) % 2**32, n_startup_trials=0, constant_liar=True
        )
        study = optuna.create_study(direction=DIRECTIONS[self.metric.direction], sampler=sampler)
        study.add_trials([frozen(cell.space, one, LEARNT[one.state(cell.rungs[-1])]) for one in samples])
        asked = [study.ask(distributions(cell.space)) for _ in range(min(BATCH, left))]
        return [settings_of(cell.space, trial.params) for trial in asked]


LEARNT = {"finished": TrialState.COMPLETE, "stopped": TrialState.PRUNED, "failed": TrialState.PRUNED}
"""States of samples as TPE sees them. TPE ignores failed trials; it would propose their values again."""

SHOWN = LEARNT | {"failed": TrialState.FAIL}
"""States of samples as the studies in the file show them."""

DIRECTIONS = {"max": StudyDirection.MAXIMIZE, "min": StudyDirection.MINIMIZE}


def distributions(space: Mapping[str, Domain]) -> dict[str, BaseDistribution]:
    """The domains as Optuna's distributions. Lists and mappings are chosen by their number."""

    def of(domain: Domain) -> BaseDistribution:
        if not isinstance(domain, Range):
            return CategoricalDistribution(range(len(domain.values)))
        if domain.whole:
            return IntDistribution(int(domain.low), int(domain.high))
        return FloatDistribution(domain.low, domain.high, log=domain.log)

    return {path: of(domain) for path, domain in space.items()}


def settings_of(space: Mapping[str, Domain], params: Mapping[str, Any]) -> dict[str, Any]:
    """Settings from the parameters of a trial of Optuna; numbers have four significant digits."""
    return {
        path: domain.rounded(params[path]) if isinstance(domain, Range) else domain.values[params[path]]
        for path, domain in space.items()
    }


def frozen(space: Mapping[str, Domain], sample: Sample, state: TrialState) -> FrozenTrial:
    """A sample as a trial of Optuna.

    TPE ranks pruned trials behind complete ones, by their steps and then by their last value: scores after different
    numbers of rounds are not compared. Without intermediate values, as a failed sample is, they come last.
    """
    params = {
        path: sample.settings[path] if isinstance(domain, Range) else domain.values.index(sample.settings[path])
        for path, domain in space.items()
    }
    return optuna.trial.create_trial(
        params=params,
        distributions=distributions(space),
        value=sample.score if state is TrialState.COMPLETE else None,
        intermediate_values={}
        if sample.error
        else {rounds: fmean(by_seed.values()) for rounds, by_seed in sample.scores.items()},
        state=state,
        user_attrs={"settings": {key: str(value) for key, value in sample.settings.items()}, "error": sample.error},
    )


def export(file: Path, name: str, cells: Sequence[Cell], samples: Mapping[str, list[Sample]], best: str) -> None:
    """Write a study for each cell into a SQLite file of Optuna; studies of before are replaced.

    Args:
        file: of the storage.
        name: of the experiment.
        cells, samples: of the search.
        best: the direction, `max` or `min`.
    """
    file.parent.mkdir(parents=True, exist_ok=True)
    optuna.logging.set_verbosity(logging.WARNING)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        storage = f"sqlite:///{file.resolve()}"
        existing = set(optuna.get_all_study_names(storage)) if file.exists() else set()
        for cell in cells:
            title = f"{name}/{cell.name}"
            if title in existing:
                optuna.delete_study(study_name=title, storage=storage)
            study = optuna.create_study(storage=storage, study_name=title, direction=DIRECTIONS[best])
            study.add_trials([frozen(cell.space, one, SHOWN[one.state(cell.rungs[-1])]) for one in samples[cell.name]])
