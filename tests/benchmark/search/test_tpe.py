"""TPE: what it learns from failed and from stopped samples, and small spaces."""

import pytest

from rollcall.benchmark.config.metric import Metric
from rollcall.benchmark.search.cells import Cell
from rollcall.benchmark.search.propose import STARTUP, tpe
from rollcall.benchmark.search.space import Options, Range
from rollcall.benchmark.search.study import Sample

pytest.importorskip("optuna")


def cell(space, rungs=(9,)) -> Cell:
    return Cell("a", {}, [], space, list(rungs), 0.0, held_out=False)


def search(cell, history, seed=0, count=100) -> list[dict]:
    return tpe(cell, history, seed=seed, count=count, metric=Metric("train/loss", "min"))


def samples(rates, outcome) -> list[Sample]:
    """Samples of these rates; `outcome` gives their scores by rounds, none for a failed one."""
    made = []
    for index, rate in enumerate(rates):
        scores = {rounds: {0: score} for rounds, score in outcome(rate).items()}
        made.append(Sample(index, {"local.lr": rate}, scores=scores, error="" if scores else "diverged"))
    return made


def proposed(history, rungs=(9,)) -> list[float]:
    """The next 4 rates after a history, by each of 10 seeds."""
    drawn = [search(cell({"local.lr": Range(0.0, 1.0)}, rungs), history, seed) for seed in range(10)]
    return [one["local.lr"] for batch in drawn for one in batch]


RATES = [(i + 0.5) / 20 for i in range(20)]


def test_rates_that_diverge_are_not_proposed_again():
    """Above 0.3 all diverge. Without them, TPE would see nothing but equal scores below."""
    rates = proposed(samples(RATES, lambda rate: {9: 1.0} if rate < 0.3 else {}))
    assert sum(rate > 0.4 for rate in rates) < len(rates) / 4


def test_a_stopped_sample_ranks_behind_those_that_reached_the_end():
    """The loss rises with the rounds. Rates below 0.5 were stopped early, at a lower loss than the others have later."""
    early = proposed(samples(RATES, lambda rate: {1: 0.1} if rate < 0.5 else {1: 0.05, 9: 0.5 - 0.3 * rate}), (1, 9))
    assert sum(rate > 0.5 for rate in early) > len(early) * 3 / 4


def test_a_small_space_is_tried_once():
    space = {"local.lr": Options((0.1, 0.2, 0.3)), "local.steps": Options((1, 2))}
    first = search(cell(space), [])
    assert len({tuple(one.values()) for one in first}) == len(first) == 6 < STARTUP
    done = [Sample(i, one, scores={9: {0: 1.0}}) for i, one in enumerate(first)]
    assert search(cell(space), done) == []
    assert search(cell(space), done[:4]) == first[4:]  # a search that was killed


def test_every_kind_of_domain_is_proposed_with_four_digits():
    space = {
        "rate": Range(0.12344, 1.0, log=True),
        "steps": Range(1, 9, whole=True),
        "lists": Options(([1, 2], "word")),
    }
    history = search(cell(space), [])
    asked = search(cell(space), [Sample(i, one, scores={9: {0: 1.0}}) for i, one in enumerate(history)], count=13)
    assert len(asked) == 3
    for one in asked:
        assert 0.12344 <= one["rate"] <= 1.0
        assert float(f"{one['rate']:.4g}") == one["rate"]
        assert isinstance(one["steps"], int)
        assert 1 <= one["steps"] <= 9
        assert one["lists"] in ([1, 2], "word")
