"""`rollcall check` of all kinds but methods: each check fails on a part that is broken in its way, and no sound part does."""

from pathlib import Path

import jaxtyping
import pytest

from rollcall.benchmark.config.choice import KINDS, read
from rollcall.benchmark.conformance import CHECKS, conform

pytestmark = pytest.mark.full

OF_KIND = {kind: checks for kind, checks in CHECKS.items() if kind != "algorithm"}
PARTS = Path(__file__).parents[2] / "support" / "parts.py"

SOUND = {
    "metric": [*KINDS["metric"].known, "Accuracy", "kappa"],
    "participation": ["full", "Halves"],
    "probability": ["power_law", "mixture"],
    "partition": ["iid"],
    "model": ["linear", "mlp"],
    "task": ["slope"],
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


@pytest.fixture(autouse=True)
def _unwatched(monkeypatch):
    """The type checker that watches the tests draws from Python's global generator."""
    monkeypatch.setattr(jaxtyping.config, "jaxtyping_disable", True)


def outcomes(kind, name):
    """The outcomes of all checks of a part."""
    return conform(read(kind, name if name in KINDS[kind].known or ":" in name else f"{PARTS}:{name}"))


@pytest.mark.parametrize("kind", SOUND)
def test_sound_parts_pass(kind):
    for name in SOUND[kind]:
        ends = outcomes(kind, name)
        assert [outcome for outcome in ends if not outcome.passed] == []
        assert len(ends) == len(OF_KIND[kind]) + 1  # the first check is also made reproducible


@pytest.mark.parametrize("name", BROKEN)
def test_a_broken_part_fails_one_check_for_its_reason(name):
    kind, seen = BROKEN[name]
    (failure,) = (one for one in outcomes(kind, name) if not one.passed)
    assert seen in failure.seen
    assert failure.expected
    if not name[0].islower():
        assert "parts.py:" in failure.where


def test_every_kind_has_a_broken_part():
    assert set(SOUND) == {kind for kind, _ in BROKEN.values()} == set(OF_KIND)
