"""REPRODUCTION.md from made-up runs, and the committed one from the committed results."""

from pathlib import Path

import leaderboard
from leaderboard import archive
from leaderboard.cli.shared import papers
from leaderboard.paper.reproduction import NAME, reproduction
from tests.support.results import COMPARED, ends, runs


def test_reproduction_tells_what_was_found(tmp_path, numbers):
    assert "| not run | 1 not run |" in reproduction([COMPARED], tmp_path)
    archive(runs(COMPARED, ends), "paper/fig", ["test/accuracy"], tmp_path)
    raw = COMPARED.as_("as_released").only({"algorithm": ["mifa"]})
    archive(runs(raw, lambda labels, seed: 0.6 + 0.1 * seed), "paper/fig", ["test/accuracy"], tmp_path)
    text = reproduction([COMPARED], tmp_path)
    assert text == reproduction([COMPARED], tmp_path)
    assert "| [paper/fig](#paperfig) | [X] Fig. 1 | 4 of 4 cells | 1 holds |" in text
    assert "1. **holds** (holds at 2): mifa leads\n   - test/accuracy %, difference, at least 10.0: often: 20.0" in text
    # fedavg 0.5, 0.6, 0.7: 0.6 +- 0.248, printed 0.615; mifa 0.8 +- 0.248: 0.615 agrees, 0.4 does not
    assert "Printed numbers: 2 agree, 1 differs." in text
    assert "- seldom, mifa, test/accuracy: 80.0 [55.2, 104.8], printed 40.0" in text
    assert "| often, mifa  | 80.0  | 70.0        | -10.0 [-10.0, -10.0] | 3     | 100    |" in text
    assert "- Seen." in text
    assert "- seldom: mifa; printed: mifa" in text  # fedavg's number is not printed there
    assert "- often: mifa > fedavg; printed: fedavg = mifa" in text
    assert "- `local.lr`: the paper is silent" in text
    assert "15.0" not in text
    short = reproduction([COMPARED.varied({"rounds": [1000]})], tmp_path)
    assert "4 of 4 cells, reduced" in short
    assert "**holds** (reduced)" in short
    assert "Printed numbers: 3 undecided (reduced)." in short


def test_results_of_several_archives_count(tmp_path, numbers):
    archive(runs(COMPARED, ends)[:6], "paper/fig", ["test/accuracy"], tmp_path / "a")
    archive(runs(COMPARED, ends)[6:], "paper/fig", ["test/accuracy"], tmp_path / "b")
    archive(runs(COMPARED, ends), "paper/fig", ["test/accuracy"], tmp_path / "all")
    both = reproduction([COMPARED], tmp_path / "a", tmp_path / "b")
    assert both == reproduction([COMPARED], tmp_path / "all")
    assert "12 runs, 0.12 hours in total; commit abc; " in both  # 36 seconds each


def test_every_verdict_is_explained():
    text = reproduction([])
    for word in ("holds", "fails", "undecided", "not run", "reduced", "agrees"):
        assert f"**{word}**" in text


def test_the_committed_reproduction_is_that_of_the_committed_results():
    committed = Path(leaderboard.__file__).parent / NAME
    assert committed.read_text(encoding="utf-8") == reproduction(papers())
