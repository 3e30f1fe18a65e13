"""`rollcall bench`: the arithmetic of its figures by a clock of the test's own, and what it times against each other."""

import json

import pytest
from command import rollcall

from rollcall.benchmark import timing as bench
from rollcall.benchmark.timing import WORKS, Case, Federated, measure

pytestmark = pytest.mark.full

COSTS = ["ms_per_client_round", "reference_ms_per_client_round"]
FIELDS = {"task", "engine", "device", "clients", "active", "steps", "batch", "threads"}
FIELDS |= {f"{cost}{end}" for cost in COSTS for end in ("", "_min", "_max")}
SMALL = ("bench", "--task", "digits", "--clients", "4", "--active", "2", "--quick")


@pytest.mark.parametrize("engine", ["sequential", "vectorised"])
@pytest.mark.parametrize("task", WORKS)
def test_the_plain_loop_does_the_same_work(engine, task):
    rig = Federated(Case(task, engine, "cpu", clients=5, active=3, steps=5, batch=4))
    lengths = [len(rig.feed.minibatches.rows(0, step)) for step in range(6)]
    assert lengths == [4, 4, 2, 4, 4, 2]
    for t in (0, 1):
        by_engine, plainly = rig.by_engine(t), rig.plainly(t)
        assert (by_engine - plainly).abs().max() < 1e-5
        assert (plainly - rig.x).abs().amax(dim=1).min() > 1e-3
        assert (plainly[0] - plainly[1]).abs().max() > 1e-3
        assert rig.plainly(t, 2).equal(plainly[:2])
    assert rig.active(0).tolist() != rig.active(1).tolist()


def test_figures_are_times_by_rounds_and_clients(monkeypatch):
    now = 0.0

    def passing(seconds, count):
        """Work that takes 1, 2, 3, ... times so many seconds a call, the first of which is not timed."""
        calls = 0

        def run(self, t, most=None):
            nonlocal now, calls
            assert t == (0 if calls == 0 else 1)  # every timed repetition is one round long here
            assert most == count
            now += seconds * calls
            calls += 1

        return run

    monkeypatch.setattr(bench, "perf_counter", lambda: now)
    monkeypatch.setattr(Federated, "by_engine", passing(0.3, None))
    monkeypatch.setattr(Federated, "plainly", passing(2.0, 10))
    case = Case("digits", "sequential", "cpu", clients=20, active=12, steps=2, batch=4)
    row = measure(case, seconds=0.1)
    assert set(row) == FIELDS
    figures = [[row[f"{cost}{end}"] for end in ("", "_min", "_max")] for cost in COSTS]
    assert figures[0] == pytest.approx([50.0, 25.0, 75.0])  # 0.3, 0.6, 0.9 seconds for 12 clients
    assert figures[1] == pytest.approx([400.0, 200.0, 600.0])  # 2, 4, 6 seconds for 10
    assert (row["clients"], row["active"], row["steps"], row["batch"]) == (20, 12, 2, 4)


def test_the_command_prints_rows_as_json(capsys):
    code, out, err = rollcall(capsys, *SMALL, "--json")
    assert (code, err) == (0, "1 of 2 measured\n2 of 2 measured\n")
    rows = json.loads(out)
    assert [row["engine"] for row in rows] == ["sequential", "vectorised"]
    for row in rows:
        assert set(row) == FIELDS
        assert (row["clients"], row["active"], row["steps"], row["batch"]) == (4, 2, 5, 16)
        assert all(0 < row[f"{cost}_min"] <= row[cost] <= row[f"{cost}_max"] for cost in COSTS)
