"""The budget of a search: how it is written, and when it ends the search."""

import pytest

from rollcall.benchmark.config.errors import SettingError
from rollcall.benchmark.search.study import BATCH, Budget, Sample


def samples(*costs: float) -> list[Sample]:
    return [Sample("a", i, {}, i // BATCH, gradients=cost, trial_seconds=[cost]) for i, cost in enumerate(costs)]


def sizes(budget: Budget, **cells: list[Sample]) -> dict[str, int]:
    proposals = {name: [{}] * 10 for name in cells}
    return {name: len(batch) for name, batch in budget.cut(proposals, cells).items()}


def test_a_time_or_client_gradients():
    assert Budget.read("2h", 4) == Budget(7200, "seconds", 4)
    assert Budget.read("5e6gradients", 4) == Budget.read("5000000 gradients", 4) == Budget(5e6, "gradients", 1)
    for text in ("2", "0gradients", "e.egradients", "-1h"):
        with pytest.raises(SettingError, match=r"^budget: .* is not allowed; must be .*, or client gradients, such as"):
            Budget.read(text, 1)


def test_a_time_is_shared_by_all_cells():
    assert BATCH == 4
    assert sizes(Budget(1, "seconds"), a=[], b=[]) == {"a": 4, "b": 4}  # the first batch always runs
    cells = {"a": samples(1, 1, 1, 1), "b": samples(2, 2, 2, 2)}
    # 12 s are spent; as many more would end at 24 s.
    assert sizes(Budget(24, "seconds"), **cells) == {"a": 4, "b": 4}
    assert sizes(Budget(23, "seconds"), **cells) == {"a": 0, "b": 0}
    assert sizes(Budget(12, "seconds", at_once=2), **cells) == {"a": 4, "b": 4}
    assert sizes(Budget(11, "seconds", at_once=2), **cells) == {"a": 0, "b": 0}


def test_a_batch_takes_as_long_as_its_longest_trial_at_least():
    # 4 trials of 1,800 s on 64 cores take half an hour, not 7,200 s / 64.
    half_an_hour, hour = samples(*[1800.0] * BATCH), samples(*[1800.0] * 2 * BATCH)
    assert sizes(Budget(3600, "seconds", at_once=64), a=half_an_hour) == {"a": 4}
    assert sizes(Budget(3599, "seconds", at_once=64), a=half_an_hour) == {"a": 0}
    assert sizes(Budget(5400, "seconds", at_once=64), a=hour) == {"a": 4}
    assert sizes(Budget(5399, "seconds", at_once=64), a=hour) == {"a": 0}
    # TPE's third batch has 2 samples, for its 10 random ones: 1,800 s as well, and 4 more another 1,800 s.
    ten = [*hour, *(Sample("a", i, {}, 2, trial_seconds=[1800.0]) for i in (8, 9))]
    assert sizes(Budget(7200, "seconds", at_once=64), a=ten) == {"a": 4}
    assert sizes(Budget(7199, "seconds", at_once=64), a=ten) == {"a": 0}
    # The trials of a sample run side by side, too: 4 samples of 3 seeds, 12 at once.
    seeds = [Sample("a", i, {}, trial_seconds=[10.0, 20.0, 30.0]) for i in range(BATCH)]
    assert sizes(Budget(60, "seconds", at_once=12), a=seeds) == {"a": 4}
    assert sizes(Budget(59, "seconds", at_once=12), a=seeds) == {"a": 0}
