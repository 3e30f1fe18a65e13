"""Claims and intervals in words and as JSON."""

import json
import math

import numpy as np
import pytest

from rollcall.benchmark.config.base import validated
from rollcall.benchmark.config.metric import Metric
from rollcall.leaderboard.paper.claims import ClaimResult, PlaceResult, Told
from rollcall.leaderboard.paper.experiment import Claim
from rollcall.leaderboard.paper.quantities import estimate, geometric
from rollcall.leaderboard.paper.sentences import change, claims_json, claims_list, interval
from tests.support.results import experiment

ACCURACY, LOSS = Metric("test/accuracy"), Metric("train/loss")
HALF = 4.302653 / 3**0.5  # of an interval over three seeds whose standard deviation is 1


def about(mean, half):
    """A quantity of three seeds with this mean and this half-width."""
    return estimate(mean + half / HALF * np.array([-1.0, 0.0, 1.0]))


WIDE = about(0.1, 0.2)


@pytest.mark.parametrize(
    ("quantity", "metric", "text", "signed"),
    [
        (WIDE, ACCURACY, "10.0 [-10.0, 30.0]", "+10.0 [-10.0, +30.0]"),
        (WIDE, LOSS, "0.10 [-0.10, 0.30]", "+0.10 [-0.10, +0.30]"),
        (estimate([-0.1]), ACCURACY, "-10.0 (1 seed)", "-10.0"),
        (estimate([-0.1, 0.1]), ACCURACY, "0.0 (2 seeds)", "+0.0"),
        (estimate([2.0, 2.0, 2.0]), LOSS, "2", "+2 [+2, +2]"),
        (estimate([0.3, 0.1 + 0.2, 0.3]), LOSS, "0.3", "+0.3 [+0.3, +0.3]"),  # equal up to rounding
        (about(-0.00142, 0.00109), ACCURACY, "-0.14 [-0.25, -0.03]", "-0.14 [-0.25, -0.03]"),
        (about(0.005135, 0.004905), ACCURACY, "0.51 [0.02, 1.00]", "+0.51 [+0.02, +1.00]"),
        (about(-0.0002, 0.01), ACCURACY, "0.0 [-1.0, 1.0]", "+0.0 [-1.0, +1.0]"),  # no -0.0
        (about(0.25, 0.249), LOSS, "0.250 [0.001, 0.499]", "+0.250 [+0.001, +0.499]"),
        (about(0.25, 0.2499999), LOSS, "0.25 [0.00, 0.50]", "+0.25 [+0.00, +0.50]"),  # nearer than three decimals tell
        (geometric(np.array([0.002 / 50, 0.002, 0.1])), LOSS, "0.002 [1.204e-7, 33.23]", "+0 [+0, +33]"),
    ],
)
def test_intervals(quantity, metric, text, signed):
    assert (interval(quantity, metric), change(quantity, metric)) == (text, signed)


def result(places, **claim):
    spec = {"says": "So.", "tag": "released code", "section": "main.py", "least": 0.0} | claim
    return ClaimResult(validated(Claim, spec), ACCURACY, tuple(places))


PLACES = [
    PlaceResult({"panel": "a"}, about(0.2, 0.1), "holds", "agrees", 0.123, seeds=3, reached=(100, 100)),
    PlaceResult({"panel": "b"}, WIDE, "undecided", seeds=3, reached=(100, 100)),
    PlaceResult({"panel": "c"}, None, "not run"),
]


def test_a_line_for_each_claim():
    of_three = "So. (released code, main.py): 1 holds, 1 undecided, 1 not run"
    assert claims_list([result(PLACES)]) == [f"1. **undecided, partly run**: {of_three}"]
    (line,) = claims_list([result(PLACES[:1], tag="paper", statement="PBC-30")])
    assert line == "1. **holds**: So. (PBC-30, main.py): measured 20.0 [10.0, 30.0] %, printed 12.3 (agrees)"
    assert claims_list([result(PLACES[2:])]) == ["1. **not run**: So. (released code, main.py)"]


def test_the_evidence_on_request():
    cause = {"kind": "unknown", "shown": "Seen.", "command": "rollcall run x", "supposed": "Perhaps."}
    since = {"since": "2026-11-23", "before": "Thus."}
    assert claims_list([result(PLACES[:2], margin=0.01, cause=cause, **since)], why=True) == [
        "1. **undecided**: So. (released code, main.py, reworded after a result): 1 holds, 1 undecided",
        "   - test/accuracy in %, at least 0.0: b: 10.0 [-10.0, 30.0]; a: 20.0 [10.0, 30.0] (printed 12.3: agrees)",
        "   - no difference that matters: within 1.0 points of the bound",
        "   - reworded on 2026-11-23, after a result had been seen; before: Thus.",
        "   - shown (unknown): Seen. `rollcall run x`",
        "   - supposed (unknown): Perhaps.",
    ]


def test_an_end_reads_as_a_bound_only_if_it_is_the_bound():
    """A bound of 12.35 points, the end of a margin of 0.15 at 12.5, and an end at 12.46; bounds of 2 points."""
    near = [PlaceResult({}, about(0.1296, 0.0050), "holds", seeds=3, reached=(100, 100))]
    line, detail, margin = claims_list([result(near, least=0.1235, margin=0.0015)], why=True)
    assert line.endswith("measured 12.96 [12.46, 13.46] %")
    assert detail == "   - test/accuracy in %, at least 12.35: 12.96 [12.46, 13.46]"
    assert margin == "   - no difference that matters: within 0.15 points of the bound"
    assert interval(about(0.01, 0.0096), ACCURACY, bounds=[0.02]) == "1.00 [0.04, 1.96]"
    assert interval(about(0.01, 0.01), ACCURACY, bounds=[0.02]) == "1.0 [0.0, 2.0]"  # they are 0 and the bound
    assert interval(about(0.02, 0.0096), ACCURACY, bounds=[0.03]) == "2.00 [1.04, 2.96]"
    assert interval(about(0.02, 0.0096), ACCURACY) == "2.0 [1.0, 3.0]"


def test_json_has_an_entry_for_each_place():
    told = Told(experiment(), "raw", 1, result(PLACES, tag="paper", statement="PBC-30"))
    entries = json.loads(json.dumps(claims_json([told]), allow_nan=False))
    assert [entry["place"] for entry in entries] == [{"panel": "a"}, {"panel": "b"}, {"panel": "c"}]
    first, _, last = entries
    assert (first["claim"], first["variant"]) == (1, "raw")
    assert (first["statement"], first["section"], first["tag"], first["says"]) == ("PBC-30", "main.py", "paper", "So.")
    assert (first["verdict"], first["size"], first["claim_verdict"]) == ("holds", "agrees", "not run")
    assert (first["printed"], first["measured"]) == (0.123, pytest.approx(0.2))
    assert first["interval"] == pytest.approx([0.1, 0.3], abs=1e-6)
    assert (last["measured"], last["interval"], last["printed"], last["cause"]) == (None, None, None, None)
    open_end = result([PlaceResult({}, estimate([math.inf]), "undecided")])
    assert claims_json([Told(experiment(), "", 1, open_end)])[0]["interval"] is None
