"""`--only`, `--best-by` and `--hide-diverged` select runs."""

import pandas as pd
import pytest

from rollcall.benchmark.config.errors import SettingError
from rollcall.benchmark.config.metric import Metric
from rollcall.leaderboard import Run
from rollcall.leaderboard.ranking.axes import Axis
from rollcall.leaderboard.ranking.selection import best_settings, chooser, only

OFTEN, SINE = (("participation", "bernoulli"), ("p", "1")), (("participation", "bernoulli"), ("p", "2"))
AXIS = Axis("participation", frozenset({"p", "participation"}), {})
for part, label in ((OFTEN, "bernoulli"), (SINE, "bernoulli#2")):
    AXIS.add(dict(part), label)


def run(value, **settings):
    history = pd.DataFrame({"train/bias": [value]}, index=[10])
    return Run({"algorithm": "a", "seed": "0"}, {"algorithm": "a", "seed": "0", "rounds": "10", **settings}, history)


RUNS = [run(0.5, **dict(OFTEN)), run(-0.1, **dict(SINE)), run(-0.9, participation="cyclic", p="1")]


def chosen(conditions, axes=(AXIS,)):
    return [RUNS.index(one) for one in only(RUNS, axes, conditions)]


def test_labels_select_as_in_run():
    assert chosen({"participation": ["bernoulli#2"]}) == [1]
    assert chosen({"participation": ["bernoulli"]}) == [0, 1]
    assert chosen({"participation": ["cyclic"]}) == [2]  # off the axis, by the value of the setting
    assert chosen({"participation": ["bernoulli#2", "cyclic"]}) == [1, 2]
    assert chosen({"p": [1]}) == [0, 2]
    assert chosen({"p": [1], "participation": ["bernoulli"]}) == [0]
    assert chosen({"participation": ["bernoulli"]}, axes=()) == [0, 1]


def test_a_value_that_no_run_has_is_refused():
    with pytest.raises(SettingError, match=r"^only participation: 'trace' .* one of bernoulli, bernoulli#2, cyclic$"):
        chosen({"participation": ["trace"]})
    with pytest.raises(SettingError, match=r"^only: 'other' is not allowed; must be one of "):
        chosen({"other": [1]})


@pytest.mark.parametrize(("direction", "best"), [("max", 0), ("min", 2), ("zero", 1)])
def test_the_best_settings_by_each_direction(direction, best):
    runs = [run(value, **{"local.lr": str(value)}) for value in (0.5, -0.1, -0.9)]
    (kept,), among = best_settings(runs, Metric("train/bias", direction), last_rounds=1)
    assert (runs.index(kept), among) == (best, 3)


def test_methods_of_one_class_name_in_two_files_are_two_methods():
    runs = [run(0.1, algorithm=f"{file}.py:Mine") for file in ("one", "two")]
    kept, _ = best_settings(runs, Metric("train/bias", "min"), last_rounds=1)
    assert len(kept) == 2


def test_the_direction_of_the_chooser():
    assert [chooser(f"train/x={way}", ()).direction for way in ("max", "min", "zero")] == ["max", "min", "zero"]
    assert chooser("train/bias", ()).direction == "zero"
    with pytest.raises(SettingError, match=r"^best-by: 'train/x' .* better: train/x=max, =min or =zero$"):
        chooser("train/x", ())
