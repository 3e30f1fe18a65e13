"""Claims and intervals in words and as JSON."""

import io
import json
import math
from dataclasses import dataclass

import numpy as np
import pytest
from rich.console import Console

from rollcall.benchmark.config.base import validated
from rollcall.benchmark.config.metric import Metric
from rollcall.leaderboard.paper.claims import ClaimResult, PlaceResult, Told
from rollcall.leaderboard.paper.experiment import Claim
from rollcall.leaderboard.paper.quantities import estimate, geometric
from rollcall.leaderboard.paper.sentences import change, claims_json, claims_list, claims_table, interval, tally_of
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
        (geometric(np.array([0.002 / 50, 0.002, 0.1])), LOSS, "0.002 [1.204e-7, 33.23]", "+0 [+0, +33]"),
    ],
)
def test_intervals(quantity, metric, text, signed):
    assert (interval(quantity, metric), change(quantity, metric)) == (text, signed)


ROUND = Metric("round_of:test/accuracy>=0.3")


@dataclass
class Between:
    """A quantity with these numbers."""

    mean: float
    low: float
    high: float
    seeds: int = 3

    def interval(self, level=0.95):
        return self.low, self.high


@pytest.mark.parametrize(
    ("quantity", "text", "signed"),
    [
        (Between(-math.inf, -math.inf, -150.0), "below -150", "below -150"),
        (Between(math.inf, 150.0, math.inf), "above 150", "above +150"),
        (Between(-150.0, -math.inf, 115.0), "-150, below 115", "-150, below +115"),
    ],
)
def test_an_interval_without_one_end(quantity, text, signed):
    """Of the difference of two rounds, one of which may not have been reached."""
    assert (interval(quantity, ROUND), change(quantity, ROUND)) == (text, signed)


def test_counted_verdicts():
    assert tally_of(["holds", "contradicted", "holds", "not run"]) == "2 hold, 1 contradicted, 1 not run"
    assert tally_of(["contradicted", "undecided", "undecided"]) == "1 contradicted, 2 undecided"
    assert tally_of([]) == ""


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


def test_a_terminal_has_a_row_for_each_claim_with_its_whole_sentence():
    long = result(PLACES[:1], statement="PBC-30", tag="paper", says=f"{'Word ' * 30}end.")
    console = Console(width=80, record=True, file=io.StringIO())
    console.print(claims_table([result(PLACES), long]))
    text = console.export_text()
    assert max(map(len, text.splitlines())) <= 80
    lines = [line.split() for line in text.splitlines()]
    assert ["1", "undecided,", "partly", "run", "So.", "1", "holds,", "1", "undecided"] in lines
    (row,) = (line for line in lines if line[:2] == ["2", "holds"])
    assert row[-3:] == ["20.0", "%", "12.3"]
    assert "end." in text
    assert sum(line.count("Word") for line in lines) == 30


def test_the_evidence_on_request():
    cause = {"kind": "unknown", "shown": "Seen.", "command": "rollcall run x", "supposed": "Perhaps."}
    since = {"since": "2026-11-23", "before": "Thus."}
    assert claims_list([result(PLACES[:2], most=0.5, margin=0.01, cause=cause, **since)], why=True) == [
        "1. **undecided**: So. (released code, main.py): 1 holds, 1 undecided",
        "   - test/accuracy in %, at least 0.0 and at most 50.0: b: 10.0 [-10.0, 30.0]; "
        "a: 20.0 [10.0, 30.0] (printed 12.3: agrees)",
        "   - no difference that matters: within 1.0 of the bound",
        "   - reworded on 2026-11-23, after a result had been seen; before: Thus.",
        "   - shown (unknown): Seen. `rollcall run x`",
        "   - supposed (unknown): Perhaps.",
    ]


def test_a_place_that_contradicts_by_chance_does_not_contradict_the_claim():
    places = [PLACES[0], PlaceResult({"panel": "b"}, about(-0.1, 0.099), "contradicted")]
    verdict, _, details, *_ = claims_list([result(places)], why=True)
    assert verdict == "1. **undecided**: So. (released code, main.py): 1 holds, 1 contradicted"
    assert details == "   - no place contradicts it with intervals of 97.5 %, which so many comparisons need"


@pytest.mark.parametrize(
    ("relation", "line"),
    [
        ({"minus": {"panel": "x"}}, "   - test/accuracy, difference in percentage points, at least 0.0: 10.0 [-10.0, 30.0]"),
        ({"along": "panel"}, "   - test/accuracy, step in percentage points, at least 0.0: 10.0 [-10.0, 30.0]"),
        ({"slope": "T"}, "   - test/accuracy, exponent over T, at least 0: 0.10 [-0.10, 0.30]"),
        ({"over": {"panel": "x"}}, "   - test/accuracy, ratio, at least 0: 0.10 [-0.10, 0.30]"),  # no percent
    ],
)  # fmt: skip
def test_a_claim_about_one_comparison(relation, line):
    assert claims_list([result([PlaceResult({}, WIDE, "undecided")], **relation)], why=True)[1] == line


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
    open_end = ClaimResult(
        validated(Claim, {"says": "", "tag": "ours", "least": 0}),
        LOSS,
        (PlaceResult({}, estimate([math.inf]), "undecided"),),
    )
    assert claims_json([Told(experiment(), "", 1, open_end)])[0]["interval"] is None
