"""Estimates of time: arithmetic by hand, and probes under a clock of the test's own."""

import numpy as np
import pytest

from rollcall import SettingError, Trial
from rollcall.benchmark import timing
from rollcall.benchmark.engines import Evaluator, Work
from rollcall.benchmark.timing import LOOP, estimates, wall
from rollcall.participation import Population

DIGITS = {
    "task": {"name": "digits", "clients": 12, "model": "linear", "validation": 0.5},
    "participation": {"name": "cyclic", "probability": 0.25},
    "algorithm": "fedavg",
    "local": {"steps": 2, "batch_size": 4},
    "rounds": 25,
    "evaluation": {"every": 10, "splits": ["train", "test"]},
}


def test_trials_at_the_same_time_take_as_long_as_the_longest_at_least():
    assert wall([3.0, 4.0, 5.0], at_once=1) == 12
    assert wall([3.0, 4.0, 5.0], at_once=2) == 6
    assert wall([3.0, 4.0, 5.0], at_once=8) == 5
    assert wall([], at_once=2) == 0


def clocked(monkeypatch, client, batch):
    """A clock that only clients and evaluated batches move; and how many clients were called in each round."""
    now, called, evaluated = [0.0], [], []
    sgd, metrics = Work.sgd, Evaluator.metrics

    def local_work(self, clients, start):
        # The first call of any number of clients is slow: kernels are chosen and memory is taken.
        now[0] += client * len(clients) * (1 if len(clients) in called else 3)
        called.append(len(clients))
        return sgd(self, clients, start)

    def evaluation(self, samples):
        now[0] += batch * (1 if len(samples[0]) in evaluated else 20)  # so is the first evaluation
        evaluated.append(len(samples[0]))
        return metrics(self, samples)

    monkeypatch.setattr(Work, "sgd", local_work)
    monkeypatch.setattr(Evaluator, "metrics", evaluation)
    monkeypatch.setattr(timing, "perf_counter", lambda: now[0])
    return called


def test_a_probe_finds_what_rounds_clients_and_evaluations_cost(monkeypatch):
    called = clocked(monkeypatch, client=0.03, batch=0.5)
    trial = Trial.read(DIGITS)
    (seconds,) = estimates([trial]).values()
    # A quarter second bears eight clients, but the trial calls three.
    assert sorted(set(called)) == [2, 3]
    # Evaluations after 0, 10, 20 and 25 rounds: half of 1,437 training images in one batch, 360 test images in another.
    assert seconds == pytest.approx(25 * (LOOP + 3 * 0.03) + 4 * 2 * 0.5)
    last = {"rounds": 7, "every": 3, "splits": ["test"]}  # 0, 10; then 20, 21, 24, 25 with the test images alone
    often = Trial.read(DIGITS | {"evaluation": DIGITS["evaluation"] | {"last": last}})
    (seconds,) = estimates([often]).values()
    assert seconds == pytest.approx(25 * (LOOP + 0.09) + 2 * 2 * 0.5 + 4 * 0.5)


def test_roll_calls_are_counted():
    targets = {"name": "quadratic", "targets": np.zeros((4, 1))}
    mask = np.zeros((400, 4))
    mask[:100, 0] = mask[:50, 3] = 1  # within 200 rounds 150 answers, then none
    trials = [
        Trial.read({"task": targets, "participation": roll_call, "algorithm": method, "rounds": 9})
        for roll_call in ("full", {"name": "trace", "mask": mask})
        for method in ("mifa", "fedpbc")
    ]
    assert timing.computing(trials, Population(4)) == [4, 4, 0.75, 4]


def test_an_estimate_knows_the_names_of_clients_and_refuses_unknown_splits(tmp_path):
    rows = [f"{town},{age},{age % 2}" for town in ("ha", "hb", "hc") for age in range(20, 28)]
    (tmp_path / "people.csv").write_text("\n".join(["town,age,buys", *rows]))
    (tmp_path / "on.csv").write_text("round,client\n0,ha\n0,hd\n1,hb\n1,hc\n")
    task = {"name": "table", "file": str(tmp_path / "people.csv"), "label": "buys", "client": "town", "at_least": 2}
    trial = {"task": task, "participation": {"name": "trace", "mask": str(tmp_path / "on.csv")}, "rounds": 3}
    assert len(estimates([Trial.read(trial | {"algorithm": "fedavg"})])) == 1
    with pytest.raises(SettingError, match=r"evaluation\.splits: 'tset' is not allowed with digits; must be one of"):
        estimates([Trial.read(DIGITS | {"evaluation": {"splits": ["tset"]}})])
