"""Printed numbers, claims that are counted, and REPRODUCTION.md, from made-up runs by hand and from the committed results."""

import math
import re
from dataclasses import replace
from pathlib import Path

import pytest

from rollcall import leaderboard
from rollcall.leaderboard.cells import cells
from rollcall.leaderboard.kept import papers
from rollcall.leaderboard.paper.claims import VERDICTS, claim_counts, of_papers
from rollcall.leaderboard.paper.experiment import printed
from rollcall.leaderboard.paper.reproduction import MESSAGES, NAME, Judged, messages, reproduction, stated, statements
from rollcall.leaderboard.runs import unarchive
from tests.support.results import COMPARED, ends, experiment, runs

RAW = COMPARED.as_("as_released").only({"algorithm": ["mifa"]})


def of_raw(**options):
    return runs(RAW, lambda labels, seed: 0.6 + 0.1 * seed, **options)


def test_a_variant_is_compared_seed_by_seed_where_it_changes_the_trial(numbers):
    both = Judged(COMPARED, [*runs(COMPARED, ends), *of_raw()])
    table = both.variant_tables["as_released"]
    assert table.titles == ["cell", "as_released", "paper", "difference", "wins"]
    assert table.rows == [  # of fedavg, which the variant leaves as it is, nothing is said
        ["often", "70.0", "80.0", "-10.0 [-10.0, -10.0]†", "0 of 3"],
        ["seldom", "70.0", "80.0", "-10.0 [-10.0, -10.0]†", "0 of 3"],
    ]
    assert "corrected for 2 rows" in table.caption
    seldom = [run for run in of_raw() if "0.1" in run.settings["participation.probability"]]
    uneven = [replace(run, history=run.history.drop(100)) for run in seldom]  # not evaluated in the last round
    rest = [run for run in of_raw() if "0.9" in run.settings["participation.probability"]]
    fewer = Judged(COMPARED, [*runs(COMPARED, ends), *rest, *uneven]).variant_tables["as_released"]
    assert (len(fewer.rows), "corrected for 1 row " in fewer.caption) == (1, True)
    longer = runs(COMPARED, ends, rounds=200, skip=(0, 1))
    for paper_alone in (runs(COMPARED, ends), [*runs(COMPARED, ends, skip=(2,)), *longer]):
        assert Judged(COMPARED, paper_alone).variant_tables == {}


STATED = {"tag": "paper", "statement": "PBC-31", "section": "VII"}
PAPERS = COMPARED.model_copy(update={"claims": tuple(c.model_copy(update=STATED) for c in COMPARED.claims)})


def test_reproduction_tells_what_was_found(numbers):
    nothing, made = Judged(PAPERS, []), Judged(PAPERS, [*runs(COMPARED, ends), *of_raw()])
    before, front = reproduction([nothing]), reproduction([made])
    assert "| FedPBC | 54 | 0 |  |  |  |  |  |  |  | 1 |  |" in before
    assert "| FedPBC | 54 | 1 | 1 |  |  |  |  |  |  |  |  |" in front
    assert "| FedPBC | 1 |" in front
    assert "| all of the papers | 1 |" in front
    message = "| FedPBC | FedPBC is the most accurate method without memory on images, but for one instance of FedAU. | **holds** |"
    assert f"{message}  |  | accuracy, FedPBC less FedAvg" in front  # its number is of a claim that is not here
    assert re.search(r"\d+ core messages: 1 holds, \d+ not run\.", front)
    claims = [(len(own), verdict) for one, own, verdict in stated(made.told) if one.id == "PBC-31"]
    assert claims == [(1, "holds")]
    assert all(f"**{verdict}**" in front for verdict in VERDICTS)  # each is explained


@pytest.mark.full
def test_the_committed_reproduction_is_that_of_the_committed_results():
    made = reproduction([Judged(experiment, unarchive(experiment.home)) for experiment in papers()])
    assert (Path(leaderboard.__file__).parent / NAME).read_text(encoding="utf-8") == made
    assert len(made.splitlines()) <= 150  # it takes three minutes


def test_every_core_message_and_statement_has_claims_or_a_reason():
    """A statement without a claim would leave a message open for ever."""
    parts = [part for experiment in papers() for part in (experiment, *experiment.variants.values())]
    claims = [claim for part in parts for claim in part.claims]
    claimed = {claim.statement for claim in claims} - {None}
    assert set(re.findall(r"\b[A-Z]{3}-\d\d", MESSAGES.read_text(encoding="utf-8"))) <= claimed
    assert all(len(one.message.why.split()) <= 25 for one in messages([]))
    assert all(claim.section for claim in claims if claim.tag != "ours")
    listed = {one.id: one for one in statements()}
    assert len(listed) == len(statements()) == 186
    assert claimed <= set(listed)
    assert [one for one in listed if bool(listed[one].done) == (one in claimed)] == []
    assert all(one.section and one.statement for one in listed.values())


def test_printed_numbers_in_our_units(numbers):
    assert [(number.labels["participation"], number.labels["algorithm"]) for number in numbers] == [
        ("often", "fedavg"), ("often", "mifa"), ("seldom", "mifa"),
    ]  # fmt: skip
    assert (numbers[2].metric.name, numbers[2].value, numbers[2].sd) == ("test/accuracy", 0.4, None)


def test_one_number_for_two_methods_is_nobodys(numbers):
    """In our copy of Table I the rows of FedAvg with known p and MIFA are one row with one set of numbers."""
    for number in numbers[:2]:
        assert (number.value, number.sd) == (None, None)
        assert number.note == "the copy prints 61.5 ± 0.5 once for fedavg or mifa"
    assert numbers[2].note == ""


def test_what_the_paper_never_reached_is_infinite():
    (made,) = papers(["fedpbc/table2"])
    never = [number for number in printed(made) if number.labels == {"panel": "cifar10", "algorithm": "fedavg_all"}]
    assert [number.value for number in never if number.metric.threshold == 0.6] == [math.inf]
    assert [number.value for number in never if number.metric.threshold == 0.3] == [1500.0]


@pytest.mark.full
def test_printed_numbers_belong_to_cells_of_their_experiment():
    """Each number whose labels the experiment has is that of a cell, and most are."""
    for made in (one for one in papers() if one.reported):
        labels = [cell.labels for cell in cells(made, [])]
        known = {axis: {cell.get(axis) for cell in labels} for axis in labels[0]}
        beside = [[cell for cell in labels if number.of(cell)] for number in printed(made)]
        of_known = [all(label in known[axis] for axis, label in number.labels.items()) for number in printed(made)]
        assert [bool(found) for found in beside] == of_known, made.name
        assert sum(of_known) >= len(of_known) / 2 > 0, made.name


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
    assert counted["- figures and tables, from runs"] == {"holds": 1, "contradicted": 1, "not run": 1}
    assert counted["- theory, simulated participation, other analyses"] == {"erratum": 1}
    assert counted["of the papers, by the released code"] == {"not run": 1}
    assert counted["own checks"] == counted["about released code"] == {"holds": 1}
    assert counted["CA-Fed"] == {}
