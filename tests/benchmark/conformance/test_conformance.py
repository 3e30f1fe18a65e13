"""`rollcall check` passes what the suite has, and finds what is wrong with methods that are broken in one way each."""

import json
from pathlib import Path

import jaxtyping
import pytest
from command import rollcall

from rollcall.algorithms import ALGORITHMS
from rollcall.benchmark.config.choice import read
from rollcall.benchmark.conformance import CHECKS, conform

BROKEN = Path(__file__).parents[2] / "support" / "broken.py"


@pytest.fixture(autouse=True)
def _unwatched(monkeypatch):
    """The type checker that watches the tests draws from Python's global generator."""
    monkeypatch.setattr(jaxtyping.config, "jaxtyping_disable", True)


@pytest.mark.parametrize(
    "name", ["fedvarp", *(pytest.param(one, marks=pytest.mark.full) for one in ALGORITHMS if one != "fedvarp")]
)
def test_registered_methods_pass(name):
    outcomes = conform(read("algorithm", name))
    assert [outcome for outcome in outcomes if not outcome.passed] == []
    assert len(outcomes) == len(CHECKS["algorithm"])


# A part of the check's title, and of what it says was seen.
WRONG = {
    "ForgetfulScaffold": ("the state of a client changes when the client is active", "it is the same after 60 rounds"),
    "ZeroWeights": ("only active clients compute", "clients [2, 4] computed too"),
    "EqualSteps": (
        "no client takes more than its own number of local steps",
        "clients [1, 3] computed gradients after",
    ),
    "Overwriting": ("`round` does not modify x, state or call", "it was modified in round 0"),
    "Secretive": ("a run that is saved and loaded between rounds is bit-identical", "instead of"),
    "Dice": ("the result does not depend on global random generators", "a global generator was used"),
    "HomeBody": ("new tensors are made on the device of x", "on device meta"),
    "Single": ("`init`, `round`, `eval_models` and `traffic` return", "(a float32 tensor [2], a Nothing)"),
    "Overconfident": ("under biased participation the model converges to what", "the optimum is"),
    "NewModel": ("`round` returns the update of x, not the new model", "the new model: what `round` returns moves"),
    "Doubled": ("with full participation and K = 1, the first round is a gradient step on F", "[-0.0492, 0.0211"),
    "EmptyMean": ("a round without active clients works", "with 0 clients; return None, state if no client is active"),
    "Meddling": ("the state of inactive clients does not change", "became"),
    "Favourite": ("the numbering of the clients does not change the model", "after round 0"),
}


ONLY = ("ZeroWeights", "HomeBody", "Overconfident", "Doubled")
"""They fail one check and no other."""


@pytest.mark.full
@pytest.mark.parametrize("name", WRONG)
def test_a_broken_method_fails_for_its_reason(name):
    title, seen = WRONG[name]
    failures = [outcome for outcome in conform(read("algorithm", f"{BROKEN}:{name}")) if not outcome.passed]
    (failure,) = (outcome for outcome in failures if outcome.check.startswith(title))
    assert seen in failure.seen
    assert failure.expected
    assert len(failures) == 1 or name not in ONLY
    lines = BROKEN.read_text().splitlines()
    start = next(number for number, line in enumerate(lines, 1) if line.startswith(f"class {name}("))
    end = next((n for n, line in enumerate(lines, 1) if n > start and line.startswith("@dataclass")), len(lines))
    file, _, line = failure.where.rpartition(":")
    assert Path(file).name == BROKEN.name
    assert start - 1 <= int(line) < end  # a class begins with its decorator


@pytest.mark.full
def test_the_released_selection_of_f3ast_computes_at_inactive_clients(capsys):
    """It takes positions in the list of active clients for ids, as docs/algorithms.md says."""
    code, out, _ = rollcall(capsys, "check", "{name: f3ast, selection: released, capacity: 2}", "--json")
    (outcomes,) = json.loads(out).values()
    failed = [outcome["check"] for outcome in outcomes if not outcome["passed"]]
    assert code == 1
    assert "only active clients compute (unless properties.asks_all)" in failed
