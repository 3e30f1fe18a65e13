"""Claims and intervals in words."""

import math

import pytest

from benchmark.config.base import validated
from benchmark.config.metric import Metric
from benchmark.config.report import Claim
from leaderboard.paper.cells import Estimate
from leaderboard.paper.claims import ClaimResult, PlaceResult
from leaderboard.paper.sentences import change, claims_list, interval, tally_of

ACCURACY, LOSS = Metric("test/accuracy"), Metric("train/loss")
WIDE = Estimate(0.1, 0.05, -0.1, 0.3, 3)


@pytest.mark.parametrize(
    ("quantity", "metric", "text", "signed"),
    [
        (WIDE, ACCURACY, "10.0 [-10.0, 30.0]", "+10.0 [-10.0, +30.0]"),
        (WIDE, LOSS, "0.10 [-0.10, 0.30]", "+0.10 [-0.10, +0.30]"),
        (Estimate(-0.1, math.nan, -math.inf, math.inf, 1), ACCURACY, "-10.0 (one seed)", "-10.0"),
        (Estimate(2.0, 0.0, 2.0, 2.0, 3), LOSS, "2", "+2 [+2, +2]"),
        (Estimate(0.002, 4.0, 3e-9, 3.1, 3, logarithmic=True), LOSS, "0.002 [3e-09, 3.1]", "+0.0 [+0.0, +3.1]"),
    ],
)
def test_intervals(quantity, metric, text, signed):
    assert (interval(quantity, metric), change(quantity, metric)) == (text, signed)


def test_counted_verdicts():
    assert tally_of(["holds", "fails", "holds", "not run"]) == "2 hold, 1 fails, 1 not run"
    assert tally_of(["fails", "fails", "undecided", "undecided"]) == "2 fail, 2 undecided"
    assert tally_of([]) == ""


def result(places, **claim):
    return ClaimResult(validated(Claim, {"says": "So.", "least": 0.0} | claim), ACCURACY, tuple(places), reduced=False)


def test_a_list_of_claims():
    places = [
        PlaceResult({"panel": "a"}, Estimate(0.2, 0.05, 0.1, 0.3, 3), "holds"),
        PlaceResult({"panel": "b"}, WIDE, "undecided"),
        PlaceResult({"panel": "c"}, None, "not run"),
    ]
    assert claims_list([result(places, most=0.5, printed=0.123, cause="Because.")]) == [
        "1. **undecided** (holds at 1, undecided at 1; 1 of 3 places not run): So.",
        "   - test/accuracy %, at least 0.0 and at most 50.0: b: 10.0 [-10.0, 30.0]; a: 20.0 [10.0, 30.0]",
        "   - seeds that would decide it: 4",  # panel b: ((1.96 + 0.842) 0.05 / 0.1)^2 + 1.92 = 3.9
        "   - printed: 12.3",
        "   - cause: Because.",
    ]
    assert claims_list([result(places[2:])]) == ["1. **not run**: So."]


def test_a_cause_of_several_claims_is_written_once():
    claims = [result([], cause=cause) for cause in ("", "This.", "That.", "This.")]
    assert [line for line in claims_list(claims) if "cause" in line] == [
        "   - cause: This.",
        "   - cause: That.",
        "   - cause: see claim 2",
    ]


@pytest.mark.parametrize(
    ("relation", "line"),
    [
        ({"minus": {"panel": "x"}}, "   - test/accuracy %, difference, at least 0.0: 10.0 [-10.0, 30.0]"),
        ({"along": "panel"}, "   - test/accuracy %, step, at least 0.0: 10.0 [-10.0, 30.0]"),
        ({"over": {"panel": "x"}}, "   - test/accuracy, ratio, at least 0: 0.10 [-0.10, 0.30]"),  # no percent
    ],
)
def test_a_claim_about_one_comparison(relation, line):
    assert claims_list([result([PlaceResult({}, WIDE, "undecided")], **relation)])[1] == line


def test_long_lists_of_places_are_cut():
    places = [PlaceResult({"panel": str(n)}, WIDE, "undecided") for n in range(8)]
    line = claims_list([result(places)])[1]
    assert line.count("30.0]") == 6
    assert line.endswith("; ...")
