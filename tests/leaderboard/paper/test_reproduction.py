"""REPRODUCTION.md from made-up runs, by hand, and the committed one from the committed results."""

import math
import re
from dataclasses import replace
from pathlib import Path

import pytest
import yaml

from rollcall import SettingError, leaderboard
from rollcall.benchmark.config.base import validated
from rollcall.benchmark.config.metric import Metric
from rollcall.leaderboard.cells import cells
from rollcall.leaderboard.kept import papers
from rollcall.leaderboard.paper import reproduction as module
from rollcall.leaderboard.paper.claims import VERDICTS
from rollcall.leaderboard.paper.reproduction import (
    MESSAGES,
    NAME,
    Judged,
    Message,
    agreement,
    messages,
    printed_beside,
    reproduction,
    statements,
    variants,
)
from rollcall.leaderboard.runs import archive, unarchive
from tests.support.results import COMPARED, ends, runs


def test_printed_numbers_agree_within_the_interval_and_the_papers_deviation(numbers):
    # fedavg 0.5, 0.6, 0.7: 0.6 +- 0.248; mifa 0.8 +- 0.248: the printed 0.4 is outside. `often` has one number for both.
    assert agreement(COMPARED, cells(COMPARED, runs(COMPARED, ends)), numbers) == [
        "Printed numbers: 1 differ.",
        "",
        "- seldom, mifa, test/accuracy: 80.0 [55.2, 104.8], printed 40.0",
        "",
    ]
    alone = [replace(number, value=0.615, sd=0.005, among=(), shared="") for number in numbers[:1]]
    # 0.6205 +- 0.00025, less 0.005, is above 0.615; 0.6201 +- 0.00025, less 0.005, is not
    above = cells(COMPARED, runs(COMPARED, lambda labels, seed: 0.6204 + 0.0001 * seed))
    assert agreement(COMPARED, above, alone)[0] == "Printed numbers: 1 differ."
    within = cells(COMPARED, runs(COMPARED, lambda labels, seed: 0.62 + 0.0001 * seed))
    assert agreement(COMPARED, within, alone)[0] == "Printed numbers: 1 agree."
    assert agreement(COMPARED, cells(COMPARED, []), numbers) == []


def test_a_printed_round_is_beside_the_round_of_the_mean_curve(numbers):
    """Two seeds reach 0.5 in round 10 and one never does, so the mean curve, 2/3, reaches it in round 10."""
    reached = Metric("round_of:test/accuracy>=0.5", "min")
    alone = [replace(number, metric=reached, value=10, sd=None, among=(), shared="") for number in numbers[:1]]
    curves = runs(COMPARED, lambda labels, seed: [0.0] + 10 * [0.0 if seed == 2 else 1.0])
    ((_, _, _, quantity),) = printed_beside(cells(COMPARED, curves), alone, 1)
    assert quantity.mean == 10
    assert math.isinf(quantity.interval()[1])


def test_short_few_and_diverged_runs_are_not_judged(numbers):
    expected = "Printed numbers: 1 not judged (fewer rounds or seeds than printed, or diverged)."
    diverged = [replace(run, tags=run.tags | {"rollcall.diverged": "50"}) for run in runs(COMPARED, ends, skip=(1, 2))]
    for made in (
        runs(COMPARED, ends, rounds=50),
        runs(COMPARED, ends, skip=(2,)),
        [*diverged, *runs(COMPARED, ends, skip=(0,))],
    ):
        assert agreement(COMPARED, cells(COMPARED, made), numbers)[0] == expected


def test_a_variant_is_compared_seed_by_seed_where_it_changes_the_trial(numbers):
    released = COMPARED.as_("as_released").only({"algorithm": ["mifa"]})
    both = [*runs(COMPARED, ends), *runs(released, lambda labels, seed: 0.6 + 0.1 * seed)]
    lines = variants(Judged(COMPARED, both))
    assert lines[0] == "`as_released`: raw updates"
    rows = [[cell.strip() for cell in line.strip("| ").split("|")] for line in lines[2].splitlines()[2:4]]
    assert rows == [  # of fedavg, which the variant leaves as it is, nothing is said
        ["often, mifa", "80.0", "70.0", "-10.0 [-10.0, -10.0]", "3", "100"],
        ["seldom, mifa", "80.0", "70.0", "-10.0 [-10.0, -10.0]", "3", "100"],
    ]
    longer = runs(COMPARED, ends, rounds=200, skip=(0, 1))
    for paper_alone in (runs(COMPARED, ends), [*runs(COMPARED, ends, skip=(2,)), *longer]):
        assert variants(Judged(COMPARED, paper_alone)) == []
    alone = runs(released, lambda labels, seed: 0.6 + 0.1 * seed)  # then the printed numbers stand beside the variant's
    elsewhere = runs(COMPARED.only({"algorithm": ["fedavg"]}), ends)
    for made in (alone, [*alone, *elsewhere]):  # also if other cells of the paper were run
        table = variants(Judged(COMPARED, made))[2]
        assert "often test accuracy %" in table
        assert "70.0 ± 10.0" in table
        assert list(Judged(COMPARED, made).apart) == ["as_released"]
    # The variant ends after 50 of 100 rounds, where the paper's runs were not evaluated: it has a table of its own.
    shorter = runs(released, lambda labels, seed: 0.6 + 0.1 * seed, rounds=50)
    table = variants(Judged(COMPARED, [*runs(COMPARED, ends), *shorter]))[2]
    assert "often test accuracy %" in table
    assert "nan" not in table
    assert not Judged(COMPARED, both).apart
    assert not Judged(COMPARED, runs(COMPARED, ends)).apart


PBC = "reproduction/statements/PBC.md"
STATED = {"tag": "paper", "statement": "PBC-31", "section": "VII"}
PAPERS = COMPARED.model_copy(update={"claims": tuple(c.model_copy(update=STATED) for c in COMPARED.claims)})


def pages(experiment, *folders):
    return reproduction([Judged(experiment, unarchive(experiment.home, *folders))])


def test_reproduction_tells_what_was_found(tmp_path, numbers):
    nothing = pages(PAPERS, tmp_path)
    assert re.search(r"- <a id=\"PBC-31\"></a>PBC-31 \(VII-B\) .*: \*\*not run\*\*\n   - \[paper/fig\]", nothing[PBC])
    assert (
        "| [FedPBC](reproduction/statements/PBC.md) | 54 | 1 |  |  |  | 1 |  |  |  | 1 |  |" in nothing[NAME]
    )  # PBC-29
    archive(runs(COMPARED, ends), "paper/fig", ["test/accuracy"], tmp_path)
    raw = COMPARED.as_("as_released").only({"algorithm": ["mifa"]})
    archive(runs(raw, lambda labels, seed: 0.6 + 0.1 * seed), "paper/fig", ["test/accuracy"], tmp_path)
    made = pages(PAPERS, tmp_path)
    assert made == pages(PAPERS, tmp_path)
    of_papers = [f"reproduction/statements/{prefix}.md" for prefix in ("PBC", "SUN", "FOC", "CAF", "HAR")]
    assert list(made) == [NAME, *of_papers, "reproduction/paper/fig.md"]
    front, text = made[NAME], made["reproduction/paper/fig.md"]
    assert "| [FedPBC](reproduction/statements/PBC.md) | 54 | 2 | 1 |  |  | 1 |  |  |  |  |  |" in front  # PBC-29
    assert "Experiments: [paper/fig](reproduction/paper/fig.md)." in front
    assert "| FedPBC | 1 |" in front
    assert "| all of the papers | 1 |" in front
    message = "| FedPBC | FedPBC is the most accurate method without memory on images. | **holds** |"
    assert f"{message}  |  | accuracy, FedPBC less FedAvg" in front  # its number is of a claim that is not here
    assert re.search(r"\d+ core messages: 1 holds, \d+ not run\.", front)
    assert "   - [paper/fig](../paper/fig.md#1) **holds**: mifa leads (PBC-31, VII)" in made[PBC]
    assert '1. <a id="1"></a>**holds**: mifa leads' in text
    assert "   - test/accuracy %, difference, at least 10.0: often: 20.0; seldom: 20.0" in text
    assert "Printed numbers: 1 differ." in text
    assert "| often, mifa  | 80.0  | 70.0        | -10.0 [-10.0, -10.0] | 3     | 100    |" in text
    assert "- Seen." in text
    assert "- `local.lr`: the paper is silent" in text
    assert "](../../figures/paper/fig.svg)" in text
    short = pages(PAPERS.varied({"rounds": [1000]}), tmp_path)
    assert "**too short**: mifa leads" in short[PBC]
    assert "1 not judged (fewer rounds or seeds" in short["reproduction/paper/fig.md"]


def test_a_core_message_has_the_numbers_of_the_place_that_it_names(tmp_path, monkeypatch):
    """Mifa is 0.2 above FedAvg in every seed; the paper prints 0.25."""
    message = {"paper": "PBC", "message": "Mifa leads.", "statements": ["PBC-31"], "why": "so", "number": "PBC-31"}
    place = {"participation": "seldom"}
    (tmp_path / "messages.yaml").write_text(
        yaml.safe_dump([message | {"place": place}, message | {"number": "PBC-32"}])
    )
    monkeypatch.setattr(module, "MESSAGES", tmp_path / "messages.yaml")
    made = PAPERS.model_copy(update={"claims": tuple(c.model_copy(update={"printed": 0.25}) for c in PAPERS.claims)})
    told = Judged(made, runs(made, ends, rounds=100)).told
    one, other = messages(told)
    assert (one.verdict, one.printed, one.size) == ("holds", "25.0 points", "3 seeds")
    assert one.measured == "20.0 points"
    assert (other.verdict, other.printed, other.measured) == ("holds", "", "")
    with pytest.raises(SettingError, match=r"why: .* has 26 words; must have at most 25"):
        validated(Message, message | {"why": "so " * 26})


def test_own_checks_are_counted_apart(tmp_path, numbers):
    archive(runs(COMPARED, ends), "paper/fig", ["test/accuracy"], tmp_path)
    front = pages(COMPARED, tmp_path)[NAME]
    assert "| own checks | 1 |" in front
    assert "| all of the papers |  |" in front
    assert "mifa leads" not in front


def test_results_of_several_archives_count(tmp_path, numbers):
    archive(runs(COMPARED, ends)[:6], "paper/fig", ["test/accuracy"], tmp_path / "a")
    archive(runs(COMPARED, ends)[6:], "paper/fig", ["test/accuracy"], tmp_path / "b")
    archive(runs(COMPARED, ends), "paper/fig", ["test/accuracy"], tmp_path / "all")
    both = pages(COMPARED, tmp_path / "a", tmp_path / "b")
    assert both == pages(COMPARED, tmp_path / "all")
    assert "12 runs, 0.12 hours in total; commit abc; " in both["reproduction/paper/fig.md"]  # 36 seconds each
    assert "machine not recorded" in both["reproduction/paper/fig.md"]


def test_every_verdict_is_explained():
    text = reproduction([])[NAME]
    for verdict in VERDICTS:
        assert f"**{verdict}**" in text


@pytest.fixture(scope="module")
def committed():
    return reproduction([Judged(experiment, unarchive(experiment.home)) for experiment in papers()])


def test_the_committed_reproduction_is_that_of_the_committed_results(committed):
    folder = Path(leaderboard.__file__).parent
    for path, text in committed.items():
        assert (folder / path).read_text(encoding="utf-8") == text, path


def test_the_front_page_takes_three_minutes(committed):
    assert len(committed[NAME].splitlines()) <= 150
    links = re.findall(r"\]\((reproduction/[^)#]+)", committed[NAME])
    assert set(links) == set(committed) - {NAME}


def test_every_core_message_has_claims():
    """A statement without a claim would leave a message open for ever."""
    parts = [part for experiment in papers() for part in (experiment, *experiment.variants.values())]
    claims = [claim for part in parts for claim in part.claims]
    claimed = {claim.statement for claim in claims}
    named = set(re.findall(r"\b[A-Z]{3}-\d\d", MESSAGES.read_text(encoding="utf-8")))
    assert named <= claimed
    assert all(claim.section for claim in claims if claim.tag != "ours")


def test_every_statement_has_a_claim_or_a_reason():
    variants = [variant for experiment in papers() for variant in experiment.variants.values()]
    claimed = {claim.statement for part in (*papers(), *variants) for claim in part.claims} - {None}
    listed = {one.id: one for one in statements()}
    assert len(listed) == len(statements()) == 186
    assert claimed <= set(listed)
    assert [one for one in listed if bool(listed[one].done) == (one in claimed)] == []
    assert all(one.section and one.statement for one in listed.values())
