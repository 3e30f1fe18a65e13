"""`rollcall run`: one experiment and all of a paper, resuming, executors, other code; see also test_ends.py."""

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import yaml
from command import TINY, rollcall, write

from rollcall import simulate
from rollcall.benchmark.config.base import load_yaml
from rollcall.benchmark.config.errors import SettingError
from rollcall.benchmark.federation.run_folder import RunFolder
from rollcall.benchmark.sweep import jobs, run
from rollcall.benchmark.sweep.run import Execution
from rollcall.cli.options import execution
from rollcall.leaderboard.runs import own

METHOD = '''
from dataclasses import dataclass
from rollcall.algorithms import Memoryless

@dataclass(frozen=True)
class Halfway(Memoryless):
    """Half of FedAvg's step."""
    share: float = 0.5

    def round(self, state, x, call, work):
        if len(call.active) == 0:
            return None, state
        return self.share * (work.sgd(call.active, x.expand(len(call.active), -1)) - x).mean(dim=0), state
'''


def test_run_twice_then_leaderboard(store, tmp_path, capsys):
    file = write(tmp_path)
    code, out, err = rollcall(capsys, "run", file, "--executor", "inline")
    assert code == 0
    assert "4 trials: 4 run now, 0 before, 0 failed" in out
    spent = [RunFolder(file.parent).status for file in store.rglob("status.json")]
    share = sum(one["evaluation_seconds"] for one in spent) / sum(one["seconds"] for one in spent)
    assert f"; {share:.0%} of the time in evaluations" in out
    assert 0 < share < 1
    assert err.count("finished") == 4
    folders = [path for path in (store / "tiny").iterdir() if path.is_dir()]
    assert len(folders) == 4
    written = {path: path.stat().st_mtime_ns for path in store.rglob("*")}
    code, out, _ = rollcall(capsys, "run", file, "--executor", "inline")
    assert code == 0
    assert "0 run now, 4 before" in out
    assert {path: path.stat().st_mtime_ns for path in store.rglob("*")} == written

    code, out, _ = rollcall(capsys, "leaderboard", file, "--json")
    assert code == 0
    rows = {row["labels"]["algorithm"]: row for row in json.loads(out)["rows"]}
    for method in ("fedavg", "fedpbc"):
        histories = [RunFolder(path).history() for path in folders if path.name.startswith(f"{method}-")]
        ends = pd.Series([history[history["round"] > 10]["train/distance"].mean() for history in histories])
        assert rows[method]["mean"] == pytest.approx(ends.mean(), rel=1e-12)
        assert rows[method]["sd"] == pytest.approx(ends.std(), rel=1e-9)
        assert rows[method]["seeds"] == 2
        assert rows[method]["rounds"] == 20


@pytest.mark.full
@pytest.mark.usefixtures("one_ray")
def test_ray_and_inline_agree_and_go_on_after_a_trial_that_fails(store, tmp_path, capsys, monkeypatch):
    # A Ray of an earlier test knows ROLLCALL_DATA. Workers have a working directory of their own: what the failing
    # method tells is where it would look for data.
    pytest.importorskip("rollcall.benchmark.sweep.ray_executor").end_ray()
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("ROLLCALL_DATA", raising=False)
    broken = "if call.t == 3:\n            raise RuntimeError(root().resolve())\n        if len(call.active) == 0:"
    code = "from rollcall.tasks.datasets import root\n" + METHOD.replace("if len(call.active) == 0:", broken)
    (tmp_path / "mine.py").write_text(code)
    clock = {"speed": {"name": "lognormal", "median": 5, "spread": 1.0}, "jitter": 0.5, "wait": {"deadline": 0.5}}
    panels = {"plain": {}, "clocked": {"trial": {"clock": clock}}}
    file = write(tmp_path, panels=panels)
    histories = {}
    for executor in ("ray", "inline"):
        where = ("--executor", executor, "--store", str(tmp_path / executor))
        code, out, err = rollcall(capsys, "run", file, "--algorithm", f"{tmp_path}/mine.py:Halfway", *where, "--json")
        assert code == 1
        failures = [line for line in err.splitlines() if line.startswith("failed: Halfway-seed")]
        assert [line.partition(": RuntimeError: ")[2] for line in failures] == [str(tmp_path / "data")] * 4
        reports = {report["trial"]: report for report in json.loads(out)}
        assert sorted(report["state"] for report in reports.values()) == ["failed"] * 4 + ["finished"] * 8
        histories[executor] = {name: RunFolder(Path(report["folder"])).history() for name, report in reports.items()}
        rows = json.loads(rollcall(capsys, "leaderboard", file, *where[2:], "--json")[1])["rows"]
        assert {row["labels"]["algorithm"]: row["seeds"] for row in rows} == {"fedavg": 2, "fedpbc": 2}
    assert all(history.equals(histories["inline"][name]) for name, history in histories["ray"].items())
    assert sum("time/seconds" in history for history in histories["ray"].values()) == 6


def test_a_method_of_ones_own_stands_beside_the_others(store, tmp_path, capsys):
    method = tmp_path / "mine.py"
    method.write_text(METHOD)
    file = write(tmp_path)
    arguments = ("run", file, "--executor", "inline", "--algorithm", f"{method}:Halfway")
    assert rollcall(capsys, *arguments)[0] == 0
    rows = json.loads(rollcall(capsys, "leaderboard", file, "--json")[1])["rows"]
    first = {row["labels"]["algorithm"]: row["mean"] for row in rows}
    assert set(first) == {"fedavg", "fedpbc", "Halfway"}
    # An edited method is another trial, and its newer word counts; the others are not run again.
    method.write_text(METHOD.replace("return self.share", "return 0.01 * self.share"))
    assert "2 run now, 4 before" in rollcall(capsys, *arguments)[1]
    rows = json.loads(rollcall(capsys, "leaderboard", file, "--json")[1])["rows"]
    second = {row["labels"]["algorithm"]: row["mean"] for row in rows}
    assert second["fedavg"] == first["fedavg"]
    assert second["Halfway"] > first["Halfway"]
    assert [row["seeds"] for row in rows] == [2, 2, 2]


def test_a_setting_of_one_method(store, tmp_path, capsys):
    """`METHOD:SETTING` changes one method; a setting that other methods lack needs no more than --only."""
    file = write(tmp_path, grid={"seed": [0], "algorithm": ["fedavg", "fedau"]})
    changed = ("--set", "fedau:algorithm.cutoff=20,local.lr=0.2")
    shown = json.loads(rollcall(capsys, "show", file, *changed, "--json")[1])
    settings = {job["algorithm"]: job["settings"]["algorithm"] for job in shown}
    assert (settings["fedau"]["cutoff"], settings["fedavg"]) == (20, {"name": "fedavg"})
    assert {job["settings"]["local"]["lr"] for job in shown} == {0.2}
    only = ("--only", "algorithm=fedau", "--set", "algorithm.cutoff=20", "--executor", "inline")
    assert rollcall(capsys, "run", file, *only)[0] == 0
    refused = rollcall(capsys, "show", file, "--set", "fedou:algorithm.cutoff=20")[2]
    assert "'fedou' is not allowed; must be one of fedavg, fedau. Did you mean fedau?" in refused


def test_all_of_a_paper_are_run_and_one_that_fails_stops_no_other(store, tmp_path, capsys, monkeypatch):
    monkeypatch.setattr("rollcall.benchmark.config.experiment.LIBRARY", tmp_path)
    (tmp_path / "jones").mkdir()
    broken = TINY["trial"] | {"evaluation": {"splits": ["test"]}}  # which is found out when the trial is built
    write(tmp_path / "jones", "fig1", trial=broken)
    variants = {"as_released": {"about": "A larger rate.", "trial": {"local": {"lr": 0.4}}}}
    write(tmp_path / "jones", "table2", variants=variants)
    arguments = ("jones", "--executor", "inline", "--only", "algorithm=fedavg")
    code, out, err = rollcall(capsys, "run", *arguments)
    assert code == 1, err
    assert "failed: jones/fig1: evaluation.splits: 'test' is not allowed with quadratic; must be one of train" in err
    assert "2 trials: 2 run now, 0 before, 0 failed" in out
    assert len(list(store.glob("jones/**/model.npz"))) == 2
    reports = json.loads(rollcall(capsys, "run", *arguments, "--json")[1])
    told = [(one["experiment"], one["state"]) for one in reports]
    assert told == [("jones/fig1", "absent")] * 2 + [("jones/table2", "finished")] * 2
    code, out, err = rollcall(capsys, "run", "jones", "--variant", "as_released")  # fig1 has none
    assert (code, out, err.count("\n"), err.startswith("error: variant: 'as_released' is not")) == (2, "", 1, True)
    assert rollcall(capsys, "run", "jones/fig1", "smith/*")[2].startswith("error: experiment: 'smith/*' is not allowed")
    arguments = ("jones/table2", "--variant", "as_released", "--seeds", "7")
    assert rollcall(capsys, "run", *arguments, "--executor", "inline", "--only", "algorithm=fedavg")[0] == 0
    (file,) = (store / "jones" / "table2").glob("fedavg-seed7*/trial.yaml")
    assert yaml.safe_load(file.read_text())["local"]["lr"] == 0.4


def test_what_other_code_computed_is_told_and_redone_on_request(store, tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(run, "find_spec", lambda name: None)  # without MLflow
    arguments = ("run", write(tmp_path), "--executor", "inline")
    rollcall(capsys, *arguments)
    files = {file.parent.name.rpartition("-")[0]: file for file in store.rglob("status.json")}
    written = {name: json.loads(file.read_text()) for name, file in files.items()}
    modules = {"algorithms.fedpbc", "algorithms.base", "participation.independent", "tasks.known_optimum"}
    assert modules <= set(written["fedpbc-seed0"]["code"])
    assert "algorithms.fedpbc" not in written["fedavg-seed0"]["code"]
    other = written["fedpbc-seed1"] | {"code": written["fedpbc-seed1"]["code"] | {"algorithms.fedpbc": "0123456789"}}
    files["fedpbc-seed1"].write_text(json.dumps(other))
    told = "Computed by other code of algorithms.fedpbc: 1 trial; "
    _, out, err = rollcall(capsys, *arguments)
    assert (f"{told}results are kept" in err, "0 run now, 4 before" in out) == (True, True)
    for wrong, told_so in (
        (("--rounds", "3"), "redo-changed: fedpbc-seed1"),
        (("--set", "numerics.device=cuda"), "numerics.device: "),
    ):  # nothing is removed before all is known to be right
        code, _, err = rollcall(capsys, *arguments, "--redo-changed", *wrong)
        assert (code, told_so in err.splitlines()[-1]) == (2, True)
        assert files["fedpbc-seed1"].exists()
    with monkeypatch.context() as patch:  # another terminal has run it again meanwhile
        again = json.dumps(written["fedpbc-seed1"] | {"updated": 0.5})
        patch.setattr(jobs, "check", lambda *_: files["fedpbc-seed1"].write_text(again))
        assert "0 run now, 4 before" in rollcall(capsys, *arguments, "--redo-changed")[1]
    assert files["fedpbc-seed1"].read_text() == again
    files["fedpbc-seed1"].write_text(json.dumps(other))
    assert f"{told}results are kept" in rollcall(capsys, *arguments, "--rounds", "24")[2]  # also of one that goes on
    assert json.loads(files["fedpbc-seed1"].read_text())["code"] == other["code"]
    code = written["fedpbc-seed1"]["code"]
    arguments += ("--rounds", "24")
    written = {name: json.loads(file.read_text()) for name, file in files.items()}
    _, out, err = rollcall(capsys, *arguments, "--redo-changed")
    assert (f"{told}run again now" in err, "1 run now, 3 before" in out) == (True, True)
    after = {name: json.loads(file.read_text()) for name, file in files.items()}
    assert after["fedpbc-seed1"]["code"] == code
    assert {name for name in after if after[name] == written[name]} == set(files) - {"fedpbc-seed1"}


def test_a_method_whose_file_was_moved_has_its_runs(store, tmp_path, capsys):
    """It is the same code: nothing is computed again, and its name leads to the new file."""
    text = "from rollcall.algorithms.fedavg import FedAvg\n\n\nclass Mine(FedAvg):\n    pass\n"
    first, second = tmp_path / "mine.py", tmp_path / "methods" / "own.py"
    first.write_text(text)
    file = write(tmp_path)
    arguments = ("run", file, "--executor", "inline", "--seeds", "0", "--only", "algorithm=Mine")
    assert "1 run now" in rollcall(capsys, *arguments, "--algorithm", f"{first}:Mine", "--rounds", "8")[1]
    second.parent.mkdir()
    first.rename(second)
    _, out, err = rollcall(capsys, *arguments, "--algorithm", f"{second}:Mine", "--rounds", "4")
    assert ("0 run now, 1 before" in out, "other code" in err) == (True, False)
    (kept,) = own(store, "tiny")
    assert (kept.settings["algorithm"], kept.rounds) == (f"{second}:Mine", 8)


def test_a_run_that_diverged_by_other_code_is_redone(store, tmp_path, capsys):
    trial = TINY["trial"] | {"local": {"steps": 2, "lr": 50.0}, "rounds": 200}
    arguments = ("run", write(tmp_path, trial=trial), "--executor", "inline", "--only", "algorithm=fedavg,seed=0")
    rollcall(capsys, *arguments)
    (file,) = store.rglob("status.json")
    status = json.loads(file.read_text())
    assert status["state"] == "diverged"
    file.write_text(json.dumps(status | {"code": status["code"] | {"algorithms.fedavg": "0123456789"}}))
    rollcall(capsys, *arguments, "--redo-changed")
    again = json.loads(file.read_text())
    assert (again["state"], again["code"]) == ("diverged", status["code"])


def test_a_run_from_python_records_its_file(tmp_path):
    assert run.run(write(tmp_path), store=tmp_path / "runs", executor="inline", mlflow=False).jobs
    record = tmp_path / "runs" / "tiny" / run.RECORD
    assert run.file_of_runs(record.parent) == str(tmp_path / "tiny.yaml")
    record.unlink()
    run.run(str(tmp_path / "tiny.yaml"), store=tmp_path / "runs", executor="inline", mlflow=False)
    assert not record.exists()  # nothing is left to run, and the store may be one that can only be read


OWN_DATA = """
from pathlib import Path
import numpy as np
from torch import nn
from rollcall import tasks

def hospitals(seed):
    data = np.load(Path(__file__).with_name("hospitals.npz"))
    return tasks.supervised((data["x"], data["y"]), None, lambda seed: nn.Linear(2, 2), clients=2)(seed)
"""


def test_a_run_whose_own_task_reads_other_data_is_refused_or_redone(store, tmp_path, capsys):
    def save(labels):
        np.savez(tmp_path / "hospitals.npz", x=np.eye(20, 2, dtype=np.float32), y=labels)

    labels = np.arange(20) % 2
    save(labels)
    (tmp_path / "own.py").write_text(OWN_DATA)
    trial = {"task": f"{tmp_path}/own.py:hospitals", "rounds": 4}
    report = {"metrics": {"train/loss": "min"}}
    file = write(tmp_path, trial=trial, report=report, grid={"seed": [0], "algorithm": ["fedavg", "fedpbc"]})
    arguments = ("run", file, "--executor", "inline")
    assert "2 run now, 0 before" in rollcall(capsys, *arguments)[1]
    assert "0 run now, 2 before" in rollcall(capsys, *arguments)[1]
    save(1 - labels)
    before = {path: path.read_bytes() for path in store.rglob("*.json*")}
    for rounds in ("4", "6"):  # finished, and continued
        code, _, err = rollcall(capsys, *arguments, "--rounds", rounds)
        assert (code, err.count("\n")) == (2, 1)
        assert "task: makes other data now than for the run in " in err
        assert "and 1 more. To run again: delete such folders, as `rollcall run` does with --redo-changed" in err
    folders = sorted(path.parent for path in store.rglob("status.json"))
    with pytest.raises(SettingError, match="makes other data now"):
        simulate(load_yaml(folders[0] / "trial.yaml") | {"rounds": 6}, folder=folders[0])
    assert {path: path.read_bytes() for path in before} == before
    code, out, err = rollcall(capsys, *arguments, "--redo-changed")
    assert (code, err.count("Its data have changed: ")) == (0, 2)
    assert "2 run now, 0 before" in out
    save(labels)
    assert rollcall(capsys, *arguments)[0] == 2


def test_the_executor_is_ray_if_it_is_installed_or_its_options_are_given(monkeypatch, capsys):
    defaults = {"store": Path(), "gpus": "0", "retries": 1, "every": "2m", "storage": "", "address": ""}

    def chosen(asked, **options):
        return execution(executor=asked, **defaults | options).executor

    monkeypatch.setattr(run, "find_spec", lambda name: object())
    assert [chosen(asked) for asked in (None, "ray", "inline")] == ["ray", "ray", "inline"]
    assert chosen("inline", retries=0) == "inline"
    for name, value in {"storage": "bucket", "gpus": "0.5", "retries": 2}.items():
        option = name.replace("gpus", "gpus-per-trial")
        with pytest.raises(SettingError, match=f"^--executor inline is not allowed with --{option}; must be ray$"):
            chosen("inline", **{name: value})
    assert capsys.readouterr().err == ""
    for share in (-1, float("inf"), "half"):
        with pytest.raises(SettingError, match=f"^gpus-per-trial: {share!r} is not allowed; must be a number from 0"):
            Execution(gpus_per_trial=share)
    monkeypatch.setattr(run, "find_spec", lambda name: None)
    assert chosen(None) == "inline"
    assert "Ray is not installed: trials run one after another." in capsys.readouterr().err
    with pytest.raises(SettingError, match=r"^--executor ray needs Ray: pip install '.\[ray\]'$"):
        chosen("ray")


@pytest.mark.parametrize(
    ("option", "value", "message"),
    [
        ("--gpus-per-trial", "half", "gpus-per-trial: 'half' is not allowed; must be a number from 0"),
        ("--gpus-per-trial", "nan", "gpus-per-trial: nan is not allowed; must be a number from 0, such as 0.25"),
        ("--checkpoint-every", "often", "checkpoint-every: 'often' is not allowed; must be a number above 0 with s"),
        ("--storage", "nowhere://runs", "storage: 'nowhere://runs' is not allowed"),
        pytest.param("--ray-address", "127.0.0.1:1", "ray-address: no Ray cluster answers at '127.0.0.1:1'", marks=pytest.mark.ray),
    ],
)  # fmt: skip
def test_an_option_of_ray_is_refused(store, tmp_path, capsys, option, value, message):
    code, _, err = rollcall(capsys, "run", write(tmp_path), f"{option}={value}")
    assert code == 2
    assert message in err
    assert not list(store.glob("*/*/"))


@pytest.mark.full
def test_without_ray_and_mlflow_trials_run_inline_and_sync_brings_it_in_later(store, tmp_path, capsys):
    file = write(tmp_path)
    script = (
        "import sys, importlib.util, importlib.abc\n"
        "class Absent(importlib.abc.MetaPathFinder):\n"
        "    def find_spec(self, name, path, target=None):\n"
        "        if name.partition('.')[0] in ('ray', 'mlflow'): raise ModuleNotFoundError(name)\n"
        "sys.meta_path.insert(0, Absent())\n"
        "import rollcall.cli.run, rollcall.benchmark.sweep.run\n"
        "rollcall.benchmark.sweep.run.find_spec = rollcall.cli.run.find_spec = lambda name: None\n"
        f"sys.argv = ['rollcall', 'run', {file!r}]\n"
        "from rollcall.cli import main\n"
        "main()\n"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "Ray is not installed: trials run one after another. For parallel trials: pip install" in done.stderr
    assert "4 run now" in done.stdout
    assert "MLflow is not installed: results are in the run folders only" in done.stdout
    assert not (store / "mlflow.db").exists()
    assert "tiny: 4 runs copied to" in rollcall(capsys, "sync")[2]
    rows = json.loads(rollcall(capsys, "leaderboard", file, "--json")[1])["rows"]
    assert [row["seeds"] for row in rows] == [2, 2]
    assert "tiny: 0 runs copied to" in rollcall(capsys, "sync", "tiny")[2]  # a run is known by its trial
