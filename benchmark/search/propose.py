"""Strategies that propose the samples of a search: random samples, a grid, or Optuna's TPE."""

from functools import partial
from importlib.util import find_spec
from typing import Any
from zlib import crc32

from rollcall.benchmark.config.errors import SettingError
from rollcall.benchmark.config.metric import Metric
from rollcall.benchmark.search.cells import Cell
from rollcall.benchmark.search.space import Range, grid, random_samples
from rollcall.benchmark.search.study import Propose, Sample

STARTUP, BATCH = 10, 4
"""With TPE, the number of first samples, which are random, and of those that are proposed at the same time later."""


def proposals(search: str, seed: int, count: int, metric: Metric) -> Propose:
    """The strategy `random`, `grid` or `optuna`, `count` samples of each cell; a grid has its own number."""
    if search == "optuna":
        if not find_spec("optuna"):
            raise SettingError("--search optuna needs Optuna: pip install '.[tune]'")
        return partial(tpe, seed=seed, count=count, metric=metric)
    if search == "random":
        return lambda cell, samples: random_samples(cell.space, seed, cell.name, count, cell.shared)[len(samples) :]
    if search == "grid":
        return lambda cell, samples: grid(cell.space)[len(samples) :]
    raise SettingError(f"search: {search!r} is not allowed; must be random or optuna")


def tpe(cell: Cell, samples: list[Sample], *, seed: int, count: int, metric: Metric) -> list[dict[str, Any]]:
    """The next samples of a cell by Optuna's TPE.

    The study is rebuilt from the samples so far. So the next samples follow from (seed, cell, history), and a search
    that was killed goes on as if it had not been. TPE ranks pruned trials behind complete ones, by their steps and then
    by their last value: scores after different numbers of rounds are not compared. A failed sample is a pruned trial
    without values, which comes last; TPE ignores failed trials and would propose their values again.
    """
    import optuna
    from optuna.distributions import BaseDistribution, CategoricalDistribution, FloatDistribution, IntDistribution
    from optuna.trial import TrialState, create_trial

    optuna.logging.set_verbosity(optuna.logging.WARNING)
    begun = len(samples)
    first = random_samples(cell.space, seed, cell.name, min(STARTUP, count), cell.shared)
    if begun < len(first) or len(first) < STARTUP:  # of a small space they are all combinations
        return first[begun:]
    distributions: dict[str, BaseDistribution] = {}
    for path, domain in cell.space.items():
        if not isinstance(domain, Range):  # lists and mappings are chosen by their number
            distributions[path] = CategoricalDistribution(range(len(domain.values)))
        elif domain.whole:
            distributions[path] = IntDistribution(int(domain.low), int(domain.high))
        else:
            distributions[path] = FloatDistribution(domain.low, domain.high, log=domain.log)
    key = (seed + crc32(f"{cell.name}/{begun}".encode())) % 2**32
    sampler = optuna.samplers.TPESampler(seed=key, n_startup_trials=0, constant_liar=True)
    study = optuna.create_study(direction="maximize" if metric.direction == "max" else "minimize", sampler=sampler)
    for one in samples:
        finished = one.state(cell.rungs[-1]) == "finished"
        study.add_trial(
            create_trial(
                params={
                    path: value if isinstance(domain := cell.space[path], Range) else domain.values.index(value)
                    for path, value in one.settings.items()
                },
                distributions=distributions,
                value=one.score if finished else None,
                intermediate_values={} if one.error else {rounds: one.score_at(rounds) for rounds in one.scores},
                state=TrialState.COMPLETE if finished else TrialState.PRUNED,
            )
        )
    asked = [study.ask(distributions).params for _ in range(min(BATCH, count - begun))]
    return [
        {
            path: domain.rounded(params[path]) if isinstance(domain, Range) else domain.values[params[path]]
            for path, domain in cell.space.items()
        }
        for params in asked
    ]
