"""`rollcall tune`: its options, its output, and running side by side with Ray."""

import json
import shlex

import pytest
from command import rollcall, write
from filelock import FileLock

from rollcall.benchmark.federation.run_folder import RunFolder

ARGUMENTS = ["--metric", "train/distance", "--samples", "2"]


def test_the_answer_as_json_and_as_a_table(tmp_path, store, capsys):
    file = write(tmp_path)
    options = ["--space", "local.lr=loguniform(1e-3,0.3)", "--only", "algorithm=fedavg", "--rounds", "2"]
    arguments = ["tune", file, *options, *ARGUMENTS, "--executor", "inline"]
    code, output, _ = rollcall(capsys, *arguments, "--json")
    best = json.loads(output)["best"]
    assert (code, list(best)) == (0, ["fedavg"])
    assert {"settings", "score", "samples", "at_edge"} <= set(best["fedavg"])
    assert best["fedavg"]["samples"] == 2
    code, output, _ = rollcall(capsys, *arguments)
    assert code == 0
    assert f"local.lr={best['fedavg']['settings']['local.lr']}" in output
    assert f"rollcall run {file} --tuned {store / 'tiny' / 'tuned.yaml'}" in output
    assert "local.lr" in (store / "tiny" / "search" / "samples.svg").read_text()


@pytest.mark.parametrize("steps", ["local.steps=3", "local.steps=1,3"])
def test_the_command_for_the_final_table_runs(steps, tmp_path, store, capsys, monkeypatch):
    """With the user's own method, settings and store; several values of a setting are an axis of the search."""
    monkeypatch.chdir(tmp_path)
    write(tmp_path)
    (tmp_path / "mine.py").write_text("from rollcall.algorithms import FedAvg\n\n\nclass Mine(FedAvg):\n    pass\n")
    options = [*["--algorithm", "mine.py:Mine", "--only", "algorithm=Mine", "--set", steps, "--store"], "my runs"]
    arguments = ["tune", "tiny.yaml", "--space", "local.lr=0.1", "--rounds", "2", "--executor", "inline"]
    _, output, _ = rollcall(capsys, *arguments, *ARGUMENTS, *options)
    next_step = output.partition("Final table: ")[2].strip()
    assert next_step.startswith("rollcall run tiny.yaml --tuned 'my runs/tiny/tuned.yaml' --algorithm mine.py:Mine")
    code, output, _ = rollcall(capsys, *shlex.split(next_step)[1:], "--executor", "inline", "--rounds", "2")
    assert code == 0
    assert f"{2 * len(steps.split(','))} trials" in output
    assert "in my runs/tiny" in output


@pytest.mark.parametrize("searched", ["other", "tiny"])
def test_searched_rates_are_marked_in_an_experiment_of_anothers_trials(searched, tmp_path, store, capsys):
    file = write(tmp_path)
    other = tmp_path / "other.yaml"
    other.write_text(f"title: Other\nbase: {file}\n")
    how = ["--rounds", "2", "--executor", "inline", "--store", str(store)]
    one = str(tmp_path / f"{searched}.yaml")
    assert rollcall(capsys, "tune", one, "--space", "local.lr=0.07", *ARGUMENTS, *how)[0] == 0
    answer = str(store / searched / "tuned.yaml")
    assert rollcall(capsys, "run", one, "--tuned", answer, *how)[0] == 0
    assert "‡" in rollcall(capsys, "leaderboard", str(other), "--against", "fedavg", "--store", str(store))[1]


@pytest.mark.parametrize(
    ("options", "complaint"),
    [
        (["--samples", "5", "--grid"], "--samples is not allowed with --grid, which tries all combinations; must be"),
        (["--search", "optuna", "--grid"], "--search optuna is not allowed with --grid; must be left out"),
        (["--retries", "2", "--executor", "inline"], "--executor inline is not allowed with --retries; must be ray"),
        (["--seeds", "0"], "seeds: 0 is not allowed in a search; the "),
    ],
)
def test_a_wrong_option_is_refused_with_one_line(options, complaint, tmp_path, store, capsys):
    executor = [] if "--executor" in options else ["--executor", "inline"]
    code, _, error = rollcall(capsys, "tune", write(tmp_path), "--space", "local.lr=0.1", *executor, *options)
    assert (code, error.count("\n"), error.startswith(f"error: {complaint}")) == (2, 1, True), error


def test_a_trial_that_another_process_runs_ends_the_search(tmp_path, store, capsys):
    """Its sample must not count as failed: the answer would leave out what may be the best."""
    options = ["--space", "local.lr=0.01,0.1", "--only", "algorithm=fedavg", "--rounds", "2", "--executor", "inline"]
    arguments = ["tune", write(tmp_path), *options, *ARGUMENTS]
    assert rollcall(capsys, *arguments)[0] == 0
    answer = store / "tiny" / "tuned.yaml"
    before = answer.read_bytes()
    status = next(store.rglob("status.json"))
    status.write_text(json.dumps(json.loads(status.read_text()) | {"state": "running", "finished": 0, "round": 1}))
    with FileLock(status.parent / "lock"):  # as the process that runs the trial
        code, output, error = rollcall(capsys, *arguments)
    line = "Another process runs 1 of the trials. Rerun the command when it has ended."
    assert (code, output, error.splitlines()[-1]) == (130, "", line)
    assert answer.read_bytes() == before
    assert rollcall(capsys, *arguments)[0] == 0


@pytest.mark.full
@pytest.mark.usefixtures("one_ray")
def test_ray_finds_the_same_as_inline_and_asha_the_best_sample(tmp_path, store, capsys):
    pytest.importorskip("ray")
    file = write(tmp_path)
    options = ["--space", "local.lr=0.001,0.01,0.1", "--only", "algorithm=fedavg", "--rounds", "9", "--seeds", "8,9"]
    arguments = ["tune", file, *options, "--metric", "train/distance", "--samples", "3", "--json"]
    inline, ray = (
        rollcall(capsys, *arguments, "--executor", name, "--store", str(tmp_path / name)) for name in ("inline", "ray")
    )
    assert inline[0] == ray[0] == 0
    assert inline[1] == ray[1]
    code, output, _ = rollcall(capsys, *arguments, "--scheduler", "asha", "--store", str(tmp_path / "asha"))
    assert (code, json.loads(output)["best"]["fedavg"]["settings"]) == (0, {"local.lr": 0.1})
    rounds = {RunFolder(path.parent).finished for path in (tmp_path / "asha").rglob("status.json")}
    assert 9 in rounds
