"""`rollcall check` passes what the suite has, and finds what is wrong with methods that are broken in one way each."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
from command import rollcall

from algorithms import ALGORITHMS
from benchmark import SettingError
from benchmark.config.registry import read
from benchmark.conformance.subject import P, Subject, shares

BROKEN = Path(__file__).parents[2] / "support" / "broken.py"


@pytest.fixture(scope="module")
def reports():
    """All checks of all methods, in a process without the type checker that watches the tests."""
    done = subprocess.run([sys.executable, "-m", "benchmark.cli", "check", "--json"], capture_output=True, text=True)
    return json.loads(done.stdout) | {"code": done.returncode}


@pytest.mark.parametrize("name", list(ALGORITHMS))
def test_registered_methods_pass(name, reports):
    assert reports["code"] == 0
    assert [outcome for outcome in reports[name] if not outcome["passed"]] == []
    assert len(reports[name]) == 17


# A part of the check's title, and of what it says was seen.
WRONG = {
    "ForgetfulScaffold": ("what is kept of clients changes when they take part", "it is the same after 10 rounds"),
    "Clairvoyant": ("a round does not depend on who answers in later ones", "and"),
    "ZeroWeights": ("clients without an uplink are not asked to compute", "clients [2, 4] were asked too"),
    "EqualSteps": ("a client that takes fewer steps than others is asked for no more", "clients [1, 3] beyond"),
    "Overwriting": ("x, state and call stay as they were given", "it was written to in round 0"),
    "Secretive": ("a run that is saved and loaded between rounds ends with the same bits", "instead of"),
    "Dice": ("the same rounds give the same bits", "torch's global generator"),
    "HomeBody": ("new tensors are made where x is", ""),
    "Single": ("update [d] and state keep shape, dtype", "torch.float32"),
    "Overconfident": ("under biased uplinks it ends where properties.limit says", "the optimum is"),
    "EmptyMean": ("a round without anybody is defined", "nan"),
    "Meddling": ("the state of silent clients is not touched", "became"),
    "Hoarder": ("the state of silent clients is not touched", "False became True"),
    "Misplacing": ("the state of silent clients is not touched", "became"),
    "Favourite": ("the clients' numbers mean nothing", "after round 0"),
}


@pytest.fixture(scope="module")
def failures():
    """Of each broken method the checks that it fails."""
    names = [f"{BROKEN}:{name}" for name in WRONG]
    done = subprocess.run(
        [sys.executable, "-m", "benchmark.cli", "check", *names, "--json"], capture_output=True, text=True
    )
    assert done.returncode == 1
    return {
        name.rpartition(":")[2]: [outcome for outcome in outcomes if not outcome["passed"]]
        for name, outcomes in json.loads(done.stdout).items()
    }


@pytest.mark.parametrize("name", WRONG)
def test_a_broken_method_fails_for_its_reason(name, failures):
    title, seen = WRONG[name]
    (failure,) = (outcome for outcome in failures[name] if outcome["check"].startswith(title))
    assert seen in failure["seen"]
    assert failure["expected"]


@pytest.mark.parametrize("name", ["ZeroWeights", "HomeBody", "Overconfident", "Hoarder"])
def test_and_for_no_other(name, failures):
    assert len(failures[name]) == 1


def test_the_report_begins_with_what_failed(capsys):
    code, out, _ = rollcall(capsys, "check", f"{BROKEN}:Overconfident")
    assert code == 1
    lines = [line for line in out.splitlines() if line.strip()]
    assert "1 of 17" in lines[0]
    assert "under biased uplinks" in " ".join(lines[1:3])
    assert "the optimum is" in " ".join(" ".join(lines).split())


@pytest.mark.parametrize(
    ("name", "complaint"),
    [("fedavgg", "must be one of local_sgd"), ("none.py:X", "there is no file"), ("{capacity: 2}", "name: is missing")],
)
def test_what_cannot_be_checked_is_one_line(name, complaint, capsys):
    code, out, err = rollcall(capsys, "check", name)
    assert (code, out) == (2, "")
    assert complaint in err
    assert len(err.splitlines()) == 1


def test_the_checks_own_numbers():
    """Two clients: c_1 = p_1 (1 - p_2) + p_1 p_2 / 2."""
    assert shares(P[:2]) == pytest.approx([0.15 * 0.1 + 0.15 * 0.45, 0.9 * 0.85 + 0.15 * 0.45])
    assert Subject.of(read("algorithm", "fedsgd")).steps == 1
    assert Subject.of(read("algorithm", "fedavg")).steps == 3
    with pytest.raises(SettingError, match="fedavgg"):
        read("algorithm", "fedavgg")
