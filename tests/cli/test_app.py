"""The command line as a whole: imports, help, and refusals. What cannot be is one line on stderr and exit code 2."""

import errno
import json
import subprocess
import sys

import pytest
from command import rollcall, write
from typer.main import get_command

from rollcall import Trial
from rollcall.benchmark.process import Interrupted
from rollcall.cli.app import app


def refused(capsys, *arguments):
    """The message of a command that is refused."""
    code, _, err = rollcall(capsys, *arguments)
    assert (code, err.count("\n"), err.startswith("error: ")) == (2, 1, True), err
    return err.removeprefix("error: ")


WITHOUT_TORCH = [line.split() for line in ("--help", "list", "status", "participation --help", "report --help", "clean quikstart")]  # fmt: skip


def test_nothing_waits_for_a_heavy_import_in_vain(store):
    """Commands that only tell, one after another in one process; and modules of tables, which draw nothing."""
    code = (
        "import sys\n"
        "from rollcall.cli import main\n"
        f"for arguments in {WITHOUT_TORCH}:\n"
        "    sys.argv = ['rollcall', *arguments]\n"
        "    try:\n        main()\n"
        "    except SystemExit:\n        pass\n"
        "import rollcall.leaderboard.leaderboards, rollcall.leaderboard.paper.reproduction\n"
        "heavy = ('torch', 'lightning', 'ray', 'mlflow', 'altair', 'vl_convert')\n"
        "print('heavy:', *[name for name in heavy if name in sys.modules])\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert (done.returncode, done.stdout.splitlines()[-1:]) == (0, ["heavy:"]), done.stderr


def test_every_help_text_is_there_and_has_at_most_twelve_words():
    group = get_command(app)
    for command in [*group.commands.values(), *group.commands["data"].commands.values()]:
        summary = command.help.partition("\n\n")[0]
        texts = {command.name: summary} | {option.name: option.help for option in command.params}
        assert {name: text for name, text in texts.items() if not text or len(text.split()) > 12} == {}, command.name


def test_help_shows_no_type_of_a_flag(capsys):
    for words in ("leaderboard", "data status"):
        out = rollcall(capsys, *words.split(), "--help")[1]
        assert ("--json" in out, "--help" in out, "bool" in out) == (True, True, False)


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        # options without effect beside another one
        (("leaderboard", "FILE", "--json", "--format", "csv"), "--format is not allowed with --json; "),
        (("participation", "ROLL", "--only", "panel=x"), "--only is not allowed with a file of a participation model; "),
        (("show", "mifa", "--rounds", "0"), "--rounds is not allowed for a part, which has no trials; it takes --json\n"),
        (("show", "mifa", "--estimate"), "--estimate is not allowed for a part, which has no trials; it takes --json\n"),
        (("check", "mifa", "--trust"), "--trust is not allowed with parts; it is for an entry, "),
        (("check", "a.json.xz", "--all"), "--all is not allowed with kept results; it is for an entry, "),
        (("check", "a.entry", "--kind", "model"), "--kind is not allowed with a file; it is for parts\n"),
        # values of options
        (("show", "quickstart", "--rounds", "-1"), "rounds: -1 is not allowed"),
        (("show", "quickstart", "--set", "local.lrr=1"), "local.lrr: is not a setting; allowed: steps"),
        (("bench", "--active", "1,x"), "active: 'x' is not allowed; must be a whole number from 1\n"),
        (("bench", "--clients", "x"), "clients: 'x' is not allowed; must be a whole number from 1\n"),
        (("enter", "mifa", "--space", "space.yaml"), "space: 'space.yaml' is not allowed; must be SETTING=DOMAIN,...\n"),
        (("leaderboard", "quickstart", "--metric", "test/x"), "metric: 'test/x' is not allowed; must say which values are better: test/x=max, =min or =zero\n"),
        (("leaderboard", "quickstart", "--only", ""), "only: '' is not allowed; must be SETTING=VALUE"),
        (("run", "quickstart", "--seeds", "[1"), "seeds: '[1' is not allowed; must be VALUE or VALUE,VALUE"),
        (("run", "FILE", "--algorithm", "{name: mifa"), "algorithm: '{name: mifa' is not allowed; must be NAME or '{name: NAME, OPTION: VALUE}'\n"),
        # files and stores
        (("run", "DIR/binary.yaml"), "DIR/binary.yaml: is not YAML"),
        (("run", "FILE", "--executor", "inline", "--store", "DIR/binary.yaml"), "DIR/binary.yaml/"),
        (("run", "FILE", "--executor", "inline", "--store", "DIR/binary.yaml/b"), "DIR/binary.yaml/b"),
        (("leaderboard", "FILE"), "experiment: 'tiny' has no finished run in"),
        *[
            ((command, "DIR/none.yaml"), "experiment: 'DIR/none.yaml' is not allowed; there is no file DIR/none.yaml\n")
            for command in ("run", "show", "leaderboard", "participation", "status", "clean")
        ],
        *[
            ((command, "quickstrat"), "experiment: 'quickstrat' is not allowed; must be a name of `rollcall list experiment`, or a .yaml file. Did you mean quickstart?\n")
            for command in ("run", "leaderboard", "participation")
        ],
        (("enter", "mine.py:Mine", "--board", "standard/digts"), "board: 'standard/digts' is not allowed; must be one of standard/digits, standard/fashion. Did you mean standard/digits?\n"),
        (("run", "FILE", "--tuned", "DIR/tuned.yaml"), "DIR/tuned.yaml: there is no such file; first: rollcall tune FILE --space SETTING=DOMAIN\n"),
        (("leaderboard", "FILE", "--mlflow", "sqlite:///DIR/none.db"), "mlflow: sqlite:///DIR/none.db is not allowed; there is no file DIR/none.db\n"),
        (("status", "DIR/none"), "experiment: 'DIR/none' is not allowed; must be a name or a YAML file\n"),
        *[((command, "--store", "DIR"), "store: DIR is not allowed; it is a run folder\n") for command in ("status", "sync")],
        (("site", "DIR/binary.yaml"), "DIR/binary.yaml"),
        (("report", "--to", "DIR/binary.yaml"), "DIR/binary.yaml"),
        *[
            ((*words.split(), "DIR/none"), "DIR/none: there is no such folder\n")
            for words in ("doctor", "clean quickstart --store", "sync --store", "compare fedavg mifa --mine --store", "site DIR/pages --store")
        ],
    ],
)  # fmt: skip
def test_a_wrong_command_is_refused_with_one_line(arguments, complaint, store, tmp_path, capsys):
    (tmp_path / "roll.yaml").write_text("clients: 4\nparticipation: {name: bernoulli, probability: 0.5}\n")
    (tmp_path / "binary.yaml").write_bytes(bytes(range(256)))
    (tmp_path / "status.json").write_text("{}")
    paths = {"FILE": write(tmp_path), "ROLL": str(tmp_path / "roll.yaml")}
    arguments = [paths.get(argument, argument).replace("DIR", str(tmp_path)) for argument in arguments]
    complaint = complaint.replace("FILE", paths["FILE"]).replace("DIR", str(tmp_path))
    assert refused(capsys, *arguments).startswith(complaint)
    assert not list(store.rglob("*.json"))


def test_a_missing_data_set_is_one_line_and_exit_code_2(store, tmp_path, capsys, monkeypatch):
    monkeypatch.setattr("torchvision.datasets.MNIST.mirrors", ["http://127.0.0.1:9/"])
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    monkeypatch.setenv("ROLLCALL_DATA", str(tmp_path / "empty"))
    err = refused(capsys, "run", "mnist")
    assert err.startswith("task.name: mnist is not in ")
    assert "set ROLLCALL_DATA to a folder that holds MNIST/raw/train-images-idx3-ubyte" in err
    assert not store.exists()


def test_a_claim_about_a_metric_with_a_typo_is_refused_before_anything_runs(store, tmp_path, capsys):
    claim = {"says": "So.", "tag": "ours", "least": 0, "metric": "train/loss", "at": 3, "per": "cost/flots"}
    error = refused(capsys, "run", write(tmp_path, claims=[claim]), "--executor", "inline")
    assert "claims: per: 'cost/flots' is not allowed; no trial records it. Recorded: train/loss" in error
    assert not list(store.rglob("status.json"))


@pytest.mark.parametrize(
    ("error", "line"),
    [
        (Interrupted("stopped after round 3 of 5"), "stopped after round 3 of 5"),
        (KeyboardInterrupt(), "Stopped. Rerun the command."),
    ],
)
def test_a_request_to_stop_ends_every_command_with_one_line(error, line, capsys, monkeypatch):
    def stopped(*arguments, **options):
        raise error

    monkeypatch.setattr("rollcall.benchmark.timing.measure", stopped)
    code, _, err = rollcall(capsys, "bench", "--quick")
    assert (code, err) == (130, f"{line}\n")


def test_a_full_disk_ends_a_command_with_one_line(tmp_path, capsys, monkeypatch):
    def full(*arguments, **options):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr("rollcall.benchmark.timing.measure", full)
    code, _, err = rollcall(capsys, "bench", "--quick")
    assert (code, err) == (2, "error: a file: cannot be read or written (No space left on device)\n")


def test_json_has_the_settings_and_null_for_what_was_not_measured(store, tmp_path, capsys):
    """The last round measures only the training split. Python's own reader would accept NaN."""
    last = {"rounds": 1, "every": 1, "splits": ["train"]}
    trial = {"task": {"name": "digits", "clients": 5}, "local": {"lr": 0.1, "batch_size": 8}, "rounds": 2}
    trial |= {"evaluation": {"every": 1, "last": last}}
    file = write(tmp_path, trial=trial, grid={"seed": [3], "algorithm": ["fedavg"]}, report={})
    text = rollcall(capsys, "run", file, "--executor", "inline", "--json")[1]
    assert rollcall(capsys, "show", file, "--json")[1] == text
    (entry,) = json.loads(text, parse_constant=lambda name: name)
    assert entry["metrics"]["test/accuracy"] is None
    assert entry["metrics"]["train/loss"] > 0
    assert (entry["settings"]["seed"], entry["settings"]["local"]["lr"]) == (3, 0.1)
    assert Trial.read(entry["settings"]).complete(lambda array: array.tolist()) == entry["settings"]
