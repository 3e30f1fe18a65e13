"""`rollcall run` and trials that diverge, fail or die: exit code, summary, MLflow, tables."""

import json
from pathlib import Path

import pytest
from command import TINY, rollcall, write

from rollcall.benchmark.federation.run_folder import RunFolder
from rollcall.benchmark.sweep.mlflow_copy import Mirror

pytestmark = [pytest.mark.full, pytest.mark.fault]

METHOD = """
import os
from rollcall.algorithms.fedavg import FedAvg


class Mine(FedAvg):
    def round(self, state, x, call, work):
        if call.t == 3:
            BODY
        return super().round(state, x, call, work)
"""


def method(folder: Path, body: str) -> str:
    file = folder / "mine.py"
    file.write_text(METHOD.replace("BODY", body))
    return f"{file}:Mine"


def recorded(store):
    """The trials in MLflow by seed and method."""
    mirror = Mirror(store, "tiny")
    mirror.look()
    runs = mirror.client.search_runs([mirror.id])
    return {f"{run.data.tags['algorithm']}-seed{run.data.tags['seed']}": run for run in runs}, mirror.client


@pytest.mark.usefixtures("mlflow")
def test_diverged_trials(store, tmp_path, capsys, monkeypatch):
    seeds = [0, 1, 2]
    file = write(tmp_path, grid={"seed": seeds, "algorithm": ["fedavg"]}, source="[X] Table 1", name="tiny")
    mine = method(tmp_path, "x = x / 0.0 if call.seed else x")
    arguments = ("run", file, "--executor", "inline", "--algorithm", mine)
    code, out, err = rollcall(capsys, *arguments)
    assert code == 0
    assert "4 run now, 0 before, 0 failed, 2 diverged" in out
    lines = [line for line in err.splitlines() if line.startswith("diverged: Mine-seed")]
    assert [line.partition(": parameters are ")[2] for line in lines] == ["not finite after round 4"] * 2
    runs, _ = recorded(store)
    ends = {(name[:10], run.info.status, run.data.tags["rollcall.state"]) for name, run in runs.items()}
    assert {("Mine-seed1", "FAILED", "diverged"), ("Mine-seed0", "FINISHED", "finished")} <= ends

    code, out, _ = rollcall(capsys, *arguments, "--json")
    assert code == 0
    states = {report["trial"][:10]: report["state"] for report in json.loads(out)}
    assert states["Mine-seed1"] == "diverged"
    before = {file: file.stat().st_mtime_ns for file in store.rglob("status.json")}
    assert "0 run now, 6 before, 0 failed, 2 diverged" in rollcall(capsys, *arguments)[1]
    assert {file: file.stat().st_mtime_ns for file in store.rglob("status.json")} == before

    table = rollcall(capsys, "leaderboard", file, "--format", "md")[1]
    assert "2 of 3 diverged" in next(line for line in table.splitlines() if "Mine" in line)
    monkeypatch.chdir(tmp_path)  # where `leaderboard` finds the archive
    assert rollcall(capsys, "archive", file)[0] == 0
    again = rollcall(capsys, "leaderboard", file, "--store", str(tmp_path / "empty"), "--format", "md")[1]
    assert again.replace("runs: kept results", f"runs: your own, in {store}") == table


def test_sys_exit_in_a_method_fails_its_trial_alone(store, tmp_path, capsys):
    exits = method(tmp_path, "raise SystemExit(0)")
    file = write(tmp_path, grid={"seed": [0], "algorithm": [exits, "fedavg"]})
    code, _, err = rollcall(capsys, "run", file, "--executor", "inline")
    assert code == 1
    assert "SystemExit: 0" in err
    states = {RunFolder(path.parent).state for path in store.rglob("status.json")}
    assert states == {"failed", "finished"}


@pytest.mark.usefixtures("mlflow")
def test_a_failed_trial_leaves_its_traceback(store, tmp_path, capsys):
    file = write(tmp_path, grid={"seed": [0], "algorithm": [method(tmp_path, "raise ValueError('no such luck')")]})
    code, _, err = rollcall(capsys, "run", file, "--executor", "inline")
    assert code == 1
    (folder,) = (store / "tiny").glob("Mine-*")
    line = f"failed: {folder.name}: {tmp_path / 'mine.py'}:9: ValueError: no such luck"
    assert f"{line}\n  traceback in {folder / 'error.txt'}\n" in err
    trace = (folder / "error.txt").read_text()
    assert "mine.py" in trace
    assert trace.endswith("ValueError: no such luck\n")
    runs, client = recorded(store)
    (run,) = runs.values()
    assert (run.info.status, run.data.tags["rollcall.state"]) == ("FAILED", "failed")
    artifact = client.download_artifacts(run.info.run_id, "error.txt")
    assert Path(artifact).read_text() == trace


def test_damaged_folders_are_named_before_anything_runs(store, tmp_path, capsys):
    file = write(tmp_path)
    assert rollcall(capsys, "run", file, "--executor", "inline")[0] == 0
    damaged = next(store.rglob("status.json"))
    damaged.write_text(damaged.read_text()[:40])
    code, _, err = rollcall(capsys, "run", file, "--executor", "inline")
    assert code == 2
    assert err.startswith(f"error: {damaged} is damaged (not valid JSON)")
    assert rollcall(capsys, "sync")[0] == 0
    code, out, _ = rollcall(capsys, "doctor", str(store))
    assert code == 1
    assert f"{damaged}: not valid JSON; the next run writes it again" in out
    assert "4 run folders, 1 damaged" in out
    assert rollcall(capsys, "doctor", str(store), "--fix")[0] == 0
    assert rollcall(capsys, "doctor", str(store))[:2] == (0, "3 run folders, 0 damaged\n")
    assert "1 run now, 3 before" in rollcall(capsys, "run", file, "--executor", "inline")[1]


@pytest.mark.usefixtures("one_ray")
def test_a_trial_whose_process_dies_is_started_again(store, tmp_path, capsys):
    """SIGKILL, as of the kernel when memory runs out: once in one trial, always in the other."""
    once = repr(str(tmp_path / "once"))
    body = f"if call.seed == 1 or not os.path.exists({once}):\n"
    body += f"                open({once} if call.seed == 0 else os.devnull, 'w').close()\n"
    body += "                os.kill(os.getpid(), 9)"
    name = method(tmp_path, body)
    file = write(tmp_path, trial=TINY["trial"] | {"algorithm": name}, grid={"seed": [0, 1]})
    code, out, err = rollcall(capsys, "run", file, "--executor", "ray")
    assert code == 1
    assert err.count("its process died; it resumes from its checkpoint (retry 1 of 1)") == 2
    assert "2 trials: 1 run now, 0 before, 1 failed" in out
    assert "its process died 2 times; memory may have run out. Rerun the command to resume from its checkpoint" in err
    folders = [[RunFolder(path) for path in (store / "tiny").glob(f"Mine-seed{seed}-*")] for seed in (0, 1)]
    (survivor,), (victim,) = folders
    assert (survivor.state, victim.state) == ("finished", "failed")
    assert "process died" in victim.error_file.read_text()
