"""`rollcall leaderboard` of a paper's experiment, from archives alone."""

import csv
import io
import json
import re
from dataclasses import replace
from pathlib import Path
from urllib.parse import unquote

import pytest

from rollcall.benchmark.config.experiment import file_of
from rollcall.benchmark.search.board import Board
from rollcall.leaderboard import standing
from rollcall.leaderboard.frames import runs
from tests.support.command import rollcall, write
from tests.support.results import keep


@pytest.fixture
def file(tmp_path, monkeypatch):
    """A paper's experiment in a working directory whose archive has its runs: fedavg at 2, fedpbc at 1."""
    monkeypatch.chdir(tmp_path)
    claim = {"says": "FedPBC ends nearer", "tag": "ours", "of": {"algorithm": "fedpbc"}, "most": 0.0}
    claims = [claim | {"minus": {"algorithm": "fedavg"}}]
    path = write(tmp_path, "mine", source="[X] Fig. 1", about="Nearer & nearer", claims=claims)
    keep(path, loss=True)
    return path


def test_the_files_of_a_papers_table(file, tmp_path, capsys):
    code, out, _ = rollcall(capsys, "leaderboard", file)
    assert code == 0
    assert "1. undecided: FedPBC ends nearer" in " ".join(out.split())
    folder = tmp_path / "runs" / "mine"
    names = {path.name for path in folder.iterdir() if path.is_file()}
    assert names >= {f"leaderboard.{end}" for end in ("md", "csv", "tex", "svg", "pdf", "png")}
    text = (folder / "leaderboard.md").read_text()
    assert text.startswith("# Tiny\n\n| algorithm |")
    assert "1. **undecided**: FedPBC ends nearer" in text


def test_forms_and_metrics(file, capsys):
    rows = list(csv.DictReader(io.StringIO(rollcall(capsys, "leaderboard", file, "--format", "csv")[1])))
    told = [(row["algorithm"], float(row["mean"]), row["planned"]) for row in rows]
    assert told == [("fedavg", 2.0, "20"), ("fedpbc", 1.0, "20")]
    data = json.loads(rollcall(capsys, "leaderboard", file, "--metric", "train/loss=min", "--json")[1])
    assert list(data) == ["rows", "claims", "provenance"]
    told = [(row["metric"], row["mean"], row["sd"], row["evaluations"]) for row in data["rows"]]
    assert told == [("train/loss", 3.0, 0.0, 1)] * 2
    assert [(claim["says"], claim["verdict"]) for claim in data["claims"]] == [("FedPBC ends nearer", "undecided")]
    assert data["provenance"]["commit"] == ["abc"]
    assert "\n\\begin{tabular}{lrrr}\n" in rollcall(capsys, "leaderboard", file, "--format", "latex")[1]


def test_without_results_nothing_was_run_and_the_next_step_can_be_copied(file, capsys):
    """The file's path, and the store if it is not the default; quoted for a shell."""
    code, _, err = rollcall(capsys, "leaderboard", file, "--mine")
    assert code == 2
    assert err == f"error: experiment: 'mine' has no finished run in runs; first: rollcall run {file}\n"
    _, _, err = rollcall(capsys, "leaderboard", file, "--mine", "--store", "my runs")
    assert err.endswith(f"first: rollcall run {file} --store 'my runs'\n")


def test_a_baseline_in_every_form(file, tmp_path, capsys):
    """Two seeds have no interval: fedpbc is 1 below fedavg. The rows of a paper's experiment are ranked then."""
    code, out, _ = rollcall(capsys, "leaderboard", file, "--against", "fedavg")
    assert code == 0
    assert "minus fedavg" in " ".join(out.split())
    rows = json.loads(rollcall(capsys, "leaderboard", file, "--against", "fedavg", "--json")[1])["rows"]
    told = [(row["labels"], row.get("difference"), row.get("losses")) for row in rows]
    assert told == [({"algorithm": "fedpbc"}, -1.0, 0), ({"algorithm": "fedavg"}, None, None)]
    folder = tmp_path / "runs" / "mine"
    assert "difference" in (folder / "leaderboard.csv").read_text().splitlines()[0]
    assert "| minus FedAvg |" in (folder / "leaderboard.md").read_text()
    tex = (folder / "leaderboard.tex").read_text()  # a paper has display names
    assert "minus FedAvg" in tex
    assert "\nFedPBC & " in tex
    code, _, err = rollcall(capsys, "leaderboard", file, "--against", "fedavgg")
    line = "error: against: 'fedavgg' is not allowed; must be one of fedpbc, fedavg. Did you mean fedavg?\n"
    assert (code, err) == (2, line)


def test_kept_runs_of_other_cells_stand_beside_the_users(tmp_path, monkeypatch, capsys):
    """Kept: fedavg at 2, fedpbc at 1. The user's fedpbc replaces the kept one, and competes after equal rounds only."""
    monkeypatch.chdir(tmp_path)
    path = write(tmp_path, "mine")
    keep(path)
    own = ("run", path, "--only", "algorithm=fedpbc", "--executor", "inline")
    assert rollcall(capsys, *own, "--rounds", "10")[0] == 0
    assert "must be one of fedpbc" in rollcall(capsys, "leaderboard", path, "--against", "fedavg")[2]
    assert rollcall(capsys, "leaderboard", path, "--against", "fedpbc", "--html", "pages")[0] == 0
    page = Path("pages/experiments/mine.html").read_text()
    assert ("FedPBC</a>" in page, "FedAvg</a>" in page) == (True, False)
    assert rollcall(capsys, *own)[0] == 0
    data = json.loads(rollcall(capsys, "leaderboard", path, "--against", "fedavg", "--json")[1])
    means = {row["labels"]["algorithm"]: row["mean"] for row in data["rows"]}
    assert means["fedavg"] == 2.0
    assert [row["difference"] for row in data["rows"] if "difference" in row] == [pytest.approx(means["fedpbc"] - 2.0)]
    assert data["provenance"]["sources"] == ["kept", "own"]
    assert means["fedpbc"] != 1.0
    alone = json.loads(rollcall(capsys, "leaderboard", path, "--json")[1])["rows"]
    assert [row["labels"]["algorithm"] for row in alone] == ["fedpbc"]
    assert "must be one of fedpbc" in rollcall(capsys, "leaderboard", path, "--against", "fedavg", "--mine")[2]


def test_a_method_of_ones_own_is_on_the_axes_of_a_ranking(tmp_path, monkeypatch, capsys):
    """Panels are told apart by their probabilities; after `--set` no run is of a panel."""
    monkeypatch.chdir(tmp_path)
    Path("mine.py").write_text("from rollcall.algorithms.fedavg import FedAvg\n\n\nclass Mine(FedAvg):\n    pass\n")
    panels = {str(p): {"trial": {"participation": {"name": "bernoulli", "probability": p}}} for p in (0.9, 0.2)}
    path = write(tmp_path, "mine", panels=panels)
    options = ("--algorithm", "mine.py:Mine", "--seeds", "0", "--rounds", "2", "--executor", "inline")
    assert rollcall(capsys, "run", path, *options)[0] == 0

    def rows(*only):
        conditions = [word for condition in only for word in ("--only", condition)]
        found = json.loads(rollcall(capsys, "leaderboard", path, *conditions, "--json")[1])["rows"]
        return {tuple(row["labels"].values()) for row in found}

    methods = ("fedavg", "fedpbc", "Mine")
    assert rows() == {(method, panel) for method in methods for panel in panels}
    assert rows("panel=0.9") == {(method,) for method in methods}
    assert rows("panel=0.9", "algorithm=Mine") == {("Mine",)}
    found = runs("runs", path)
    assert set(zip(found["algorithm"], found["panel"], strict=True)) == rows()
    changed = ("--only", "panel=0.9", "--set", "local.lr=0.2", "--store", "other")
    assert rollcall(capsys, "run", path, *changed, *options)[0] == 0
    off = rollcall(capsys, "leaderboard", path, "--only", "panel=0.9", "--store", "other")[2]
    assert off == "error: only: 'panel' is not allowed; after --set or --tuned no run is on it\n"
    assert set(runs("other", path)["local.lr"]) == {0.2}


def test_a_board_without_entries_says_how_to_enter_one(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    Path("my.yaml").write_text(file_of("standard/digits").read_text())
    code, _, err = rollcall(capsys, "leaderboard", "my.yaml", "--mine")
    assert (code, err) == (2, "error: my: has no entries; first: rollcall enter METHOD --board my.yaml\n")


def test_the_ranking_of_a_variant_has_its_runs_alone(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    fast = {"about": "faster", "trial": {"local": {"lr": 0.5}}}
    path = write(tmp_path, "mine", variants={"fast": fast})
    run = ("run", path, "--seeds", "0", "--rounds", "2", "--executor", "inline")
    assert rollcall(capsys, *run)[0] == 0
    code, _, err = rollcall(capsys, "leaderboard", path, "--variant", "fast")
    assert (code, "has no finished run" in err) == (2, True)
    assert rollcall(capsys, *run, "--variant", "fast", "--only", "algorithm=fedavg")[0] == 0
    rows = json.loads(rollcall(capsys, "leaderboard", path, "--variant", "fast", "--json")[1])["rows"]
    assert [row["labels"] for row in rows] == [{"algorithm": "fedavg"}]


def test_analyses_of_ones_own_have_rows(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    code = (
        "import pandas as pd\n\n\ndef theory(seed, *, p):\n    return pd.DataFrame({'round': [1], 'bias': [2 * p]})\n"
    )
    Path("mine.py").write_text(code)
    panels = {"": {"analysis": {"name": "mine.py:theory"}, "grid": {"analysis.p": [0.1, 0.2]}}}
    path = write(tmp_path, "mine", trial={}, grid={}, panels=panels, report={"metrics": {"bias": "zero"}})
    assert rollcall(capsys, "run", path, "--executor", "inline")[0] == 0
    rows = json.loads(rollcall(capsys, "leaderboard", path, "--json")[1])["rows"]
    assert {(*row["labels"].values(), row["mean"]) for row in rows} == {("theory", "0.1", 0.2), ("theory", "0.2", 0.4)}


def test_a_misspelt_metric_of_a_paper_is_told_what_was_measured(file, capsys):
    assert rollcall(capsys, "run", file, "--rounds", "2", "--executor", "inline")[0] == 0
    code, _, err = rollcall(capsys, "leaderboard", file, "--mine", "--metric", "train/distnce=min")
    assert (code, "Measured: " in err, "train/loss" in err) == (2, True, True)


def test_a_file_of_claims_may_be_empty(file, capsys):
    beside = Path("mine.claims.yaml")
    beside.touch()
    assert rollcall(capsys, "leaderboard", file)[0] == 0
    beside.write_text("- a claim\n")
    told = "mine.claims.yaml: ['a claim'] is not allowed; must be a mapping, such as `claims: [...]`"
    assert rollcall(capsys, "leaderboard", file)[2] == f"error: {told}\n"


def test_a_named_store_that_is_not_there_is_not_created(file, tmp_path, capsys):
    for arguments in ((file,), ("standard/digits",)):
        code, out, err = rollcall(capsys, "leaderboard", *arguments, "--store", "none")
        assert (code, bool(out)) == (0, True)
        assert err == "none: there is no such folder. These are kept results; no file is written without --to DIR\n"
    assert not (tmp_path / "none").exists()
    assert rollcall(capsys, "leaderboard", file, "--store", "none", "--to", "here")[2] == ""
    assert (tmp_path / "here" / "leaderboard.md").is_file()


def test_a_board_of_one_search_has_no_interval_and_its_json_no_nan(monkeypatch, capsys):
    kept = standing.standing(Board.read("standard/digits"))
    entry = kept.entries["fedavg"]
    once = entry.model_copy(update={"cells": {name: searches[:1] for name, searches in entry.cells.items()}})
    monkeypatch.setattr(standing, "standing", lambda *args, **options: replace(kept, entries={"fedavg": once}))
    out = rollcall(capsys, "leaderboard", "standard/digits", "--json")[1]
    data = json.loads(out, parse_constant=pytest.fail)
    assert {(row["sd"], row["half"], row["seeds"]) for row in data["rows"]} == {(None, None, 1)}


def test_pages_tell_an_entry_that_cannot_count(tmp_path, capsys):
    board = Board.read("standard/digits")
    entry = standing.standing(board).entries["fedavg"].model_copy(update={"rule": "0123456789"})
    path = entry.write(tmp_path / "runs" / board.name)
    code, _, err = rollcall(capsys, "site", str(tmp_path / "pages"), board.name, "--store", str(tmp_path / "runs"))
    assert (code, err) == (2, f"error: {path}: is an entry of another rule of {board.name}; enter it again\n")
    path.write_text("half")
    code, _, err = rollcall(capsys, "site", str(tmp_path / "pages"), board.name, "--store", str(tmp_path / "runs"))
    assert (code, err.startswith(f"error: {path}: cannot be read (")) == (2, True)


def test_pages_of_a_board_have_kept_entries_unless_told_otherwise(tmp_path, capsys):
    board, runs = Board.read("standard/digits"), tmp_path / "runs"
    entry = standing.standing(board).entries["fedavg"]
    entry.model_copy(update={"method": "Own"}).write(runs / board.name)
    arguments = ["leaderboard", board.name, "--store", str(runs), "--html", str(tmp_path / "pages")]
    page = tmp_path / "pages" / "experiments" / f"{board.name}.html"
    kept = f"of {len(board.methods)} methods entered"
    assert rollcall(capsys, *arguments)[0] == 0
    assert f"{len(board.methods) + 1} {kept}" in page.read_text()
    assert rollcall(capsys, *arguments, "--mine")[0] == 0
    assert f"1 {kept}" in page.read_text()


def test_a_method_of_ones_own_may_be_on_an_axis_of_another_name(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    Path("mine.py").write_text("from rollcall.algorithms.fedavg import FedAvg\n\n\nclass Mine(FedAvg):\n    pass\n")
    methods = {"Plain": {"algorithm": "fedavg"}, "Ours": {"algorithm": "./mine.py:Mine", "local.lr": 0.05}}
    file = write(tmp_path, grid={"seed": [0], "method": methods})
    assert rollcall(capsys, "run", file, "--executor", "inline")[0] == 0
    rows = json.loads(rollcall(capsys, "leaderboard", file, "--json")[1])["rows"]
    assert {row["labels"]["algorithm"] for row in rows} == {"Plain", "Ours"}
    refused = rollcall(capsys, "run", file, "--algorithm", "mifa")[2]
    assert f"algorithm: is not allowed with {file}; its axis 'method' sets it. Add the method there" in refused
    rows = json.loads(rollcall(capsys, "leaderboard", file, "--only", "method=Plain", "--json")[1])["rows"]
    assert [row["labels"]["algorithm"] for row in rows] == ["Plain"]


def links(folder):
    """The links of all pages of a site that lead nowhere: to a file that is not there, or a place that it does not have."""
    texts = {page: page.read_text() for page in folder.rglob("*.html")}
    for page, text in texts.items():
        for path, place in re.findall(r'(?:href|src)="(?![a-z]+:)([^"#]*)#?([^"]*)"', text):
            target = (page.parent / unquote(path)).resolve() if path else page.resolve()
            has_place = not place or "=" in place or f'id="{unquote(place)}"' in target.read_text()
            if not (target.is_file() and has_place):
                yield f"{page.relative_to(folder)}: {path}#{place}"


@pytest.mark.full
def test_pages_of_ones_own_runs(tmp_path, monkeypatch, capsys):
    """A method of one's own has its page with its code; the pages say what `--json` says."""
    monkeypatch.chdir(tmp_path)
    Path("mine.py").write_text("from rollcall.algorithms.fedavg import FedAvg\n\n\nclass Mine(FedAvg):\n    pass\n")
    file = write(tmp_path)
    assert rollcall(capsys, "run", file, "--algorithm", "mine.py:Mine", "--executor", "inline")[0] == 0
    rows = json.loads(rollcall(capsys, "leaderboard", file, "--json")[1])["rows"]
    assert rollcall(capsys, "site", "pages", file, "--store", "runs")[0] == 0
    page = Path("pages/experiments/tiny.html").read_text()
    assert {f'data-value="{row["mean"]!r}"' in page for row in rows} == {True}
    assert "10 of 20" not in page
    assert list(links(Path("pages").resolve())) == []
    (own,) = Path("pages/methods").glob("*Mine-*.html")
    assert "What it knows" not in own.read_text()  # it is not known of a method of one's own
    assert "What it knows" in Path("pages/methods/fedpbc.html").read_text()
    assert "class Mine(FedAvg)" in own.read_text()
    assert f"../{own.relative_to('pages')}" in page
    assert rollcall(capsys, "run", file, "--rounds", "10", "--store", "short", "--executor", "inline")[0] == 0
    assert rollcall(capsys, "site", "short", file, "--store", "short")[0] == 0
    assert "10 of 20" in Path("short/experiments/tiny.html").read_text()
