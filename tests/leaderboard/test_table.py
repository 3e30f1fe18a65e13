"""Numbers as they are printed."""

import math

from rollcall.leaderboard.table import Column, Number, Table, number


def test_a_number_with_and_without_deviation():
    assert str(number(0.5, 0.25, "{:.2f}".format)) == "0.50 ± 0.25"
    assert str(number(0.5, math.nan, "{:.2f}".format)) == "0.50"
    assert number(0.5, 0.0, "{:.0f}".format).sd_text == "0"


def test_whether_a_best_value_is_marked():
    plain = Number(1.0, math.nan, "1")
    columns = [Column("a", "a", measured=True)]
    assert not Table(columns, [[plain], [""]], "").marks_best
    assert Table(columns, [[plain], [Number(2.0, math.nan, "2", best=True)]], "").marks_best
