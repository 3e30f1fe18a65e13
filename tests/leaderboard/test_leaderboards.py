"""What `--metric`, `--last-rounds` and `--only` change: the table and the figure, and no verdict."""

import json
from pathlib import Path

import pytest
from command import TINY, rollcall, write

from rollcall.leaderboard.cells import cells
from rollcall.leaderboard.figures.results import curves, subplots
from rollcall.leaderboard.leaderboards import with_report
from rollcall.leaderboard.paper.experiment import PaperExperiment
from tests.support.results import keep, runs


@pytest.fixture
def file(tmp_path, monkeypatch):
    """Kept runs of a paper's experiment: distances end at 2 (fedavg) and 1 (fedpbc), in seeds 0 to 2; losses at 3."""
    monkeypatch.chdir(tmp_path)
    of = {"of": {"algorithm": "fedpbc"}, "tag": "ours"}
    nearer = of | {"says": "FedPBC ends nearer", "minus": {"algorithm": "fedavg"}, "most": 0.0}
    at_20 = of | {"says": "FedPBC is at 1", "section": "Fig. 1", "at": 20, "printed": 1.0, "most": 1.5}
    grid = TINY["grid"] | {"seed": [0, 1, 2]}
    path = write(tmp_path, "mine", source="[X] Fig. 1", grid=grid, claims=[nearer, at_20])
    keep(path, covered=True, loss=True)
    return path


def test_a_claim_is_judged_as_its_file_states_it(file, capsys):
    """1 minus 2 is at most 0. Losses are equal, the last 15 rounds are not covered, and other cells are left out."""
    stated = json.loads(rollcall(capsys, "leaderboard", file, "--json")[1])
    told = [(one["says"], one["measured"], one["claim_verdict"]) for one in stated["claims"]]
    assert told == [("FedPBC ends nearer", -1.0, "holds"), ("FedPBC is at 1", 1.0, "holds")]
    metric, seeds = ("--metric", "train/loss=min", "--html", "pages"), ("--only", "seed=0,1")
    for options in (metric, ("--last-rounds", "15"), ("--only", "algorithm=fedpbc"), seeds):
        found = json.loads(rollcall(capsys, "leaderboard", file, *options, "--json")[1])
        assert found["claims"] == stated["claims"]
        assert found["rows"] != stated["rows"]
    assert Path("pages/experiments/mine.html").read_text().count('data-verdict="holds"') == 2


def test_the_number_of_a_claim_is_drawn_beside_its_own_metric(file):
    mine = PaperExperiment.read(file)
    made = runs(mine, lambda labels, seed: 1.0, metric="train/distance")
    for run in made:
        run.history["train/loss"] = 3.0
    (of_distance,) = subplots(mine, cells(mine, made))
    assert [(row["x"], row["value"]) for row in of_distance.printed] == [(20, 1.0)]
    other = with_report(mine, ["train/loss=min"], None)
    (of_loss,) = subplots(other, cells(other, made))
    assert (of_loss.metric.column, of_loss.printed) == ("train/loss", [])


def test_own_methods_are_selected_and_left_out_like_all_others(file, capsys):
    Path("mine.py").write_text("from rollcall.algorithms.fedavg import FedAvg\n\n\nclass Mine(FedAvg):\n    pass\n")
    own = ("--algorithm", "mine.py:Mine", "--only", "algorithm=Mine", "--executor", "inline")
    assert rollcall(capsys, "run", file, *own)[0] == 0

    def methods(only):
        rows = json.loads(rollcall(capsys, "leaderboard", file, "--only", f"algorithm={only}", "--json")[1])["rows"]
        assert curves(file, only={"algorithm": only.split(",")}).data["line"].nunique() == len(rows)
        return [row["labels"]["algorithm"] for row in rows]

    assert methods("Mine,fedavg") == ["fedavg", "Mine"]
    assert methods("fedavg") == ["fedavg"]
    assert methods("Mine") == ["Mine"]
    err = rollcall(capsys, "leaderboard", file, "--only", "algorithm=Min")[2]
    assert err.endswith("must be one of fedavg, fedpbc, Mine. Did you mean Mine?\n")


def test_a_folder_that_cannot_be_written_is_named(file, capsys):
    code, _, err = rollcall(capsys, "leaderboard", file, "--to", file)
    assert (code, err.count(f"error: {file}: the files cannot be written")) == (2, 1)
