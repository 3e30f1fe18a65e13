"""`rollcall list` and `rollcall show`."""

import json
import re
from pathlib import Path

import pytest
from command import TINY, rollcall, write
from filelock import FileLock

from rollcall.algorithms import ALGORITHMS
from rollcall.benchmark.config.experiment import file_of
from rollcall.benchmark.sweep.run import file_of_runs, record
from rollcall.cli.options import requests_of


def test_list(store, tmp_path, capsys, monkeypatch):
    listed = json.loads(rollcall(capsys, "list", "--json")[1])
    assert {"bias", "quickstart", "mnist", "cifar10"} <= set(listed["experiment"])
    assert set(listed["algorithm"]) == set(ALGORITHMS)
    assert {"full", "bernoulli", "minimum_separation", "trace"} <= set(listed["participation"])
    assert all(summary for things in listed.values() for summary in things.values())
    (tmp_path / "jones").mkdir()
    write(tmp_path, "alone", title="Alone")
    write(tmp_path / "jones", "fig1", title="First", source="[J] Fig. 1")
    write(tmp_path / "jones", "table2", title="Second", source="[J] Table II")
    monkeypatch.setattr("rollcall.benchmark.config.experiment.LIBRARY", tmp_path)
    lines = [line.split() for line in rollcall(capsys, "list")[1].splitlines()]
    assert ["experiment", "others", "1,", "jones", "2"] in lines
    assert ["algorithm", "The", "federated", "method.", "The", "key", "`algorithm`", "of", "a", "trial."] in lines
    rows = [line.split("  ") for line in rollcall(capsys, "list", "experiment")[1].splitlines() if line.strip()]
    assert [[cell.strip() for cell in row if cell.strip()] for row in rows] == [
        ["alone", "Alone"], ["jones/fig1", "First ([J] Fig. 1)"], ["jones/table2", "Second ([J] Table II)"]
    ]  # fmt: skip


def test_show_says_what_an_experiment_is(store, tmp_path, capsys):
    targets = [[float(i)] for i in range(30)]
    claim = {"tag": "ours", "of": {"algorithm": "fedpbc"}, "minus": {"algorithm": "fedavg"}}
    file = write(
        tmp_path,
        source="[J] Fig. 1",
        about="Thirty clients.",
        trial=TINY["trial"] | {"task": {"name": "quadratic", "targets": targets}},
        grid={"seed": [0, 1], "algorithm": ["fedavg", "fedpbc"], "participation.probability": {"low": 0.1, "high": 0.9}},
        panels={"short": {"title": "A look"}, "long": {"title": "To the end", "trial": {"rounds": 60}}},
        overrides=[{"when": {"algorithm": "fedpbc"}, "set": {"local.lr": 0.05}, "found": "by hand"}],
        choices={"local.steps": "the paper is silent"},
        variants={"as_released": {"about": "As its code does.", "claims": [claim | {"says": "As released it does not.", "least": 0}]}},
        claims=[claim | {"says": "FedPBC ends nearer.", "most": 0}],
    )  # fmt: skip
    code, out, err = rollcall(capsys, "show", file)
    assert (code, err) == (0, "")
    lines = [line.strip() for line in out.splitlines()]
    for line in (
        "source: '[J] Fig. 1'",
        "task: {name: quadratic, targets: 30 x 1 numbers from 0 to 29}",
        "algorithm: [fedavg, fedpbc]",
        "participation.probability: {low: 0.1, high: 0.9}",
        "short: {title: A look}",
        "set: {local.lr: 0.05}",
        "found: by hand",
        "local.steps: the paper is silent",
        "as_released: As its code does.",
        "- FedPBC ends nearer.",
        "metrics: {train/distance: min}",
        f"8 trials, 480 rounds in all; 0 finished in {store}/tiny",  # a run of 60 rounds has the first 20
    ):
        assert line in lines, line
    # One number for all panels, which then are the same trials.
    out = rollcall(capsys, "show", file, "--rounds", "7")[1]
    assert "8 trials, 56 rounds in all" in out
    # A variant has claims of its own.
    out = rollcall(capsys, "show", file, "--variant", "as_released")[1]
    assert "As released it does not." in out
    assert "FedPBC ends nearer." not in out


def test_a_file_beside_a_name_of_the_suite_is_no_experiment_file(tmp_path, monkeypatch):
    """Such as what `rollcall show quickstart > quickstart` writes."""
    monkeypatch.chdir(tmp_path)
    Path("quickstart").write_text("title: Not this one")
    (request,) = requests_of(["quickstart"])
    assert request.file is None
    record(request.experiment, tmp_path / "runs", file_of("quickstart"))
    assert file_of_runs(tmp_path / "runs" / "quickstart") == str(file_of("quickstart").resolve())


def test_the_file_of_runs_may_be_on_another_machine(tmp_path):
    request = requests_of([write(tmp_path)])[0]
    record(request.experiment, tmp_path / "runs", request.file)
    assert file_of_runs(tmp_path / "runs" / "tiny") == str(tmp_path / "tiny.yaml")
    (tmp_path / "tiny.yaml").unlink()
    assert file_of_runs(tmp_path / "runs" / "tiny") == ""


def test_a_run_whose_process_has_died_is_shown_as_interrupted(store, tmp_path, capsys):
    file = write(tmp_path)
    arguments = ["show", file, "--seeds", "0", "--only", "algorithm=fedavg", "--json"]
    folder = Path(json.loads(rollcall(capsys, *arguments)[1])[0]["folder"])
    folder.mkdir(parents=True)
    (folder / "status.json").write_text(json.dumps({"state": "running", "digest": "1", "round": 5, "rounds": 20}))
    with FileLock(folder / "lock"):
        assert json.loads(rollcall(capsys, *arguments)[1])[0]["state"] == "running"
    assert json.loads(rollcall(capsys, *arguments)[1])[0]["state"] == "interrupted"


def test_a_part_is_shown_with_its_options(capsys, tmp_path, monkeypatch):
    out = " ".join(rollcall(capsys, "show", "fedau")[1].split())
    assert "cutoff int >= 1; default 50 K in the paper: rounds after which" in out
    assert "source: Wang and Ji, ICLR 2024; " in out
    (part,) = json.loads(rollcall(capsys, "show", "task/mnist", "--json")[1])
    assert (part["kind"], part["options"]["clients"]) == ("task", ["int; required", "m, the number of clients."])
    assert part["options"]["model"][0] == "model; default linear"
    assert rollcall(capsys, "show", "mnist")[1].startswith("title: MNIST")  # an experiment of the same name wins
    half = "def half(t, *, rate: float = 0.5):\n    'Halves.\\n\\nArgs:\\n    rate: of it.'\n"
    (tmp_path / "mine.py").write_text(half)
    code, _, err = rollcall(capsys, "show", f"{tmp_path}/mine.py:half")
    assert (code, "its kind is not clear from a base class" in err) == (2, True)
    lines = rollcall(capsys, "show", f"schedule/{tmp_path}/mine.py:half")[1].splitlines()
    assert ["rate", "float; default 0.5"] in [[cell for cell in line.strip().split("   ") if cell] for line in lines]
    own = "from rollcall.algorithms import FedAvg\n\n\nclass Mine(FedAvg):\n    'Is mine.'\n"
    (tmp_path / "own.py").write_text(own)
    assert "\nIs mine.\n" in rollcall(capsys, "show", f"{tmp_path}/own.py:Mine")[1]
    (tmp_path / "told.py").write_text(f"'Is told.'\n{own}")
    assert "\nIs told.\n" in rollcall(capsys, "show", f"{tmp_path}/told.py:Mine")[1]
    (tmp_path / "part.py").write_text(f"import functools\n{half}mine = functools.partial(half, rate=0.1)\n")
    assert "Halves." in rollcall(capsys, "show", f"schedule/{tmp_path}/part.py:mine")[1]
    (tmp_path / "algorithm").mkdir()
    (tmp_path / "algorithm" / "own.py").write_text(own)
    monkeypatch.chdir(tmp_path)
    assert "\nIs mine.\n" in rollcall(capsys, "show", "algorithm/own.py:Mine")[1]
    assert "Did you mean fedau?" in rollcall(capsys, "show", "fedua")[2]
    assert "must be one of probability/constant, schedule/constant" in rollcall(capsys, "show", "constant")[2]


@pytest.mark.parametrize(
    ("command", "trial", "complaint"),
    [
        ("show", {"local": {"lr": 0.1, "stps": 2}}, "local.stps: is not a setting"),
        ("run", {"algorithm": {"name": "fedau", "cutof": 3}}, "algorithm.cutof: is not an option of fedau"),
        ("run", {"local": {"steps": -2}}, "local.steps: -2 is not allowed"),
    ],
)
def test_a_setting_of_ones_own_file_is_refused_with_its_line(command, trial, complaint, store, tmp_path, capsys):
    content = {**TINY["trial"], **trial}
    file = write(tmp_path, trial=content, grid={"seed": [0]} if "algorithm" in trial else TINY["grid"])
    code, _, err = rollcall(capsys, command, file)
    found = re.match(rf"error: {re.escape(file)}:(\d+): {re.escape(complaint)}", err)
    assert (code, bool(found)) == (2, True), err
    key = complaint.partition(":")[0].rpartition(".")[2]
    assert Path(file).read_text().splitlines()[int(found[1]) - 1].strip().startswith(key)


@pytest.mark.parametrize(
    ("name", "counts", "kept"),
    [
        ("sun/fig2", "", "; 440 in"),
        ("findings/visits", "90 trials, ", "; 90 in"),
        ("quickstart", "15 trials, 4,500 rounds in all; ", "; 15 in"),
    ],
)
def test_finished_and_kept_trials_are_counted(name, counts, kept, tmp_path, capsys):
    out = rollcall(capsys, "show", name, "--store", str(tmp_path))[1]
    (line,) = [line for line in out.splitlines() if "finished in" in line]
    assert line.startswith(counts)
    assert re.search(f"0 finished in {re.escape(str(tmp_path / name))}{kept} the kept results$", line)
