"""The table of a paper and long rows, by hand."""

import math
from dataclasses import replace

import pytest

from rollcall.benchmark.config.metric import Metric
from rollcall.leaderboard.cells import cells
from rollcall.leaderboard.paper.claims import check_claim
from rollcall.leaderboard.paper.experiment import Printed
from rollcall.leaderboard.render import latex
from rollcall.leaderboard.site.build import as_printed
from rollcall.leaderboard.tables import beside_printed, long_rows, paper_table
from tests.support.results import COMPARED, diverging, ends, experiment, runs


def texts(table):
    return [list(map(str, row)) for row in table.rows]


def test_the_table_as_the_paper_lays_it_out(numbers):
    table = paper_table(COMPARED, cells(COMPARED, runs(COMPARED, ends, skip=(2,))), numbers)
    assert [column.title for column in table.columns] == [
        "algorithm", "often test accuracy %", "printed", "less printed", "seldom test accuracy %", "printed", "less printed", "seeds", "rounds",
    ]  # fmt: skip
    assert texts(table) == [
        ["fedavg", "55.0 ± 7.1", "(61.5 ± 0.5)*", "", "55.0 ± 7.1", "", "", "2 of 3", "100 of 100"],
        ["mifa", "75.0 ± 7.1", "(61.5 ± 0.5)*", "", "75.0 ± 7.1", "40.0", "+35.0", "2 of 3", "100 of 100"],
    ]
    assert table.caption.endswith("*: one number for fedavg and mifa in our copy; whose it is, is not known")
    assert not table.marks_best
    assert r"MIFA & 75.0 $\pm$ 7.1 & (61.5 $\pm$ 0.5)* &  & 75.0 $\pm$ 7.1 & 40.0 & +35.0 &" in latex(table)


def test_a_scheme_has_no_column_of_a_metric_that_it_lacks(numbers):
    report = {"metrics": {"test/accuracy": "max", "loss": "min"}, "columns": ["participation"]}
    made = type(COMPARED).model_validate(COMPARED.model_dump(exclude_unset=True) | {"report": report})
    often = [run for run in runs(made, ends, metric="loss") if "0.9" in run.settings["participation.probability"]]
    also = {run.digest: run.history for run in often}
    both = [
        replace(run, history=run.history.join(also[run.digest])) if run.digest in also else run
        for run in runs(made, ends)
    ]
    titles = paper_table(made, cells(made, both), numbers).titles
    assert titles[1:5] == ["often test accuracy %", "printed", "less printed", "often loss"]
    assert titles[5:] == ["seldom test accuracy %", "printed", "less printed", "seeds", "rounds"]


def test_a_difference_has_an_interval_and_fewer_rounds_their_share_of_the_steps(numbers):
    """Seeds at 70, 80 and 90, less 40: a t interval of 4.303 x 10 / sqrt(3). Two rounds of four at 1 / sqrt(t + 1)."""

    def beside(made):
        table = paper_table(made, cells(made, runs(made, ends, rounds=made.trial["rounds"] // 2)), numbers)
        return texts(table)[1][6]

    content = COMPARED.model_dump(exclude_unset=True)
    assert beside(COMPARED) == "(+40.0 [+15.2, +64.8] at 50%)"
    falling = {"lr": 0.1, "schedule": {"name": "inverse_sqrt", "period": 1}}
    trial = content["trial"] | {"rounds": 4, "local": falling}
    share = (1 + 1 / math.sqrt(2)) / (1 + 1 / math.sqrt(2) + 1 / math.sqrt(3) + 1 / 2)
    assert beside(type(COMPARED).model_validate(content | {"trial": trial})).endswith(f" at {share:.0%})")
    own = trial | {"local": falling | {"schedule": "mine.py:falling"}}  # its code is not run
    assert beside(type(COMPARED).model_validate(content | {"trial": own})).endswith(" at 50%)")


def test_a_first_round_less_the_printed_one():
    """A curve of 0, 0.1, 0.2, 0.3 after 0, 10, 20, 30 rounds reaches 0.3 after 30 rounds; 50 are printed."""
    made, metric = experiment(), Metric("round_of:test/accuracy>=0.3", "min")
    (cell, *_) = cells(made, runs(made, lambda *_: [0.0, 0.1, 0.2, 0.3], rounds=30))
    known = Printed({"algorithm": "fedavg"}, metric, 50.0, None)
    assert list(map(str, beside_printed(cell, cell.labels, metric, 1, [known]))) == ["30", "50", "-20"]


def test_a_page_says_the_share_of_the_steps_where_no_difference_says_it(numbers):
    """Under `often` the copy prints one number for both methods; under `seldom` 40 for mifa."""
    ran = [run for run in runs(COMPARED, ends, rounds=50) if run.settings["algorithm"] == "mifa"]
    half = cells(COMPARED, ran)
    ((_, methods, lines),) = as_printed("", COMPARED, half, numbers)
    (often, shared), (seldom, own) = lines
    assert (methods, often, seldom) == (["fedavg", "mifa"], "often", "seldom")
    assert shared[1] == {
        "measured": "80.0 ± 10.0", "printed": "(61.5 ± 0.5)*", "less": "", "size": "3 seeds, 50% of steps",
    }  # fmt: skip
    assert shared[0] == {"measured": "", "printed": "(61.5 ± 0.5)*", "less": "", "size": ""}  # not run
    assert own[1] == {
        "measured": "80.0 ± 10.0", "printed": "40.0", "less": "(+40.0 [+15.2, +64.8] at 50%)", "size": "3 seeds",
    }  # fmt: skip


def test_a_cell_with_a_diverged_seed_has_no_mean(numbers):
    def diverges(run):
        method, seed = run.settings["algorithm"], run.tags["seed"]
        often = run.settings["participation.probability"] == "[0.9, 0.9]"
        return often and (method == "mifa" or seed == "0")

    made = [diverging(run) if diverges(run) else run for run in runs(COMPARED, ends)]
    found = cells(COMPARED, made)
    assert [(cell.diverged, len(cell.runs)) for cell in found] == [(1, 3), (3, 3), (0, 3), (0, 3)]
    assert math.isnan(found[0].mean(Metric("round_of:test/accuracy>=0.1"), 1))
    fedavg, mifa = texts(paper_table(COMPARED, found, numbers))
    assert (fedavg[1], mifa[1], mifa[4]) == ("1 of 3 diverged", "diverged", "80.0 ± 10.0")
    assert mifa[-2:] == ["3 of 3", "100 of 100"]
    rows = long_rows(found, COMPARED.report.metrics, 1, numbers)
    assert [(row["mean"], row["seeds"], row.get("diverged")) for row in rows] == [
        (None, 3, 1), (None, 3, 3), (pytest.approx(0.6), 3, None), (pytest.approx(0.8), 3, None),
    ]  # fmt: skip
    (claim,) = COMPARED.claims
    result = check_claim(claim, COMPARED, found)
    assert [place.verdict for place in result.places] == ["undecided", "holds"]  # seldom: no run diverged


def test_what_does_not_cover_the_window_is_empty():
    made = experiment(report={"metrics": {"test/accuracy": "max"}, "last_rounds": 200})
    found = cells(made, runs(made, lambda *_: [0.5] * 11))
    table = paper_table(made, found, [])
    assert {row[2] for row in table.rows} == {""}
    assert "empty: the evaluations do not cover these rounds" in table.caption
    assert {(row["mean"], row["evaluations"]) for row in long_rows(found, made.report.metrics, 200)} == {(None, 0)}
    assert {row["evaluations"] for row in long_rows(found, made.report.metrics, 40)} == {4}


def test_long_rows(numbers):
    rows = long_rows(cells(COMPARED, runs(COMPARED, ends)), COMPARED.report.metrics, 1, numbers)
    labels = {"participation": "seldom", "algorithm": "mifa"}
    measured = {"metric": "test/accuracy", "mean": pytest.approx(0.8), "sd": pytest.approx(0.1), "evaluations": 1}
    size = {"seeds": 3, "rounds": 100, "planned": 100, "source": "kept"}
    assert rows[3] == {"labels": labels, "paper_mean": 0.4, "paper_sd": None} | measured | size
    assert (rows[0]["paper_mean"], rows[0]["note"]) == (None, "the copy prints 61.5 ± 0.5 once for fedavg or mifa")
