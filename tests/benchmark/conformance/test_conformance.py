"""`rollcall check` passes what the suite has, and finds what is wrong with parts that are broken in one way each."""

import json
from pathlib import Path

import jaxtyping
import pytest
from command import rollcall

from rollcall.algorithms import ALGORITHMS
from rollcall.benchmark.config.choice import KINDS, read
from rollcall.benchmark.conformance import CHECKS, conform

SUPPORT = Path(__file__).parents[2] / "support"
METHODS, PARTS = SUPPORT / "broken.py", SUPPORT / "parts.py"


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


@pytest.mark.full
@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("fedpbc", {"eta_g": 0.5}),
        ("fedavgm", {"eta_g": 0.5}),
        ("fedawe", {"eta_g": 0.5}),
        ("fedavg_debiased", {"horizon": 20}),
        ("unbiased", {"watch": 3}),
        ("ca_fed", {"watch": 3}),
        ("f3ast", {"start": 0.5}),
        ("fedau", {"cutoff": 3}),
        ("fedau", {"divisor": "weights"}),
    ],
)
def test_other_options_pass_too(name, options):
    outcomes = conform(read("algorithm", {"name": name} | options))
    assert [outcome for outcome in outcomes if not outcome.passed] == []


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
    failures = [outcome for outcome in conform(read("algorithm", f"{METHODS}:{name}")) if not outcome.passed]
    (failure,) = (outcome for outcome in failures if outcome.check.startswith(title))
    assert seen in failure.seen
    assert failure.expected
    assert len(failures) == 1 or name not in ONLY
    lines = METHODS.read_text().splitlines()
    start = next(number for number, line in enumerate(lines, 1) if line.startswith(f"class {name}("))
    end = next((n for n, line in enumerate(lines, 1) if n > start and line.startswith("@dataclass")), len(lines))
    file, _, line = failure.where.rpartition(":")
    assert Path(file).name == METHODS.name
    assert start - 1 <= int(line) < end  # a class begins with its decorator


@pytest.mark.full
def test_the_released_selection_of_f3ast_computes_at_inactive_clients(capsys):
    """It takes positions in the list of active clients for ids, as docs/algorithms.md says."""
    code, out, _ = rollcall(capsys, "check", "{name: f3ast, selection: released, capacity: 2}", "--json")
    (outcomes,) = json.loads(out).values()
    failed = [outcome["check"] for outcome in outcomes if not outcome["passed"]]
    assert code == 1
    assert "only active clients compute (unless properties.asks_all)" in failed


OF_KIND = {kind: checks for kind, checks in CHECKS.items() if kind != "algorithm"}

SOUND = {
    "metric": [*KINDS["metric"].known, "Accuracy", "kappa"],
    "participation": ["full", "Halves"],
    "probability": ["power_law", "mixture"],
    "partition": ["iid"],
    "model": ["linear", "mlp"],
    "task": ["slope", "of_three", "leaf_synthetic"],
}

# For each broken part: its kind, and a part of what the check says was seen.
BROKEN = {
    "OfBatches": ("metric", "from batches of 1, 7, 20, 12 samples"),
    "Remembering": ("metric", "80. ] from batches of 1, 7, 20, 12 samples after reset()"),
    "of_the_first": ("metric", "0.9 and 0.0"),
    "Descending": ("participation", "1, 0] in round 0"),
    "Counting": ("participation", "in round 49"),
    "Percent": ("participation", "probability: 50 is not allowed; must be in [0, 1]"),
    "OverstatedNow": ("participation", "over 400 seeds"),
    "OverstatedLater": ("participation", "over 2000 rounds"),
    "percent": ("probability", "[50.0, 50.0"),
    "overlapping": ("partition", "sample 7 of clients"),
    "no_classes": ("model", "[2, 2]"),
    "Dropping": ("model", "a global generator was used"),
    "unnamed": ("task", "the keys error"),
    "idle": ("task", "client 1 without training samples is not allowed"),
    "holed": ("task", "NaN or infinite values in 2 of 12 samples of test; the first is sample 3"),
    "summed": ("task", "for 2 samples"),
}


def outcomes(kind, name):
    """The outcomes of all checks of a part."""
    return conform(read(kind, name if name in KINDS[kind].known or ":" in name else f"{PARTS}:{name}"))


@pytest.mark.full
@pytest.mark.parametrize("kind", SOUND)
def test_sound_parts_pass(kind):
    for name in SOUND[kind]:
        ends = outcomes(kind, name)
        assert [outcome for outcome in ends if not outcome.passed] == []
        assert len(ends) == len(OF_KIND[kind]) + 1  # the first check is also made reproducible


@pytest.mark.full
@pytest.mark.parametrize("name", BROKEN)
def test_a_broken_part_fails_one_check_for_its_reason(name):
    kind, seen = BROKEN[name]
    (failure,) = (one for one in outcomes(kind, name) if not one.passed)
    assert seen in failure.seen
    assert failure.expected
    if not name[0].islower():
        assert "parts.py:" in failure.where


@pytest.mark.full
def test_every_kind_has_a_broken_part():
    assert set(SOUND) == {kind for kind, _ in BROKEN.values()} == set(OF_KIND)
