"""Judged experiments and REPRODUCTION.md from made-up runs, by hand, and the committed one from the committed results."""

import math
import re
from dataclasses import replace
from pathlib import Path

import pytest
import yaml

from rollcall import leaderboard
from rollcall.benchmark.config.metric import Metric
from rollcall.leaderboard.cells import cells
from rollcall.leaderboard.figures.intervals import printed_beside
from rollcall.leaderboard.kept import papers
from rollcall.leaderboard.paper import reproduction as module
from rollcall.leaderboard.paper.claims import VERDICTS
from rollcall.leaderboard.paper.reproduction import (
    MESSAGES,
    NAME,
    Judged,
    messages,
    origin,
    overrides,
    reproduction,
    stated,
    statements,
)
from rollcall.leaderboard.runs import unarchive
from tests.support.results import COMPARED, ends, experiment, runs


def test_a_printed_round_is_beside_the_round_of_the_mean_curve(numbers):
    """Two seeds reach 0.5 in round 10 and one never does, so the mean curve, 2/3, reaches it in round 10."""
    reached = Metric("round_of:test/accuracy>=0.5", "min")
    alone = [replace(number, metric=reached, value=10, sd=None, among=(), shared="") for number in numbers[:1]]
    curves = runs(COMPARED, lambda labels, seed: [0.0] + 10 * [0.0 if seed == 2 else 1.0])
    ((_, _, _, quantity),) = printed_beside(cells(COMPARED, curves), alone, 1)
    assert quantity.mean == 10
    assert math.isinf(quantity.interval()[1])


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


def test_a_variant_that_shares_no_cell_has_a_table_of_its_own(numbers):
    """Also if other cells of the paper were run, or the variant's rounds end where the paper's were not evaluated."""
    elsewhere = runs(COMPARED.only({"algorithm": ["fedavg"]}), ends)
    for made in (of_raw(), [*of_raw(), *elsewhere], [*runs(COMPARED, ends), *of_raw(rounds=50)]):
        one = Judged(COMPARED, made)
        table = one.variant_tables["as_released"]
        assert "often test accuracy %" in table.titles
        assert "nan" not in " ".join(map(str, table.rows[0]))
    assert not Judged(COMPARED, runs(COMPARED, ends)).variant_tables


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


def test_a_core_message_has_the_numbers_of_the_place_that_it_names(tmp_path, monkeypatch):
    """Mifa is 0.2 above FedAvg in every seed; the paper prints 0.25."""
    message = {"paper": "PBC", "message": "Mifa leads.", "statements": ["PBC-31"], "why": "so", "number": "PBC-31"}
    place = {"participation": "seldom"}
    (tmp_path / "messages.yaml").write_text(
        yaml.safe_dump([message | {"place": place}, message | {"number": "PBC-32"}])
    )
    monkeypatch.setattr(module, "MESSAGES", tmp_path / "messages.yaml")
    made = PAPERS.model_copy(update={"claims": tuple(c.model_copy(update={"printed": 0.25}) for c in PAPERS.claims)})
    one, other = messages(Judged(made, runs(made, ends, rounds=100)).told)
    assert (one.verdict, one.printed, one.size) == ("holds", "25.0 points", "3 seeds")
    assert one.measured == "20.0 points"
    assert (other.verdict, other.printed, other.measured) == ("holds", "", "")


def test_own_checks_are_counted_apart(numbers):
    front = reproduction([Judged(COMPARED, runs(COMPARED, ends))])
    assert "| own checks | 1 |" in front
    assert "| all of the papers |  |" in front


def test_where_results_come_from_and_which_settings_differ():
    assert origin(runs(COMPARED, ends)).startswith("12 runs, 0.12 hours in total; commit abc; ")  # 36 seconds each
    assert "machine not recorded" in origin(runs(COMPARED, ends))
    made = experiment(overrides=[{"when": {"algorithm": ["mifa"]}, "set": {"local.lr": 0.2}, "found": "by hand"}])
    assert overrides(made) == {"mifa": "local.lr 0.2 (by hand)"}


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
