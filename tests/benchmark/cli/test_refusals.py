"""What cannot be read or written is one line on stderr and exit code 2, never a traceback."""

import json
import subprocess
import sys

import pytest
from command import TINY, rollcall, write
from filelock import FileLock

from rollcall import Trial
from rollcall.benchmark.federation.interruption import Interrupted


def refused(capsys, *arguments):
    code, _, err = rollcall(capsys, *arguments)
    assert (code, err.count("\n"), err.startswith("error: ")) == (2, 1, True), err
    return err


def test_a_store_at_an_impossible_place(tmp_path, capsys):
    (tmp_path / "file").touch()
    file = write(tmp_path)
    for store in (tmp_path / "file", tmp_path / "file" / "below"):
        where = ("--store", str(store))
        assert f"store: {store} cannot be written (" in refused(capsys, "run", file, "--executor", "inline", *where)


def test_a_table_to_an_impossible_place(store, tmp_path, capsys):
    file = write(tmp_path, grid={"seed": [0], "algorithm": ["fedavg"]})
    rollcall(capsys, "run", file, "--executor", "inline")
    (tmp_path / "file").touch()
    assert f"{tmp_path}/file" in refused(capsys, "leaderboard", file, "--to", str(tmp_path / "file" / "below"))


def test_a_store_that_can_only_be_read(store, tmp_path, capsys, monkeypatch):
    def denied(*_, **__):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr("rollcall.benchmark.cli.selection.TemporaryFile", denied)
    err = refused(capsys, "run", write(tmp_path), "--executor", "inline")
    assert err == f"error: store: {store} cannot be written (Permission denied); choose another folder with --store\n"


def test_an_experiment_file_that_is_binary(tmp_path, capsys):
    (tmp_path / "a.yaml").write_bytes(bytes(range(256)))
    assert "is not YAML" in refused(capsys, "run", str(tmp_path / "a.yaml"))


@pytest.mark.parametrize("text", ["{name: mifa", "[", "name: a: b"])
def test_a_part_on_the_command_line_that_is_not_yaml(text, tmp_path, capsys):
    said = f"{text!r} is not allowed; must be NAME or '{{name: NAME, OPTION: VALUE}}'\n"
    assert refused(capsys, "run", write(tmp_path), "--algorithm", text) == f"error: algorithm: {said}"
    assert refused(capsys, "check", text) == f"error: part: {said}"


@pytest.mark.parametrize(("field", "named"), [("metrics", {"train/dist": "min"}), ("drawn", ["train/dist"])])
def test_a_metric_with_a_typo_is_found_before_anything_runs(field, named, store, tmp_path, capsys):
    file = write(tmp_path, report=TINY["report"] | {field: named})
    error = refused(capsys, "run", file, "--executor", "inline")
    assert f"report.{field}: 'train/dist' is not allowed; no trial records it. Recorded: train/loss" in error
    assert not list(store.rglob("status.json"))


@pytest.mark.parametrize(
    ("where", "claim"), [("claims: metric", {"metric": "train/dist"}), ("claims: per", {"at": 3, "per": "cost/flots"})]
)
@pytest.mark.parametrize("variant", [False, True])
def test_a_claim_about_a_metric_with_a_typo_is_refused_before_anything_runs(
    where, claim, variant, store, tmp_path, capsys
):
    claims = [{"says": "So.", "tag": "ours", "least": 0, "metric": "train/loss"} | claim]
    options = {"variants": {"more": {"about": "The same.", "claims": claims}}} if variant else {"claims": claims}
    file = write(tmp_path, **options)
    chosen = ["--variant", "more"] if variant else []
    name = list(claim.values())[-1]
    error = refused(capsys, "run", file, "--executor", "inline", *chosen)
    assert f"error: {where}: {name!r} is not allowed; no trial records it. Recorded: train/loss" in error
    assert not list(store.rglob("status.json"))


@pytest.mark.parametrize("command", ["run", "show"])
def test_json_includes_the_settings(command, store, tmp_path, capsys):
    file = write(tmp_path, grid={"seed": [3], "algorithm": ["fedavg"]})
    options = {"run": ("--executor", "inline"), "show": ()}[command]
    (entry,) = json.loads(rollcall(capsys, command, file, *options, "--json")[1])
    assert (entry["settings"]["seed"], entry["settings"]["local"]["lr"]) == (3, 0.1)
    assert Trial.read(entry["settings"]).complete(lambda array: array.tolist()) == entry["settings"]


def test_a_trial_that_another_process_runs_has_not_failed(store, tmp_path, capsys):
    file = write(tmp_path, grid={"seed": [0, 1], "algorithm": ["fedavg"]})
    trial = Trial.read(TINY["trial"] | {"algorithm": "fedavg", "seed": 0})
    folder = store / "tiny" / trial.name
    folder.mkdir(parents=True)
    with FileLock(folder / "lock"):
        code, out, err = rollcall(capsys, "run", file, "--executor", "inline")
    assert code == 0
    assert "1 run now, 0 before, 0 failed, 1 running elsewhere (rerun the command later)" in out
    assert f"{trial.name}  running elsewhere" in err
    code, out, _ = rollcall(capsys, "run", file, "--executor", "inline")
    assert "1 run now, 1 before, 0 failed" in out


def test_two_processes_create_the_database_once(store):
    code = "import sys; from pathlib import Path; from rollcall.benchmark.sweep.mlflow_runs import Runs; "
    code += "print(Runs(Path(sys.argv[1]), 'tiny').id)"
    command = [sys.executable, "-c", code, str(store)]
    processes = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True) for _ in range(2)]
    ids = [process.communicate(timeout=120)[0].strip() for process in processes]
    assert ids[0] == ids[1] != ""
    assert [process.returncode for process in processes] == [0, 0]


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (
            ("leaderboard", "quickstart", "--metric", "test/loss"),
            "metric: 'test/loss' is not allowed; must be NAME=max,",
        ),
        (("leaderboard", "quickstart", "--only", ""), "only: '' is not allowed; must be SETTING=VALUE"),
        (("run", "quickstart", "--seeds", "[1"), "seeds: '[1' is not allowed; must be VALUE or VALUE,VALUE"),
        (("status", "quikstart"), "experiment: 'quikstart' is not allowed; must be one of "),
        (("bench", "--clients", ""), "clients: '' is not allowed; must be whole numbers"),
    ],
)
def test_a_wrong_value_is_named_with_its_option(arguments, complaint, store, capsys):
    code, _, err = rollcall(capsys, *arguments)
    assert (code, err.count("\n")) == (2, 1), err
    assert err.startswith(f"error: {complaint}")


def test_a_request_to_stop_ends_every_command_with_one_line(capsys, monkeypatch):
    def stopped(*arguments, **options):
        raise Interrupted("stopped after round 3 of 5")

    monkeypatch.setattr("rollcall.benchmark.timing.measure", stopped)
    code, _, err = rollcall(capsys, "bench", "--quick")
    assert (code, err) == (130, "stopped after round 3 of 5\n")
