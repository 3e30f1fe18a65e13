"""`rollcall compare` on archives and on own runs."""

import json
from pathlib import Path

import pytest

from rollcall.leaderboard.paper.experiment import PaperExperiment
from tests.support.command import TINY, rollcall, write
from tests.support.results import keep, nearer


@pytest.fixture
def file(tmp_path, monkeypatch):
    """Kept runs of an experiment and its variant: the seed is added to ends at 2 (fedavg) and 1, or 2.5 and 1.75."""
    monkeypatch.chdir(tmp_path)
    grid, variants = TINY["grid"] | {"seed": [0, 1, 2]}, {"slow": {"about": "a", "trial": {"local": {"lr": 0.01}}}}
    path = write(tmp_path, "mine", grid=grid, source="[X]", variants=variants)
    keep(path, lambda labels, seed: nearer(labels, seed) + seed, covered=True)
    slow = {"fedavg": 2.5, "fedpbc": 1.75}
    variant = PaperExperiment.read(path).as_("slow")
    keep(variant, lambda labels, seed: slow[labels["algorithm"]] + seed, covered=True)
    return path


def test_two_methods_in_an_experiment_and_in_its_variants(file, capsys):
    data = json.loads(rollcall(capsys, "compare", "fedpbc", "fedavg", file, "--json")[1])
    rows = [(row["experiment"], row["labels"], row["difference"], row["wins"]) for row in data["rows"]]
    assert rows == [("mine", {}, -1.0, 3), ("mine (slow)", {}, -0.75, 3)]
    assert (data["a"], data["rows"][0]["mean_a"], data["rows"][0]["mean_b"]) == ("fedpbc", 2.0, 3.0)
    assert (data["overall"]["cells"], data["overall"]["better"]) == (2, 2)


def test_a_broken_file_of_ones_own_is_left_out_unless_it_is_asked_for(file, capsys):
    assert rollcall(capsys, "run", file, "--executor", "inline")[0] == 0
    Path(file).write_text("trial: [1")
    _, _, err = rollcall(capsys, "compare", "fedavg", "fedavgg")
    left, told = err.splitlines()
    assert left.startswith(f"left out: {file}: is not YAML")
    assert told.startswith("error: compare: 'fedavgg' is no method or variant")
    assert rollcall(capsys, "compare", "fedavg", "fedavgg", file)[2].startswith(f"error: {file}: is not YAML")


def test_a_board_compares_its_methods_itself(capsys):
    code, _, err = rollcall(capsys, "compare", "mifa", "fedavg", "standard/digits")
    assert code == 2
    assert err.endswith("rollcall leaderboard standard/digits --against fedavg\n")


def test_nothing_to_compare(file, capsys):
    code, _, err = rollcall(capsys, "compare", "fedpbc", "fedavgg", file)
    assert code == 2
    assert f"'fedavgg' is no method or variant with runs in {file}; " in err
    assert err.endswith("must be one of fedavg, fedpbc, paper, slow. Did you mean fedavg?\n")
    _, _, err = rollcall(capsys, "compare", "fedavgg", "mifa")  # no experiment has it
    line = "compare: 'fedavgg' is no method or variant with runs in the kept results or in runs; see rollcall list"
    assert err == f"error: {line}. Did you mean fedavg?\n"
    _, _, err = rollcall(capsys, "compare", "fedpbc", "fedpbc", file)
    assert err == "error: compare: 'fedpbc' twice is not allowed; must be two methods or variants\n"


def test_runs_that_end_before_the_last_rounds_that_are_compared(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    evaluation = {"evaluation": {"every": 2, "splits": ["train"]}}
    path = write(tmp_path, "mine", trial=TINY["trial"] | evaluation, report=TINY["report"] | {"last_rounds": 20})
    assert rollcall(capsys, "run", path, "--rounds", "1", "--executor", "inline")[0] == 0
    _, _, err = rollcall(capsys, "compare", "fedavg", "fedpbc", path)
    ran = "compare: runs of 'fedavg' and 'fedpbc' have no values in their last 20 rounds in common; run more rounds"
    assert err == f"error: {ran}\n"


def test_a_metric_that_no_run_measured(file, capsys):
    line = "error: metric: 'train/distanc' is not allowed; no run measured it. Measured: train/distance\n"
    asked = ("compare", "fedpbc", "fedavg", file, "--metric", "train/distanc=min")
    assert rollcall(capsys, *asked)[::2] == (2, line)
    write(Path(file).parent, "mine", grid=TINY["grid"])  # without a paper it is ranked
    assert rollcall(capsys, *asked)[::2] == (2, line)


def test_no_mean_mixes_kept_and_own_runs(tmp_path, monkeypatch, capsys):
    """Kept: fedavg at 2, fedpbc at 1, in seeds 0 and 1. An own run of fedavg's seed 0 replaces both kept ones."""
    monkeypatch.chdir(tmp_path)
    path = write(tmp_path, "mine")
    keep(path)

    def compared():
        (row,) = json.loads(rollcall(capsys, "compare", "fedavg", "fedpbc", path, "--json")[1])["rows"]
        return row["wins"] + row["ties"] + row["losses"], row["mean_a"], row["mean_b"]

    assert compared() == (2, 2.0, 1.0)
    only = ("--only", "algorithm=fedavg", "--seeds", "0", "--executor", "inline")
    assert rollcall(capsys, "run", path, *only, "--rounds", "10")[0] == 0
    assert compared() == (2, 2.0, 1.0)  # the kept ones have other rounds
    assert rollcall(capsys, "run", path, *only)[0] == 0
    (own,) = json.loads(rollcall(capsys, "leaderboard", path, "--json")[1])["rows"]
    assert compared() == (1, own["mean"], 1.0)
    assert rollcall(capsys, "site", "pages", path, "--store", "runs")[0] == 0
    assert f'data-value="{own["mean"]!r}"' in Path("pages/experiments/mine.html").read_text()
