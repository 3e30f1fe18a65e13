"""REPRODUCTION.md from made-up runs, and the committed one from the committed results."""

import re
from pathlib import Path

import pytest

from rollcall import leaderboard
from rollcall.leaderboard.cli.papers import papers
from rollcall.leaderboard.paper.claims import VERDICTS
from rollcall.leaderboard.paper.reproduction import MESSAGES, NAME, judged, reproduction
from rollcall.leaderboard.runs import archive
from tests.support.results import COMPARED, ends, runs

STATED = {"tag": "paper", "statement": "PBC-31", "section": "VII"}
PAPERS = COMPARED.model_copy(update={"claims": tuple(c.model_copy(update=STATED) for c in COMPARED.claims)})


def pages(experiment, *folders):
    return reproduction([judged(experiment, *folders)])


def test_reproduction_tells_what_was_found(tmp_path, numbers):
    nothing = pages(PAPERS, tmp_path)
    assert "- [paper/fig](reproduction/paper/fig.md) **not run**: 1 claim (PBC-31)" in nothing[NAME]
    archive(runs(COMPARED, ends), "paper/fig", ["test/accuracy"], tmp_path)
    raw = COMPARED.as_("as_released").only({"algorithm": ["mifa"]})
    archive(runs(raw, lambda labels, seed: 0.6 + 0.1 * seed), "paper/fig", ["test/accuracy"], tmp_path)
    made = pages(PAPERS, tmp_path)
    assert made == pages(PAPERS, tmp_path)
    assert list(made) == [NAME, "reproduction/paper/fig.md"]
    front, text = made.values()
    assert "| FedPBC | 1 |" in front
    assert "| all of the papers | 1 |" in front
    assert re.search(
        r"\| FedPBC \| FedPBC is the most accurate method without memory on images. \| \*\*yes\*\* \|", front
    )
    assert "- [paper/fig](reproduction/paper/fig.md#1) **holds**: mifa leads (PBC-31, VII)" in front
    assert '1. <a id="1"></a>**holds**: mifa leads' in text
    assert (
        "   - test/accuracy %, difference, at least 10.0: often: 20.0 [20.0, 20.0]; seldom: 20.0 [20.0, 20.0]" in text
    )
    assert "Printed numbers: 1 differ." in text
    assert "- seldom, mifa, test/accuracy: 80.0 [55.2, 104.8], printed 40.0" in text
    assert "| often, mifa  | 80.0  | 70.0        | -10.0 [-10.0, -10.0] | 3     | 100    |" in text
    assert "- Seen." in text
    assert "- `local.lr`: the paper is silent" in text
    assert "](../../figures/paper/fig.png)" in text
    short = pages(PAPERS.varied({"rounds": [1000]}), tmp_path)
    assert "**too short**: mifa leads" in short[NAME]
    assert "1 not judged (fewer rounds or seeds" in short["reproduction/paper/fig.md"]


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


def test_every_verdict_is_explained():
    text = reproduction([])[NAME]
    for verdict in VERDICTS:
        assert f"**{verdict}**" in text


@pytest.fixture(scope="module")
def committed():
    return reproduction([judged(experiment) for experiment in papers()])


def test_the_committed_reproduction_is_that_of_the_committed_results(committed):
    folder = Path(leaderboard.__file__).parent
    for path, text in committed.items():
        assert (folder / path).read_text(encoding="utf-8") == text, path


def test_the_front_page_takes_three_minutes(committed):
    assert len(committed[NAME].splitlines()) <= 150
    assert "sun/fig1.md#1" in committed[NAME]


def test_every_core_message_has_claims():
    """A statement without a claim would leave a message open for ever."""
    claims = [claim for experiment in papers() for claim in experiment.claims]
    claimed = {claim.statement for claim in claims}
    named = set(re.findall(r"\b[A-Z]{3}-\d\d", MESSAGES.read_text(encoding="utf-8")))
    assert named <= claimed
    assert all(claim.section for claim in claims if claim.tag != "ours")
