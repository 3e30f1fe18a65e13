"""Comparisons of cells: hand cases, SciPy's paired interval, missing seeds, diverged runs, censored rounds."""

import math
from dataclasses import replace

import pytest
from scipy import stats

from rollcall.benchmark.config.errors import SettingError
from rollcall.benchmark.config.metric import Metric
from rollcall.leaderboard.cells import cells, searches
from rollcall.leaderboard.comparison import (
    Comparison,
    against,
    by_condition,
    comparison_tables,
    overall,
    overall_table,
    pairs,
)
from rollcall.leaderboard.figures import overall_chart, ranking_curves
from rollcall.leaderboard.ranking import axes, rank
from rollcall.leaderboard.render import latex
from rollcall.leaderboard.tables import ranking_table
from tests.support.results import ends, experiment, runs

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


def without(comparison, seed):
    return replace(comparison, cell=comparison.cell.of({"0", "1", "2"} - {seed}))


def diverging(cell, seed):
    """The cell with a run that diverged."""
    run = cell.runs[seed]
    return replace(cell, runs=cell.runs | {seed: replace(run, tags=run.tags | {"rollcall.diverged": "40"})})


def test_the_difference_is_paired_by_seed():
    """0.21, 0.23, 0.17; the interval of SciPy's paired t-test. Wins of an accuracy and of a loss."""
    one = compared("mifa", "fedavg")
    paired = stats.ttest_rel(VALUES["mifa"], VALUES["fedavg"])
    assert one.difference.mean == pytest.approx((0.21 + 0.23 + 0.17) / 3)
    assert one.difference.interval() == pytest.approx(tuple(paired.confidence_interval()))
    assert (one.wins, one.verdict(), one.text) == ((3, 0, 0), 1, "+20.3 [+12.7, +27.9]†")
    as_loss = replace(one, metric=Metric("test/accuracy", "min"))
    assert (as_loss.wins, as_loss.verdict()) == ((0, 0, 3), -1)


def test_the_dagger_is_corrected_for_the_number_of_comparisons():
    one = compared("mifa", "fedavg")
    p = stats.ttest_rel(VALUES["mifa"], VALUES["fedavg"]).pvalue
    daggers = [replace(one, among=among).text.endswith("†") for among in (1, int(0.05 / p), int(0.05 / p) + 1)]
    assert daggers == [True, True, False]


def test_a_missing_seed_is_left_out_and_two_pairs_have_no_interval():
    one = without(compared("mifa", "fedavg"), "2")
    assert one.difference.mean == pytest.approx(0.22)
    assert (one.wins, one.verdict(), one.text) == ((2, 0, 0), 0, "+22.0")
    assert one.row == {
        "difference": pytest.approx(0.22), "low": None, "high": None, "corrected": False, "searched": False,
        "wins": 2, "ties": 0, "losses": 0,
    }  # fmt: skip


def test_with_a_diverged_seed_there_is_no_difference_but_it_loses():
    one = compared("mifa", "fedavg")
    one = replace(one, cell=diverging(one.cell, "1"))
    assert (one.difference, one.text, one.verdict()) == (None, "", 0)
    assert one.wins == (2, 0, 1)
    both = replace(one, other=diverging(one.other, "1"))
    assert both.wins == (2, 1, 0)


def test_a_run_without_a_value_counts_nowhere():
    """The window of the last 20 rounds is not covered by evaluations."""
    one = replace(compared("mifa", "fedavg"), last_rounds=20)
    assert (one.difference, one.wins, one.text) == (None, (0, 0, 0), "")


def test_equal_values_tie():
    one = compared("mifa", "fedavg", values=lambda labels, seed: 0.5 + seed)
    assert (one.wins, one.difference.interval(), one.verdict()) == ((0, 3, 0), (0.0, 0.0), 0)


def test_what_is_best_near_zero_is_compared_by_its_distance():
    signed = {"fedavg": [0.3, -0.3, 0.3], "mifa": [-0.1, 0.1, -0.2]}
    one = compared(
        "mifa", "fedavg", Metric("test/accuracy", "zero"), lambda labels, seed: signed[labels["algorithm"]][seed]
    )
    assert one.difference.mean == pytest.approx((-0.2 - 0.2 - 0.1) / 3)
    assert (one.wins, one.verdict()) == ((3, 0, 0), 1)


CURVES = {"fedavg": [0, 0.1, 0.2, *[0.3] * 8], "mifa": [0, 0.3, *[0.6] * 9]}


def test_a_round_that_was_not_reached_is_later_than_the_last():
    """mifa reaches 0.5 at round 20, fedavg never in 100 rounds: at least 80 rounds earlier."""
    metric = Metric("round_of:test/accuracy>=0.5", "min")
    one = compared("mifa", "fedavg", metric, lambda labels, seed: CURVES[labels["algorithm"]])
    assert one.difference.interval() == (-math.inf, -80.0)
    assert (one.wins, one.verdict(), one.text) == ((3, 0, 0), 1, "below -80†")
    reverse = replace(one, cell=one.other, other=one.cell)
    assert (reverse.wins, reverse.text) == ((0, 0, 3), "above +80†")


def test_pairs_have_equal_settings_seeds_and_rounds():
    mine = experiment()
    made = runs(mine, ends)
    fewer = [run for run in made if (run.settings["algorithm"], run.tags["seed"]) != ("mifa", "1")]
    found = pairs(cells(mine, fewer), "mifa", "fedavg")
    where = [(one.labels["participation"], other.labels["participation"]) for one, other in found]
    assert where == [("often", "often"), ("seldom", "seldom")]
    assert [[*cell.runs] for pair in found for cell in pair] == [["0", "2"]] * 4
    assert [one.labels["algorithm"] for one, _ in pairs(cells(mine, made), "often", "seldom")] == ["fedavg", "mifa"]
    assert pairs(cells(mine, made), "fedavg", "fedpbc") == []


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


def test_over_conditions_a_diverged_run_is_the_last_of_its_seed():
    ranking = ranking_of(ends)
    worse = replace(ranking, groups=[[diverging(ranking.groups[0][0], "2"), ranking.groups[0][1]], ranking.groups[1]])
    (mifa,) = (row for row in overall_table(overall(worse))[1] if row["labels"]["algorithm"] == "mifa")
    assert mifa["mean_rank"] == pytest.approx(7 / 6)  # second in one of 3 seeds x 2 conditions


def test_conditions_without_a_method_are_left_out_and_counted():
    ranking = ranking_of(
        ends,
        participation=experiment().grid["participation"] | {"third": {"name": "bernoulli", "probability": [0.4, 0.4]}},
    )
    fewer = replace(ranking, groups=[ranking.groups[0][:1], *ranking.groups[1:]])
    table, rows = overall_table(overall(fewer), "")
    assert "over 2 conditions; 1 left out" in table.caption
    assert [row["mean_rank"] for row in rows] == [1, 2]
    with pytest.raises(SettingError, match="mifa, fedavg have 1 among 2 conditions"):
        overall(replace(fewer, groups=fewer.groups[:2]))


def test_the_overall_line_of_two_methods():
    one = compared("mifa", "fedavg")
    _, data = comparison_tables({"mine": [one, one]}, "mifa", "fedavg")
    assert data["overall"]["says"] == "mifa is better in 2 of 2 cells, worse in 0 (by the 95 % interval)."


def test_the_figure_has_the_ranks():
    rows = overall_chart(overall(ranking_of(ends))).data.to_dict("records")
    assert [(one["row"], one["value"], one["low"], one["high"]) for one in rows] == [
        ("MIFA", 1, 1, 1),
        ("FedAvg", 2, 2, 2),
    ]


def test_a_method_keeps_its_name_if_its_own_option_was_searched_for_each_condition():
    """As after `tune`: mifa has another rate and another option under each condition, and is one method everywhere."""
    mine, option = experiment(), {"often": 0.7733, "seldom": 0.4785}
    made = runs(mine, ends)
    for run in made:
        if run.spec["algorithm"] == "mifa":
            beta = option["often" if run.spec["participation"]["probability"] == [0.9, 0.9] else "seldom"]
            run.spec["algorithm"] = {"name": "mifa", "beta": beta}
            run.spec["local"] = run.spec.get("local", {}) | {"lr": beta}
    ranking = rank(made, [ACCURACY], 1, axes(mine))
    assert {cell.labels["algorithm"] for cell in ranking.cells} == {"mifa", "fedavg"}
    assert [row["mean_rank"] for row in overall_table(overall(ranking))[1]] == [1, 2]
    assert [one and round(one.difference.mean, 9) for one in against(ranking, "fedavg")["test/accuracy"]] == [
        0.2,
        None,
    ] * 2
    assert len(pairs(by_condition(ranking), "mifa", "fedavg")) == 2
    assert "beta" not in latex(ranking_table(ranking))
    assert {*ranking_curves(ranking).data["line"]} == {"MIFA", "FedAvg"}
    both = [
        replace(run, spec=run.spec | {"algorithm": {"name": "mifa", "beta": 0.1}})
        for run in made
        if run.spec["algorithm"] != "fedavg"
    ]
    names = {cell.labels["algorithm"] for cell in rank([*made, *both], [ACCURACY], 1, axes(mine)).cells}
    assert names == {"fedavg", "mifa beta=0.1", "mifa beta=0.7733", "mifa beta=0.4785"}  # two of them compete


def test_a_difference_of_searched_rates_says_so_beside_the_number():
    """mifa's rate is of a search; in a part of the grid a later override has a rate of none. fedavg's own is of none."""
    of_search = {"when": {"algorithm": "mifa"}, "set": {"local.lr": 0.3}, "searched": "paper/rates"}
    fixed = {"when": {"algorithm": "mifa", "participation": "seldom"}, "set": {"local.lr": 0.1}}
    mine = experiment(overrides=[of_search, fixed])
    assert [cell.searched for cell in cells(mine, [])] == ["", "paper/rates", "", ""]
    made = runs(mine, ends)
    ranking = rank(made, [ACCURACY], 1, axes(mine), searched=searches(mine, made))
    beside = against(ranking, "fedavg")
    assert [one and one.searched for one in beside["test/accuracy"]] == [False, None, True, None]
    assert [one.row["searched"] for one in beside["test/accuracy"] if one] == [False, True]
    table = ranking_table(ranking, "fedavg", beside)
    assert [row[table.titles.index("minus fedavg")] for row in table.rows] == [
        "+20.0 [+20.0, +20.0]†", "", "+20.0 [+20.0, +20.0]†‡", "",
    ]  # fmt: skip
    assert "; ‡: rates searched; not in the interval" in table.caption
    assert r"$\dag{}$" not in latex(table)
    assert r"\dag{}\ddag{}" in latex(table)
    assert "rates searched; not in the interval" in overall_table(overall(ranking), "")[0].caption
    plain = ranking_of(ends)
    assert "searched" not in ranking_table(plain, "fedavg", against(plain, "fedavg")).caption
    assert "searched" not in overall_table(overall(plain), "")[0].caption
