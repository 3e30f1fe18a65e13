"""Comparisons of cells: hand cases, SciPy's paired interval, missing seeds, diverged runs, censored rounds."""

import math
from dataclasses import replace

import pytest
from scipy import stats

from rollcall.benchmark.config.errors import SettingError
from rollcall.benchmark.config.metric import Metric
from rollcall.leaderboard.cells import cells
from rollcall.leaderboard.ranking import axes, rank
from rollcall.leaderboard.tables import Comparison, against, how, overall, overall_table, pairs, ranking_table
from tests.support.results import diverging, ends, experiment, runs

ACCURACY = Metric("test/accuracy")
VALUES = {"fedavg": [0.5, 0.6, 0.7], "mifa": [0.71, 0.83, 0.87]}


def value_of(labels, seed):
    return VALUES[labels["algorithm"]][seed]


def compared(a, b, metric=ACCURACY, values=value_of, **changes):
    """Two methods where the clients are often there."""
    mine = experiment()
    found = [cell for cell in cells(mine, runs(mine, values, **changes)) if cell.labels["participation"] == "often"]
    by_method = {cell.labels["algorithm"]: cell for cell in found}
    return Comparison(by_method[a], by_method[b], metric, 1)


def test_the_difference_is_paired_by_seed():
    """0.21, 0.23, 0.17; the interval of SciPy's paired t-test. Wins of an accuracy and of a loss."""
    one = compared("mifa", "fedavg")
    paired = stats.ttest_rel(VALUES["mifa"], VALUES["fedavg"])
    assert one.difference.mean == pytest.approx((0.21 + 0.23 + 0.17) / 3)
    assert one.difference.interval() == pytest.approx(tuple(paired.confidence_interval()))
    assert (one.wins, one.verdict(), one.text) == ((3, 0, 0), 1, "+20.3 [+12.7, +27.9]†")
    as_loss = replace(one, metric=Metric("test/accuracy", "min"))
    assert (as_loss.wins, as_loss.verdict()) == ((0, 0, 3), -1)


def test_what_is_best_near_0_is_compared_by_its_distance_from_0():
    """0.1, 0.2, 0.3 against 0.4, 0.4, 0.5, whatever the signs: SciPy's paired interval of -0.3, -0.2 and -0.2."""
    values = {"mifa": [0.1, -0.2, 0.3], "fedavg": [-0.4, 0.4, -0.5]}
    bias = Metric("test/accuracy", "zero")
    one = compared("mifa", "fedavg", bias, lambda labels, seed: values[labels["algorithm"]][seed])
    paired = stats.ttest_rel([0.1, 0.2, 0.3], [0.4, 0.4, 0.5]).confidence_interval()
    assert one.difference.interval() == pytest.approx(tuple(paired))
    assert (one.wins, one.verdict()) == ((3, 0, 0), 1)
    assert "; of test accuracy: the distance from 0 minus that of fedavg; " in how("fedavg", [one])
    assert "distance" not in how("fedavg", [replace(one, metric=ACCURACY)])


def test_pairs_have_equal_rounds_and_seeds():
    """mifa has the seeds 0 and 1 in 100 rounds, fedavg 1 and 2 in 50."""
    made = experiment()
    curve = [0.01 * i for i in range(11)]
    long = runs(made, lambda *_: curve, skip=(2,))
    short = runs(made, lambda *_: curve[:6], rounds=50, skip=(0,))
    ran = [run for run in long if run.settings["algorithm"] == "mifa"]
    ran += [run for run in short if run.settings["algorithm"] == "fedavg"]
    found = pairs(cells(made, ran), "mifa", "fedavg")
    assert [one.labels["algorithm"] for pair in found for one in pair] == ["mifa", "fedavg"] * 2
    assert {(*one.runs, one.rounds_run) for pair in found for one in pair} == {("1", 50)}
    assert [Comparison(*pair, ACCURACY, 1).difference.mean for pair in found] == [0, 0]


def test_the_dagger_is_corrected_for_the_number_of_comparisons():
    one = compared("mifa", "fedavg")
    p = stats.ttest_rel(VALUES["mifa"], VALUES["fedavg"]).pvalue
    daggers = [replace(one, among=among).text.endswith("†") for among in (1, int(0.05 / p), int(0.05 / p) + 1)]
    assert daggers == [True, True, False]


def test_a_missing_seed_is_left_out_and_two_pairs_have_no_interval():
    one = compared("mifa", "fedavg")
    one = replace(one, cell=one.cell.of({"0", "1"}))
    assert one.difference.mean == pytest.approx(0.22)
    assert (one.wins, one.verdict(), one.text) == ((2, 0, 0), 0, "+22.0")
    assert one.row == {
        "difference": pytest.approx(0.22), "low": None, "high": None, "corrected": False, "searched": False,
        "wins": 2, "ties": 0, "losses": 0,
    }  # fmt: skip


def test_with_a_diverged_seed_there_is_no_difference_but_it_loses():
    one = compared("mifa", "fedavg")
    one = replace(one, cell=replace(one.cell, runs=one.cell.runs | {"1": diverging(one.cell.runs["1"])}))
    assert (one.difference, one.text, one.verdict()) == (None, "", 0)
    assert one.wins == (2, 0, 1)
    both = replace(one, other=replace(one.other, runs=one.other.runs | {"1": diverging(one.other.runs["1"])}))
    assert both.wins == (2, 1, 0)
    as_loss = replace(one, metric=Metric("test/accuracy", "min"))  # whose scores are below 0
    assert as_loss.wins == (0, 0, 3)


CURVES = {"fedavg": [0, 0.1, 0.2, *[0.3] * 8], "mifa": [0, 0.3, *[0.6] * 9]}


def test_a_round_that_was_not_reached_is_later_than_the_last():
    """mifa reaches 0.5 at round 20, fedavg never in 100 rounds: at least 80 rounds earlier."""
    metric = Metric("round_of:test/accuracy>=0.5", "min")
    one = compared("mifa", "fedavg", metric, lambda labels, seed: CURVES[labels["algorithm"]])
    assert one.difference.interval() == (-math.inf, -80.0)
    assert (one.wins, one.verdict(), one.text) == ((3, 0, 0), 1, "below -80†")
    reverse = replace(one, cell=one.other, other=one.cell)
    assert (reverse.wins, reverse.text) == ((0, 0, 3), "above +80†")


def ranking_of(values, metric=ACCURACY, **grid):
    mine = experiment(grid=experiment().grid | grid)
    return rank(runs(mine, values), [metric], 1, axes(mine))


def test_each_row_of_a_ranking_against_its_baseline():
    ranking = ranking_of(ends)
    (found,) = against(ranking, "fedavg").values()
    assert [cell.labels["algorithm"] for cell in ranking.cells] == ["mifa", "fedavg"] * 2
    assert [one and round(one.difference.mean, 10) for one in found] == [0.2, None, 0.2, None]
    assert [one.other.labels["participation"] for one in found if one] == [
        cell.labels["participation"] for cell in ranking.cells if cell.labels["algorithm"] == "mifa"
    ]
    assert {one.among for one in found if one} == {2}
    mine = experiment()
    two = rank(runs(mine, ends), [ACCURACY, Metric("test/accuracy", "min")], 1, axes(mine))
    assert {one.among for column in against(two, "fedavg").values() for one in column if one} == {2}
    with pytest.raises(SettingError, match="against: 'fedpbc' is not allowed; must be one of mifa, fedavg"):
        against(ranking, "fedpbc")


def test_methods_over_conditions_have_mean_ranks_over_seeds():
    """fedavg is first in one of six places: ranks of mifa by seed 1, 1, 1.5; SciPy's interval of their mean."""

    def swapped(labels, seed):
        is_worse = seed == 2 and (labels["algorithm"], labels["participation"]) == ("mifa", "often")
        return 0.1 if is_worse else ends(labels, seed)

    ranking = ranking_of(swapped)
    table, (first, second) = overall_table(overall(ranking), "fedavg")
    assert (first["labels"], first["best_in"], second["best_in"]) == ({"algorithm": "mifa"}, 1, 1)
    ranks = [1, 1, 1.5]
    assert first["mean_rank"] == pytest.approx(7 / 6)
    error = stats.t.interval(0.95, 2, 7 / 6, stats.sem(ranks))
    assert (first["low"], first["high"]) == pytest.approx(error)
    assert first["difference"] == pytest.approx(2 * 7 / 6 - 3)  # the two ranks add up to 3
    assert table.rows[0][1] == f"1.17 [{error[0]:.2f}, {error[1]:.2f}]"
    assert overall(ranking_of(lambda *_: 0.5)).ranks.to_numpy().tolist() == [[1.5, 1.5]] * 3  # equal ones share ranks


def test_the_best_one_to_a_threshold_is_that_of_the_mean_curve_as_in_the_table():
    """mifa's mean curve reaches 0.2 after 10 rounds, its seeds after 10, 30 and 30; each seed of fedavg after 20."""
    curves = {"mifa": [[0, 0.9, 0.9, 0.9], [0, 0, 0, 0.2], [0, 0, 0, 0.2]], "fedavg": [[0, 0, 0.2, 0.2]] * 3}
    metric = Metric("round_of:test/accuracy>=0.2", "min")
    ranking = ranking_of(lambda labels, seed: curves[labels["algorithm"]][seed], metric)
    over = overall(ranking)
    assert (over.best_in("mifa"), over.best_in("fedavg")) == (2, 0)
    marked = [row[0] for row in ranking_table(ranking).rows if any(getattr(one, "best", False) for one in row)]
    assert marked == ["mifa"] * 2


def test_conditions_without_a_method_are_left_out_and_counted():
    third = {"third": {"name": "bernoulli", "probability": [0.4, 0.4]}}
    ranking = ranking_of(ends, participation=experiment().grid["participation"] | third)
    fewer = replace(ranking, groups=[ranking.groups[0][:1], *ranking.groups[1:]])
    table, rows = overall_table(overall(fewer), "")
    assert "over 2 conditions; 1 left out" in table.caption
    assert [row["mean_rank"] for row in rows] == [1, 2]
    with pytest.raises(SettingError, match="mifa, fedavg have 1 among 2 conditions"):
        overall(replace(fewer, groups=fewer.groups[:2]))


def test_only_seeds_that_all_conditions_have_count():
    """mifa is first in all places of seeds 0 to 2; seeds 3 and 4, where it is second, have run under one condition."""

    def swapped(labels, seed):
        return 0.1 if seed > 2 and labels["algorithm"] == "mifa" else ends(labels, seed)

    mine = experiment(grid=experiment().grid | {"seed": [0, 1, 2, 3, 4]})
    seldom = [run for run in runs(mine, swapped) if "0.9" not in run.settings["participation.probability"]]
    often = [run for run in runs(mine, swapped, skip=(3, 4)) if "0.9" in run.settings["participation.probability"]]
    over = overall(rank([*often, *seldom], [ACCURACY], 1, axes(mine)))
    table, (first, second) = overall_table(over, "fedavg")
    assert (first["labels"], first["mean_rank"], first["low"], first["high"]) == ({"algorithm": "mifa"}, 1, 1, 1)
    assert (first["best_in"], second["best_in"], second["mean_rank"], first["difference"]) == (2, 0, 2, -1)
    assert "and 3 seeds" in table.caption
    assert "not all conditions have the seeds 3, 4: left out" in table.caption
    apart = [run for run in seldom if int(run.tags["seed"]) > 2]
    with pytest.raises(SettingError, match="overall: no seed has a value of test/accuracy in all 2 conditions"):
        overall(rank([*often, *apart], [ACCURACY], 1, axes(mine)))
