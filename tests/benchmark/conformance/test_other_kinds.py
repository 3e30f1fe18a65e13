"""`rollcall check` of all kinds but methods: each check fails on a part that is broken in its way, and no sound part does."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from rollcall.benchmark.config.choice import KINDS
from rollcall.benchmark.conformance import CHECKS

OF_KIND = {kind: checks for kind, checks in CHECKS.items() if kind != "algorithm"}
PARTS = Path(__file__).parents[2] / "support" / "parts.py"

SOUND = {
    "augmentation": ["crop_flip", "Shift"],
    "metric": [*KINDS["metric"].known, "Accuracy", "kappa"],
    "server_optimizer": [*KINDS["server_optimizer"].known, "torch.optim:Adagrad"],
    "local_optimizer": [*KINDS["local_optimizer"].known, "Descent"],
    "analysis": ["class_weights_sorted", "squares"],
    "participation": ["full", "Halves"],
    "probability": ["power_law", "mixture"],
    "variation": ["staircase"],
    "partition": ["iid", "shards"],
    "model": ["linear", "mlp"],
    "task": ["slope", "patched"],
    "schedule": ["constant", "faded"],
}

# For each broken part: its kind, the beginning of the check's title, and of what the check says was seen.
BROKEN = {
    "Cropped": ("augmentation", "images keep their shape", "[6, 1, 7, 7] of torch.float32"),
    "InPlace": ("augmentation", "images keep their shape", "they were modified in place"),
    "OfTheBatch": ("augmentation", "the draws of an image", "image 0 differs when it is augmented alone"),
    "Noisy": ("augmentation", "the same seed and keys", "numbers from torch's global generator"),
    "Worded": ("metric", "the value is a number", "a str"),
    "OfBatches": ("metric", "the value does not depend on how", "from batches of 1, 7, 20, 12 samples"),
    "Remembering": ("metric", "after reset", ", 40"),
    "Rounding": ("metric", "a metric neither changes", "they were modified in place"),
    "Guessing": ("metric", "a metric neither changes", "numbers from torch's global generator"),
    "vector": ("metric", "the value is a number", "0.9, 0.2"),
    "of_the_first": ("metric", "the value does not depend", "0.9 and 0.0"),
    "sorting": ("metric", "a metric neither changes", "they were modified"),
    "Shrinking": ("server_optimizer", "a step moves the model", "[0.89"),
    "Still": ("server_optimizer", "a step moves the model", "[1.0, -2.0]"),
    "Forgetful": ("local_optimizer", "a step moves the model", " and ["),
    "Shared": ("local_optimizer", "a new optimizer remembers nothing", "[["),
    "without_round": ("analysis", "a table of numbers", "columns value"),
    "empty": ("analysis", "a table of numbers", "0 rows of round, value"),
    "text": ("analysis", "a table of numbers", "other values in name"),
    "repeated": ("analysis", "a table of numbers", "[0, 0, 0, 0]"),
    "Descending": ("participation", "`active(t)` returns different client ids", "1, 0] in round 0"),
    "Thrown": ("participation", "the same seed gives the same rounds", "numbers from NumPy's global generator"),
    "Counting": ("participation", "a round does not depend on the rounds", "and then"),
    "Percent": ("participation", "`probability`, `stationary` and", "[50.0, 50.0"),
    "OverstatedNow": ("participation", "each client is active as often", "over 400 seeds"),
    "OverstatedLater": ("participation", "each client is active in the long run", "over 2000 rounds"),
    "percent": ("probability", "a probability in [0, 1]", "[50.0, 50.0"),
    "thrown_source": ("probability", "the same seed gives the same probabilities", "NumPy's global generator"),
    "doubled": ("variation", "probabilities stay in [0, 1]", "it was modified in round 0"),
    "overlapping": ("partition", "every client has samples", "sample 7 belongs to"),
    "thrown_parts": ("partition", "the same seed gives the same partition", "NumPy's global generator"),
    "no_classes": ("model", "the network maps inputs", "[2, 2]"),
    "Dropping": ("model", "a network draws its weights", "numbers from torch's global generator"),
    "unnamed": ("task", "the task and its data fit", "the keys error"),
    "idle": ("task", "the task and its data fit", "client 1 of 3 has none"),
    "holed": (
        "task",
        "the task and its data fit",
        "NaN or infinite values in 2 of 12 samples of test; the first is sample 3",
    ),
    "summed": ("task", "the loss of a batch is the mean", "for 2 samples"),
    "scaling": ("task", "the loss is a function of", "one of them was modified in place"),
    "thrown_task": ("task", "the same seed gives the same data", "two draws of the split train differ"),
    "rising": ("schedule", "the factor of the learning rate", "-3.0 and -3.0 in round 0"),
    "thrown": ("analysis", "the same seed gives the same table", "numbers from NumPy's global generator"),
}

CHECK = """
import json, sys
from rollcall.benchmark.config.choice import read
from rollcall.benchmark.conformance import conform
asked = json.loads(sys.argv[1])
print(json.dumps([[vars(outcome) for outcome in conform(read(kind, name))] for kind, name in asked]))
"""


@pytest.fixture(scope="module")
def outcomes():
    """The outcomes of all checks by kind and name, from one process without the type checker that watches the tests."""
    asked = [(kind, name) for kind, names in SOUND.items() for name in names]
    asked += [(kind, name) for name, (kind, _, _) in BROKEN.items()]
    names = [(kind, name if name in KINDS[kind].known or ":" in name else f"{PARTS}:{name}") for kind, name in asked]
    done = subprocess.run([sys.executable, "-c", CHECK, json.dumps(names)], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return dict(zip(asked, json.loads(done.stdout), strict=True))


@pytest.mark.parametrize("kind", SOUND)
def test_sound_parts_pass(kind, outcomes):
    for name in SOUND[kind]:
        assert [outcome for outcome in outcomes[kind, name] if not outcome["passed"]] == []
        assert len(outcomes[kind, name]) == len(OF_KIND[kind])


@pytest.mark.parametrize("name", BROKEN)
def test_a_broken_part_fails_for_its_reason(name, outcomes):
    kind, title, seen = BROKEN[name]
    (failure,) = (one for one in outcomes[kind, name] if not one["passed"] and one["check"].startswith(title))
    assert seen in failure["seen"]
    assert failure["expected"]
    if not name[0].islower():
        assert "parts.py:" in failure["where"]


def test_every_check_has_a_broken_part():
    assert set(SOUND) == set(OF_KIND)
    titles = {check.__doc__ for kind in SOUND for check in OF_KIND[kind]}
    assert {title for title in titles if not any(title.startswith(row[1]) for row in BROKEN.values())} == set()
