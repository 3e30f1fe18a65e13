"""Claims counted by hand."""

import pytest

from rollcall.leaderboard.paper.claims import VERDICTS, claim_counts, of_papers
from rollcall.leaderboard.paper.reproduction import Judged
from tests.support.results import experiment, runs

PAPER = {"tag": "paper", "section": "VII, Table I", "statement": "PBC-31"}
ABOVE = {"says": "so", "of": {"algorithm": "mifa"}, "minus": {"algorithm": "fedavg"}}
CLAIMS = [
    ABOVE | PAPER | {"least": 0.1},  # holds: the difference is 0.25 in every seed
    ABOVE | PAPER | {"least": 0.3, "since": "2026-11-20", "before": "It was higher."},  # contradicted, reworded
    ABOVE | PAPER | {"least": 0.3, "section": "Eq. 3", "erratum": "0.25 is right"},
    ABOVE | {"tag": "ours", "least": 0.1},
    ABOVE | {"tag": "released code", "section": "main.py", "least": 0.1},
]
MADE = experiment(
    name="fedpbc/fig",
    claims=CLAIMS,
    variants={
        "as_released": {"about": "x", "trial": {"local": {"lr": 0.5}}, "claims": [CLAIMS[0]]},
        "long": {"about": "y", "trial": {"local": {"lr": 0.25}}, "claims": [CLAIMS[0]]},
    },
)


@pytest.fixture
def told():
    return Judged(MADE, runs(MADE, lambda labels, seed: 0.5 + 0.25 * (labels["algorithm"] == "mifa"))).told


def test_a_sentence_counts_once(told):
    by_code, of_them = "of the papers, by the released code", "of the papers"
    assert [one.kind for one in told] == [*3 * [of_them], "own checks", "about released code", by_code, of_them]
    assert [(one.variant, one.number) for one in of_papers(told)] == [("", 1), ("", 2), ("", 3), ("long", 1)]
    assert {one.paper for one in told} == {"FedPBC"}


def test_rows_of_claims_by_verdict(told):
    rows = {title: dict(zip(VERDICTS, counts, strict=True)) for title, *counts in claim_counts(told)}
    counted = {title: {verdict: one for verdict, one in row.items() if one} for title, row in rows.items()}
    assert counted["FedPBC"] == counted["all of the papers"]
    assert counted["all of the papers"] == {"holds": 1, "contradicted": 1, "erratum": 1, "not run": 1}
    assert counted["- figures and tables with training"] == {"holds": 1, "contradicted": 1, "not run": 1}
    assert counted["- theory"] == {"erratum": 1}
    assert counted["of the papers, by the released code"] == {"not run": 1}
    assert counted["own checks"] == counted["about released code"] == {"holds": 1}
    assert counted["CA-Fed"] == {}
