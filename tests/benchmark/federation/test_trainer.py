"""The trainer of rounds."""

from lightning.pytorch.profilers import PassThroughProfiler

from rollcall import simulate

TRIAL = {
    "task": {"name": "quadratic", "targets": [[1.0], [3.0]]},
    "participation": "full",
    "algorithm": "fedavg",
    "local": {"steps": 1, "lr": 0.5},
    "rounds": 3,
}


def test_no_round_enters_a_context_of_lightnings_profiler(monkeypatch):
    entered = []
    monkeypatch.setattr(PassThroughProfiler, "profile", lambda self, name: entered.append(name))
    # The mean target is 2, and each round halves the distance to it.
    assert simulate(TRIAL).server.tolist() == [2 * (1 - 0.5**3)]
    assert entered == []
