"""Judged experiments and REPRODUCTION.md from made-up runs, by hand, and the committed one from the committed results."""

import re
from pathlib import Path

import pytest

from rollcall import leaderboard
from rollcall.leaderboard.kept import papers
from rollcall.leaderboard.paper.claims import VERDICTS
from rollcall.leaderboard.paper.reproduction import (
    MESSAGES,
    NAME,
    Judged,
    messages,
    reproduction,
    stated,
    statements,
)
from rollcall.leaderboard.runs import unarchive
from tests.support.results import COMPARED, ends, runs

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
    longer = runs(COMPARED, ends, rounds=200, skip=(0, 1))
    for paper_alone in (runs(COMPARED, ends), [*runs(COMPARED, ends, skip=(2,)), *longer]):
        assert Judged(COMPARED, paper_alone).variant_tables == {}


STATED = {"tag": "paper", "statement": "PBC-31", "section": "VII"}
PAPERS = COMPARED.model_copy(update={"claims": tuple(c.model_copy(update=STATED) for c in COMPARED.claims)})


def test_reproduction_tells_what_was_found(numbers):
    nothing, made = Judged(PAPERS, []), Judged(PAPERS, [*runs(COMPARED, ends), *of_raw()])
    before, front = reproduction([nothing]), reproduction([made])
    assert "| FedPBC | 54 | 1 |  |  |  | 1 |  |  |  | 1 |  |" in before  # PBC-29
    assert "| FedPBC | 54 | 2 | 1 |  |  | 1 |  |  |  |  |  |" in front
    assert "| FedPBC | 1 |" in front
    assert "| all of the papers | 1 |" in front
    message = "| FedPBC | FedPBC is the most accurate method without memory on images. | **holds** |"
    assert f"{message}  |  | accuracy, FedPBC less FedAvg" in front  # its number is of a claim that is not here
    assert re.search(r"\d+ core messages: 1 holds, \d+ not run\.", front)
    (claims,) = ([(own, verdict) for one, own, verdict in stated(made.told) if one.id == "PBC-31"],)
    assert [(len(own), verdict) for own, verdict in claims] == [(1, "holds")]
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
