"""The command line, as its user meets it."""

import json
import subprocess
import sys
from pathlib import Path

import pandas as pd
import pytest
import yaml
from command import TINY, rollcall, write
from real_data import needs_cifar10, needs_mnist
from torchvision.datasets import MNIST

from rollcall.algorithms import ALGORITHMS
from rollcall.benchmark.cli.app import COMMANDS, imported
from rollcall.benchmark.config.experiment import names
from rollcall.benchmark.federation.run_folder import RunFolder
from rollcall.tasks import TASKS

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
    assert {path.name for path in (store / "tiny").glob("leaderboard.*")} == {
        f"leaderboard.{end}" for end in ("md", "csv", "tex", "html", "png")
    }


@pytest.mark.usefixtures("one_ray")
def test_ray_and_inline_agree_and_go_on_after_a_trial_that_fails(store, tmp_path, capsys, monkeypatch):
    # Workers have a working directory of their own: what the failing method tells is where it would look for data.
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("ROLLCALL_DATA", raising=False)
    broken = "if call.t == 3:\n            raise RuntimeError(root().resolve())\n        if len(call.active) == 0:"
    code = "from rollcall.tasks.datasets import root\n" + METHOD.replace("if len(call.active) == 0:", broken)
    (tmp_path / "mine.py").write_text(code)
    file = write(tmp_path)
    histories = {}
    for executor in ("ray", "inline"):
        where = ("--executor", executor, "--store", str(tmp_path / executor))
        code, out, err = rollcall(capsys, "run", file, "--algorithm", f"{tmp_path}/mine.py:Halfway", *where, "--json")
        assert code == 1
        failures = [line for line in err.splitlines() if line.startswith("failed: Halfway-seed")]
        assert [line.partition(": RuntimeError: ")[2] for line in failures] == [str(tmp_path / "data")] * 2
        reports = {report["trial"]: report for report in json.loads(out)}
        assert sorted(report["state"] for report in reports.values()) == ["failed"] * 2 + ["finished"] * 4
        histories[executor] = {name: RunFolder(Path(report["folder"])).history() for name, report in reports.items()}
        rows = json.loads(rollcall(capsys, "leaderboard", file, *where[2:], "--json")[1])["rows"]
        assert {row["labels"]["algorithm"]: row["seeds"] for row in rows} == {"fedavg": 2, "fedpbc": 2}
    assert all(history.equals(histories["inline"][name]) for name, history in histories["ray"].items())


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


def test_settings_are_searched_and_shown(store, tmp_path, capsys):
    file = write(tmp_path)
    code, out, _ = rollcall(
        capsys,
        "run",
        file,
        "--executor",
        "inline",
        "--set",
        "local.lr=0.3,0.1",
        "--only",
        "algorithm=fedavg",
        "--seeds",
        "5",
        "--rounds",
        "12",
        "--json",
    )
    assert code == 0
    assert [(report["algorithm"], report["seed"], report["metrics"]["round"]) for report in json.loads(out)] == [
        ("fedavg", 5, 12)
    ] * 2
    rows = json.loads(rollcall(capsys, "leaderboard", file, "--json")[1])["rows"]
    assert sorted(row["labels"]["local.lr"] for row in rows) == ["0.1", "0.3"]


def test_rates_can_be_chosen_on_a_validation_split(store, tmp_path, capsys):
    task = {"name": "digits", "clients": 3, "model": "linear"}
    file = write(tmp_path, trial=QUADRATIC | {"task": task, "rounds": 4}, report={"metrics": {"test/accuracy": "max"}})
    common = ("run", file, "--executor", "inline", "--seeds", "0", "--only", "algorithm=fedavg")
    assert rollcall(capsys, *common)[0] == 0
    assert rollcall(capsys, *common, "--set", "task.validation=0.2", "--set", "local.lr=0.3,0.1")[0] == 0
    rows = json.loads(rollcall(capsys, "leaderboard", file, "--metric", "validation/accuracy=max", "--json")[1])["rows"]
    assert sorted(row["labels"]["local.lr"] for row in rows) == ["0.1", "0.3"]  # the first run has no such split
    assert rows[0]["mean"] >= rows[1]["mean"]
    code, _, err = rollcall(capsys, "leaderboard", file, "--metric", "test/accuracy=big")
    assert code == 2
    assert err == "error: metric: 'test/accuracy=big' is not allowed; must be NAME=max, NAME=min or NAME=zero\n"


def test_show_tells_what_clients_hold(store, tmp_path, capsys):
    task = {"name": "digits", "clients": 3, "partition": {"name": "by_label", "sizes": [2, 1], "only": [1, 4]}}
    file = write(tmp_path, trial=QUADRATIC | {"task": task})
    code, out, err = rollcall(capsys, "show", file, "--partition")
    assert code == 0
    assert err == ""
    rows = [[cell.strip() for cell in line.split("\u2502")[1:-1]] for line in out.splitlines() if "\u2502" in line]
    # 146 and 145 of scikit-learn's ones and fours are in the training split.
    assert rows == [
        ["samples", "73", "73", "145"],
        ["classes", "1", "1", "1"],
        ["largest share of a class", "100.0%", "100.0%", "100.0%"],
    ]
    picture = tmp_path / "new" / "parts.png"
    code, out, err = rollcall(capsys, "show", file, "--plot", str(picture), "--json", "--set", "task.clients=3")
    assert (code, err) == (0, f"partition: {picture}\n")
    assert json.loads(out)["samples"] == [73, 73, 145]
    assert picture.read_bytes().startswith(b"\x89PNG")
    code, _, err = rollcall(capsys, "show", file, "--partition", "--set", "task.clients=4")
    assert (code, err) == (2, "error: task.partition.sizes: [2, 1] is not allowed; must be from 1 and add up to 4\n")
    code, _, err = rollcall(capsys, "show", write(tmp_path), "--partition")
    assert (code, err) == (2, "error: partition: 'quadratic' is not allowed; must be a task with classes\n")


def test_show_and_list(store, tmp_path, capsys):
    code, out, _ = rollcall(capsys, "show", "quickstart")
    assert code == 0
    assert "15 trials, 4,500 rounds in all; 0 finished" in out
    code, out, _ = rollcall(capsys, "list", "--json")
    assert code == 0
    listed = json.loads(out)
    assert {"bias", "quickstart", "mnist", "cifar10"} <= set(listed["experiment"])
    assert set(listed["algorithm"]) == set(ALGORITHMS)
    assert {"full", "bernoulli", "minimum_separation", "trace"} <= set(listed["participation"])
    assert all(summary for things in listed.values() for summary in things.values())


@pytest.fixture
def paper(tmp_path, monkeypatch):
    """A library with one experiment of its own and two of a paper."""
    library = tmp_path / "library"
    (library / "jones").mkdir(parents=True)
    write(library, "alone", title="Alone")
    write(library / "jones", "fig1", title="First", source="[J] Fig. 1")
    variants = {"as_released": {"about": "A larger rate.", "trial": {"local": {"lr": 0.4}}}}
    write(library / "jones", "table2", title="Second", source="[J] Table II", variants=variants)
    monkeypatch.setattr("rollcall.benchmark.config.experiment.LIBRARY", library)
    return library


def test_list_by_paper(paper, capsys):
    lines = [line.split("   ") for line in rollcall(capsys, "list")[1].splitlines()]
    rows = [[cell.strip() for cell in line if cell.strip()] for line in lines]
    assert rows[: rows.index(["task"])] == [
        *(["experiment"], ["alone", "Alone"], []),
        *(
            ["experiments of jones"],
            ["jones/fig1", "First", "[J] Fig. 1"],
            ["jones/table2", "Second", "[J] Table II"],
            [],
        ),
    ]
    listed = json.loads(rollcall(capsys, "list", "--json")[1])
    assert listed["experiment"] == {"alone": "Alone", "jones/fig1": "First", "jones/table2": "Second"}


def test_all_of_a_paper_are_run_and_one_that_fails_stops_no_other(paper, store, tmp_path, capsys):
    broken = TINY["trial"] | {"evaluation": {"splits": ["test"]}}  # which is found out when the trial is built
    write(paper / "jones", "fig1", trial=broken)
    arguments = ("jones", "--executor", "inline", "--only", "algorithm=fedavg")
    code, out, err = rollcall(capsys, "run", *arguments)
    assert code == 1, err
    assert "failed: jones/fig1: evaluation.splits: 'test' is not allowed with quadratic; must be one of train" in err
    assert "2 trials: 2 run now, 0 before, 0 failed" in out
    assert len(list(store.glob("jones/**/model.npz"))) == 2
    reports = json.loads(rollcall(capsys, "run", *arguments, "--json")[1])
    assert [(one["experiment"], one["state"]) for one in reports] == [("jones/fig1", "absent")] * 2 + [
        ("jones/table2", "finished")
    ] * 2
    code, out, err = rollcall(capsys, "run", "jones", "--only", "algorithm=mifa")
    assert (code, out) == (2, "")
    code, out, err = rollcall(capsys, "run", "jones", "--variant", "as_released")  # fig1 has none
    assert (code, out) == (2, "")
    assert err == "error: variant: 'as_released' is not allowed; must be left out, the experiment has none\n"
    shown = rollcall(capsys, "show", "jones")[1]
    assert [line for line in shown.splitlines() if "finished in" in line] == [
        f"4 trials, 80 rounds in all; {done} finished in {store}/jones/{name}"
        for name, done in (("fig1", 0), ("table2", 2))
    ]


def test_a_variant_is_run(paper, store, capsys):
    arguments = ("jones/table2", "--variant", "as_released", "--seeds", "7")
    assert "settings of all trials" in rollcall(capsys, "show", *arguments)[1]
    code, _, err = rollcall(capsys, "run", *arguments, "--executor", "inline", "--only", "algorithm=fedavg")
    assert (code, err.count("error")) == (0, 0), err
    (file,) = (store / "jones" / "table2").glob("*/trial.yaml")
    trial = yaml.safe_load(file.read_text())
    assert (trial["seed"], trial["local"]["lr"]) == (7, 0.4)


def test_show_says_what_an_experiment_is(store, tmp_path, capsys):
    targets = [[float(i)] for i in range(30)]
    file = write(
        tmp_path,
        source="[J] Fig. 1",
        about="Thirty clients.",
        trial=QUADRATIC | {"task": {"name": "quadratic", "targets": targets}},
        grid={"seed": [0, 1], "algorithm": ["fedavg", "fedpbc"], "participation.probability": {"low": 0.1, "high": 0.9}},
        panels={"short": {"title": "A look"}, "long": {"title": "To the end", "trial": {"rounds": 60}}},
        overrides=[{"when": {"algorithm": "fedpbc"}, "set": {"local.lr": 0.05}, "found": "by hand"}],
        choices={"local.steps": "the paper is silent"},
        variants={"as_released": {"about": "As its code does."}},
        claims=[{"says": "FedPBC ends nearer.", "tag": "ours", "of": {"algorithm": "fedpbc"}, "minus": {"algorithm": "fedavg"}, "most": 0}],
    )  # fmt: skip
    code, out, err = rollcall(capsys, "show", file)
    assert (code, err) == (0, "")
    rows = [[cell.strip() for cell in line.split("   ") if cell.strip()] for line in out.splitlines()]
    for row in (
        ["Source: [J] Fig. 1"],
        ["task.targets", "30 x 1 numbers from 0 to 29"],
        ["panel short: A look"],
        ["participation.probability", "low, high"],
        ["8 trials of 20 rounds"],
        ["panel long: To the end"],
        ["rounds", "60"],
        ["8 trials of 60 rounds"],
        ["algorithm fedpbc", "local.lr 0.05", "by hand"],
        ["local.steps", "the paper is silent"],
        ["as_released", "As its code does."],
        ["1", "FedPBC ends nearer."],
        ["train/distance ↓; mean of the last 10 rounds"],
        [f"8 trials, 480 rounds in all; 0 finished in {store}/tiny"],  # a run of 60 rounds has the first 20
    ):
        assert row in rows, row
    # One number for all panels, which then are the same trials.
    out = rollcall(capsys, "show", file, "--rounds", "7")[1]
    assert out.count("8 trials of 7 rounds") == 2
    assert "8 trials, 56 rounds in all" in out


def test_show_estimates_where_the_data_are_here(store, tmp_path, capsys, monkeypatch):
    from rollcall.benchmark.sweep import estimate

    monkeypatch.setattr(estimate.os, "cpu_count", lambda: 2)
    # 0.5 s a round, 2.5 s an evaluation: 10 + 3 x 2.5 (after 0, 10 and 20 rounds), four times.
    monkeypatch.setattr(estimate, "probe", lambda *_: estimate.Pace(loop=0.5, client=0.0, batch=2.5))
    out = rollcall(capsys, "show", write(tmp_path), "--estimate")[1]
    assert "about 35 s with 2 at once on this machine, 70 s one after another (estimated from short probes)" in out
    monkeypatch.setenv("ROLLCALL_DATA", str(tmp_path / "empty"))
    out = rollcall(capsys, "show", "mnist", "--estimate")[1]
    assert "No estimate without mnist. To download: rollcall data fetch mnist" in out
    assert not (tmp_path / "empty").exists()


def test_a_budget_cuts_is_told_and_recorded_and_holds_for_the_next_call(store, tmp_path, capsys, monkeypatch):
    from rollcall.benchmark.sweep import estimate

    probes = []
    monkeypatch.setattr(
        estimate, "probe", lambda *_: probes.append(1) or estimate.Pace(loop=1.0, client=0.0, batch=0.0)
    )
    file = write(tmp_path, trial=QUADRATIC | {"rounds": 40})
    arguments = ("run", file, "--executor", "inline", "--budget")
    # Four trials of 40 seconds: 100 seconds are 25 each, hence 20 rounds.
    code, out, err = rollcall(capsys, *arguments, "100s")
    assert code == 0
    assert err.startswith("tiny: about 80 s instead of 3 min (estimates)\n  rounds 40 -> 20\n")
    assert "4 trials: 4 run now" in out
    assert {RunFolder(file.parent).status["rounds"] for file in store.rglob("status.json")} == {20}
    record = json.loads((store / "tiny" / "budget.json").read_text())
    assert (record["budget"], record["full"], record["estimated"]) == (100, 160, 80)
    assert "0 run now, 4 before" in rollcall(capsys, *arguments, "100s")[1]
    assert len(probes) == 1
    # 50 seconds: 20 rounds are the least, of one seed 40.
    code, out, err = rollcall(capsys, *arguments, "50s")
    assert err.startswith("tiny: about 40 s instead of 3 min (estimates)\n  rounds 40 -> 20; seeds 0, 1 -> 0\n")
    assert "2 trials: 0 run now, 2 before" in out
    code, _, err = rollcall(capsys, *arguments, "fast")
    assert code == 2
    assert err.startswith("error: budget: 'fast' is not allowed; must be a number above 0 with s, m or h")


QUADRATIC = TINY["trial"]
WIDE = {"name": "trace", "mask": [[1, 0, 1, 1]]}


@pytest.mark.parametrize(
    ("changes", "arguments", "complaint"),
    [
        ({}, ["--set", "algorithm=fedavgg"], "algorithm.name: 'fedavgg' is not allowed; must be one of local_sgd, fedavg,"),
        ({"trial": QUADRATIC | {"rouds": 3}}, [], "rouds: is not a setting; allowed: task,"),
        ({"trial": QUADRATIC | {"local": {"momentun": 3}}}, [], "local.momentun: is not a setting; allowed: steps, epochs, lr,"),
        ({}, ["--only", "algorithm=fedpbc", "--set", "algorithm.etag=1"], "algorithm.etag: is not an option of fedpbc; allowed: eta_g"),
        ({"tittle": "Tiny"}, [], "tiny.yaml: tittle: is not a setting; allowed: name, title,"),
        ({}, ["--set", "participation.probability=1.2"], "participation.probability: 1.2 (client 0) is not allowed; must be in [0, 1]"),
        ({"trial": QUADRATIC | {"participation": WIDE}}, [], "participation.mask: shape (1, 4) is not allowed; must be [rounds, 3]"),
        ({}, ["--set", "local.lr=-1"], "local.lr: -1 is not allowed; must be greater than 0"),
        ({}, ["--rounds", "0"], "rounds: 0 is not allowed; must be greater than 0"),
        ({}, ["--only", "algorithm=mifa"], "only algorithm: 'mifa' is not allowed; must be one of fedavg, fedpbc"),
        ({}, ["--only", "rounds=3"], "only: 'rounds' is not allowed; must be an axis of the grid: seed, algorithm"),
        ({}, ["--set", "nonsense"], "set: 'nonsense' is not allowed; must be SETTING=VALUE"),
        ({}, ["--algorithm", "nowhere.py:Mine"], "algorithm.name: 'nowhere.py:Mine' is not allowed; there is no file"),
        ({}, ["--set", "server.lr=0.5"], "server: another optimizer is not allowed with fedpbc"),
        ({"trial": QUADRATIC | {"evaluation": {"splits": ["test"]}}}, [], "evaluation.splits: 'test' is not allowed with quadratic; must be one of train"),
        ({}, ["--set", "numerics.device=cuda"], "numerics.device: 'cuda' needs a GPU, but torch finds no GPU"),
    ],
)  # fmt: skip
def test_a_setting_that_cannot_be_is_one_line_and_exit_code_2(
    changes, arguments, complaint, store, tmp_path, capsys, monkeypatch
):
    monkeypatch.setattr("torch.cuda.is_available", lambda: False)
    code, out, err = rollcall(capsys, "run", write(tmp_path, **changes), *arguments)
    assert code == 2
    assert out == ""
    assert err.startswith(f"error: {complaint}")
    assert err.count("\n") == 1
    assert not store.exists()


def test_a_missing_data_set_is_one_line_and_exit_code_2(store, tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(MNIST, "mirrors", ["http://127.0.0.1:9/"])
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    monkeypatch.setenv("ROLLCALL_DATA", str(tmp_path / "empty"))
    TASKS["mnist"].args[0].cache_clear()
    code, out, err = rollcall(capsys, "run", "mnist")
    assert code == 2
    assert out == ""
    assert err.startswith("error: task.name: mnist is not in ")
    assert "set ROLLCALL_DATA to a folder that holds MNIST/raw/train-images-idx3-ubyte" in err
    assert err.count("\n") == 1
    assert not store.exists()
    assert not (tmp_path / "empty").exists()


def test_unknown_experiments_and_missing_runs(store, tmp_path, capsys):
    code, _, err = rollcall(capsys, "run", "quickstrat")
    assert code == 2
    assert (
        err == f"error: experiment: 'quickstrat' is not allowed; must be one of {', '.join(names())}, or a .yaml file\n"
    )
    for command in ("run", "show", "leaderboard", "participation", "status", "clean"):
        code, _, err = rollcall(capsys, command, str(tmp_path / "none.yaml"))
        file = tmp_path / "none.yaml"
        assert (code, err) == (2, f"error: experiment: '{file}' is not allowed; there is no file {file}\n")
    code, _, err = rollcall(capsys, "leaderboard", write(tmp_path))
    assert code == 2
    assert "has no finished run in" in err


def test_without_ray_and_mlflow_trials_run_inline_and_sync_brings_it_in_later(store, tmp_path, capsys):
    file = write(tmp_path)
    script = (
        "import sys, importlib.util, importlib.abc\n"
        "class Absent(importlib.abc.MetaPathFinder):\n"
        "    def find_spec(self, name, path, target=None):\n"
        "        if name.partition('.')[0] in ('ray', 'mlflow'): raise ModuleNotFoundError(name)\n"
        "sys.meta_path.insert(0, Absent())\n"
        "import rollcall.benchmark.cli.run, rollcall.benchmark.sweep.pool\n"
        "rollcall.benchmark.sweep.pool.find_spec = rollcall.benchmark.cli.run.find_spec = lambda name: None\n"
        f"sys.argv = ['rollcall', 'run', {file!r}]\n"
        "from rollcall.benchmark.cli import main\n"
        "main()\n"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "Ray is not installed: trials run one after another. For parallel trials: pip install" in done.stderr
    assert "4 run now" in done.stdout
    assert "MLflow is not installed: results are in the run folders only" in done.stdout
    assert not (store / "mlflow.db").exists()
    assert rollcall(capsys, "sync")[:2] == (0, "tiny: 4 run folders\n")
    rows = json.loads(rollcall(capsys, "leaderboard", file, "--json")[1])["rows"]
    assert [row["seeds"] for row in rows] == [2, 2]
    # Once more changes nothing: a run is known by its trial.
    assert rollcall(capsys, "sync", "tiny")[1] == "tiny: 4 run folders\n"
    assert json.loads(rollcall(capsys, "leaderboard", file, "--json")[1])["rows"] == rows


@needs_mnist
def test_real_mnist_end_to_end(store, capsys):
    arguments = ("--executor", "inline", "--seeds", "0", "--rounds", "30", "--only", "algorithm=fedavg,mifa")
    code, out, _ = rollcall(capsys, "run", "mnist", *arguments, "--json")
    assert code == 0
    assert all(report["metrics"]["test/accuracy"] > 0.3 for report in json.loads(out))


@needs_cifar10
def test_real_cifar10_end_to_end(store, capsys):
    arguments = ("--executor", "inline", "--seeds", "0", "--rounds", "2", "--only", "algorithm=fedavg")
    code, out, _ = rollcall(capsys, "run", "cifar10", *arguments, "--json")
    assert code == 0
    assert json.loads(out)[0]["metrics"]["test/loss"] < 3


def heavy(*arguments: str) -> list[str]:
    """Of the modules that take seconds to import, those that `rollcall ARGUMENTS` imports."""
    code = (
        "import atexit, sys\n"
        "heavy = ('torch', 'lightning', 'ray', 'mlflow')\n"
        "atexit.register(lambda: print('\\n', *[name for name in heavy if name in sys.modules]))\n"
        f"sys.argv = ['rollcall', *{arguments}]\n"
        "from rollcall.benchmark.cli import main\n"
        "main()\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return done.stdout.splitlines()[-1].split()


@pytest.mark.parametrize(
    "arguments",
    [("--help",), ("list",), ("status",), ("leaderboard", "--help"), ("report", "--help"), ("bench", "--help")],
)
def test_nothing_waits_for_a_heavy_import_in_vain(arguments, store):
    assert heavy(*arguments) == []


def test_the_list_of_commands_says_what_each_command_says():
    for name, (_, summary) in COMMANDS.items():
        command = imported(name)
        assert " ".join(command.help.partition("\n\n")[0].split()) == summary
        assert command.name == name


def test_a_misspelt_command_is_answered_with_its_neighbour(capsys):
    code, _, err = rollcall(capsys, "lst")
    assert code == 2
    assert "Did you mean 'list'?" in " ".join(err.split())
