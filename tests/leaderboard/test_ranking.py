"""Rankings of one's own runs: labels, selection and rows, against numbers worked out by hand."""

from dataclasses import replace

import pandas as pd
import pytest

from rollcall.benchmark.config.errors import SettingError
from rollcall.benchmark.config.grid import grid_points
from rollcall.benchmark.config.metric import Metric
from rollcall.leaderboard.figures import ranking_curves
from rollcall.leaderboard.ranking import Axis, axes, only, rank
from rollcall.leaderboard.tables import long_rows, overall, ranking_table
from tests.support.results import diverging, experiment, run_of

GRID = {
    "seed": [0, 1],
    "participation": {
        "often": {"name": "bernoulli", "probability": [0.9, 0.8]},
        "rarely": {"name": "bernoulli", "probability": [0.1, 0.2]},
        "night": {"name": "cyclic", "probability": [0.1, 0.2]},
    },
    "pace": {"slow": {"local.lr": 0.1, "local.steps": 1}, "fast": {"local.lr": 0.5, "local.steps": 4}},
    "algorithm": ["fedavg", "mifa"],
}


@pytest.fixture(scope="module")
def mine():
    return experiment(grid=GRID)


def settings_of(mine):
    """The settings of each point, as a run folder has them, with the labels of the point."""
    return [(point.settings, point.labels) for point in grid_points(mine)]


def test_every_trial_has_its_labels(mine):
    made = {axis.name: axis for axis in axes(mine)}
    assert list(made) == ["panel", "participation", "pace", "algorithm"]  # seeds are averaged over
    every = settings_of(mine)
    assert len(every) == 24
    for settings, labels in every:
        assert {name: axis.label(settings) for name, axis in made.items()} == labels


OFTEN, SINE = (("participation", "bernoulli"), ("p", "1")), (("participation", "bernoulli"), ("p", "2"))
LABELS = {tuple(sorted(OFTEN)): "bernoulli", tuple(sorted(SINE)): "bernoulli#2"}
AXIS = Axis("participation", frozenset({"p", "participation"}), LABELS)


def tried(value, **settings):
    return run_of("a", 0, pd.DataFrame({"train/bias": [value]}, index=[10]), **settings)


TRIED = [tried(0.5, **dict(OFTEN)), tried(-0.1, **dict(SINE)), tried(-0.9, participation="cyclic", p="1")]


def chosen(conditions, axes=(AXIS,)):
    return [TRIED.index(one) for one in only(TRIED, axes, conditions)]


def test_labels_select_as_in_run():
    assert chosen({"participation": ["bernoulli#2"]}) == [1]
    assert chosen({"participation": ["bernoulli"]}) == [0, 1]
    assert chosen({"participation": ["cyclic"]}) == [2]  # off the axis, by the value of the setting
    assert chosen({"participation": ["bernoulli#2", "cyclic"]}) == [1, 2]
    assert chosen({"p": [1]}) == [0, 2]
    assert chosen({"p": [1], "participation": ["bernoulli"]}) == [0]
    assert chosen({"participation": ["bernoulli"]}, axes=()) == [0, 1]


def test_a_value_that_has_no_name_is_refused():
    with pytest.raises(SettingError, match=r"^only participation: \{'p': 1\} is not allowed; must be one of bernoulli"):
        chosen({"participation": [{"p": 1}]})


METRICS = (Metric("test/accuracy", "max"), Metric("train/loss", "min"))


def run(method, seed, accuracies, losses=None, **settings):
    """A run evaluated after 0, 10, 20, ... rounds; a single evaluation is the one after the last of 30 rounds."""
    index = [10 * i for i in range(len(accuracies))] if len(accuracies) > 1 else [30]
    history = pd.DataFrame({"test/accuracy": accuracies, "train/loss": losses or accuracies}, index=index)
    return run_of(method, seed, history, **{"task": "digits", **settings})


def method(cell):
    return cell.labels["algorithm"]


def test_rows_are_ranked_and_the_best_of_each_metric_marked():
    runs = [run("a", 0, [0.2], [3.0]), run("b", 0, [0.9], [2.0]), run("c", 0, [0.5], [1.0])]
    ranking = rank(runs, METRICS, last_rounds=1)
    assert [method(cell) for cell in ranking.cells] == ["b", "c", "a"]
    best = [[entry.best for entry in row[1:3]] for row in ranking_table(ranking).rows]
    assert best == [[True, False], [False, True], [False, False]]
    falling = rank(runs, [Metric("train/loss", "min")], last_rounds=1)
    assert [method(cell) for cell in falling.cells] == ["c", "b", "a"]


def test_rows_of_unequal_seeds_have_no_best_one():
    longer = run("c", 1, [0.1, 0.2, 0.3, 0.9])  # more rounds compete apart
    both = [run(name, seed, [0.1, accuracy]) for name, accuracy in (("a", 0.2), ("b", 0.9)) for seed in (0, 1)]
    for runs, marked in ((both, ["b"]), (both[:3], []), ([*both, longer], ["b"])):
        table = ranking_table(rank(runs, METRICS[:1], last_rounds=10))
        assert [row[0] for row in table.rows if row[1].best] == marked


def test_the_best_of_rows_that_do_not_reach_a_target_is_not_marked():
    reached = Metric("round_of:test/accuracy>=0.6", "min")
    both = [
        run(name, seed, [0.1, accuracy], participation=p)
        for name, accuracy in (("a", 0.2), ("b", 0.5))
        for seed in (0, 1)
        for p in ("full", "trace")
    ]
    ranking = rank(both, [reached], last_rounds=1)
    assert not any(row[2].best for row in ranking_table(ranking).rows)
    assert [overall(ranking).best_in(name) for name in ("a", "b")] == [0, 0]


def test_a_setting_that_is_the_end_of_another_is_named_in_full():
    pairs = [("0.1", "1"), ("0.2", "2")]
    ranking = rank([run("a", 0, [0.1], **{"lr": a, "server.lr": b}) for a, b in pairs], METRICS, last_rounds=1)
    assert [ranking.short(setting) for setting in ("lr", "server.lr")] == ["lr", "server.lr"]


def test_rows_compete_only_under_the_same_conditions():
    cases = [("a", 0.1, "full", "1"), ("b", 0.2, "full", "2"), ("a", 0.3, "trace", "1"), ("b", 0.2, "trace", "1")]
    runs = [run(method, 0, [accuracy], **{"participation": p, "local.lr": lr}) for method, accuracy, p, lr in cases]
    ranking = rank(runs, METRICS, last_rounds=1)
    assert ranking.settings == ["local.lr", "participation"]
    best = {(row[0], row[2]) for row in ranking_table(ranking).rows if row[3].best}
    assert best == {("b", "full"), ("a", "trace")}  # the rate is a matter of tuning, participation is not


def test_the_axis_that_sets_the_algorithm_names_the_methods():
    methods = {"Plain": {"algorithm": "fedavg", "local.lr": 0.1}, "Memory": {"algorithm": "mifa", "local.lr": 0.5}}
    chosen = experiment(grid={"participation": ["full"], "method": methods})
    runs = [run_of("a", 0, tried(0.5).history, **point.settings) for point in grid_points(chosen)]
    ranking = rank(runs, [Metric("train/bias", "min")], 1, axes(chosen))
    assert [(method(cell), cell.labels) for cell in ranking.cells] == [
        ("Plain", {"algorithm": "Plain"}), ("Memory", {"algorithm": "Memory"})
    ]  # fmt: skip


def test_the_table_of_a_ranking():
    runs = [
        run(method, seed, [0.1, accuracy], [9.0, 10 * accuracy], **{"participation": p, "local.lr": "0.1"})
        for method, accuracy in (("x", 0.25), ("y", 0.5))
        for p in ("full", "trace")
        for seed in (0, 1)
    ]
    table = ranking_table(rank(runs, METRICS, last_rounds=10))
    assert [(column.title, column.arrow) for column in table.columns] == [
        ("method", ""), ("participation", ""), ("test accuracy %", "↑"), ("train loss", "↓"), ("seeds", ""), ("rounds", ""),
    ]  # fmt: skip
    assert [list(map(str, row)) for row in table.rows] == [
        ["y", "full", "50.0 ± 0.0", "5 ± 0", "2", "10"],
        ["x", "full", "25.0 ± 0.0", "2.5 ± 0", "2", "10"],
        ["y", "trace", "50.0 ± 0.0", "5 ± 0", "2", "10"],
        ["x", "trace", "25.0 ± 0.0", "2.5 ± 0", "2", "10"],
    ]
    assert [[entry.best for entry in row[2:4]] for row in table.rows] == [[True, False], [False, True]] * 2
    assert table.caption.startswith("test/accuracy ↑, train/loss ↓; mean of the last 10 rounds (1 evaluation); ")
    assert "; last evaluation; " in ranking_table(rank(runs, METRICS, last_rounds=1)).caption


def test_of_cells_with_other_seeds_none_is_the_best():
    """Two seeds each, one of which both have; and a cell is evaluated as often as the run with the fewest."""
    runs = [run("a", seed, [0.1, 0.5]) for seed in (0, 1)] + [run("b", seed, [0.1, 0.9]) for seed in (1, 2)]
    ranking = rank(runs, METRICS, last_rounds=10)
    assert [row[1].best for row in ranking_table(ranking).rows] == [False, False]
    (best, _) = ranking.cells
    late = replace(best.runs["1"], history=best.runs["1"].history.iloc[:-1])
    found = [one.evaluations(METRICS[0], 10) for one in (best, replace(best, runs=best.runs | {"1": late}))]
    assert found == [1, 0]


def cut(run, t):
    return diverging(replace(run, history=run.history[run.history.index < t]), t)


def test_a_cell_with_a_diverged_run_has_no_mean_and_ranks_last():
    runs = [run("a", 0, [0.1, 0.5]), cut(run("a", 1, [0.1, 0.9]), 10), cut(run("a", 2, [0.1, 0.9]), 10)]
    runs += [run("b", 0, [0.1, 0.2]), cut(run("c", 0, [0.1, 0.9]), 10), cut(run("c", 1, [0.1, 0.9]), 7)]
    ranking = rank(runs, METRICS, last_rounds=10)
    ranked = [(method(cell), len(cell.runs), cell.diverged) for cell in ranking.cells]
    assert ranked == [("b", 1, 0), ("a", 3, 2), ("c", 2, 2)]
    table = ranking_table(ranking)
    assert [str(row[1]) for row in table.rows] == ["20.0", "2 of 3 diverged", "diverged"]
    assert [row[1].best for row in table.rows] == [True, False, False]  # a method that diverges is not the best
    assert not ranking.cells[2].ended.runs
    told = [(row["mean"], row.get("diverged")) for row in long_rows(ranking.cells, METRICS, 10)[::2]]
    assert told == [(0.2, None), (None, 2), (None, 2)]
    ranking_curves(ranking)
