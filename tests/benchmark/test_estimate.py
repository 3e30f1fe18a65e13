"""Estimates of time: arithmetic by hand, and probes under a clock of the test's own."""

import numpy as np
import pytest

from rollcall import Trial
from rollcall.benchmark import estimate, timing
from rollcall.benchmark.config.trial import Analysis
from rollcall.benchmark.engines import Work
from rollcall.benchmark.estimate import estimates, missing, wall, work
from rollcall.benchmark.federation.module import Federation
from rollcall.participation import Population
from rollcall.tasks import Batches

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


def clocked(monkeypatch, loop, client, batch):
    """A clock that only rounds, clients and evaluated batches move; and how many clients were called in each round."""
    now, called, evaluations = [0.0], [], []
    train, begin, validate = Federation.training_step, Federation.on_validation_epoch_start, Federation.validation_step
    sgd = Work.sgd

    def training_step(self, *args):
        now[0] += loop * (1 if self.t > 3 else 50)  # the first rounds are slow
        return train(self, *args)

    def local_work(self, clients, start):
        # So is the first call of any number of clients, where kernels are chosen and memory is taken.
        now[0] += client * len(clients) * (1 if len(clients) in called else 3)
        called.append(len(clients))
        return sgd(self, clients, start)

    def on_validation_epoch_start(self):
        evaluations.append(1)
        return begin(self)

    def validation_step(self, *args):
        now[0] += batch * (1 if len(evaluations) > 1 else 20)  # so is the first evaluation
        return validate(self, *args)

    monkeypatch.setattr(Federation, "training_step", training_step)
    monkeypatch.setattr(Work, "sgd", local_work)
    monkeypatch.setattr(Federation, "on_validation_epoch_start", on_validation_epoch_start)
    monkeypatch.setattr(Federation, "validation_step", validation_step)
    for module in (estimate, timing):
        monkeypatch.setattr(module, "perf_counter", lambda: now[0])
    return called


def test_a_probe_finds_what_rounds_clients_and_evaluations_cost(monkeypatch):
    called = clocked(monkeypatch, loop=0.01, client=0.03, batch=0.5)
    trial = Trial.read(DIGITS)
    (seconds,) = estimates([trial]).values()
    # A quarter second bears eight clients, but the trial calls three.
    assert sorted(set(called)) == [2, 3]
    # Evaluations after 0, 10, 20 and 25 rounds: half of 1,437 training images in one batch, 360 test images in another.
    assert seconds == pytest.approx(25 * (0.01 + 3 * 0.03) + 4 * 2 * 0.5)
    last = {"rounds": 7, "every": 3, "splits": ["test"]}  # 0, 10; then 20, 21, 24, 25 with the test images alone
    often = Trial.read(DIGITS | {"evaluation": DIGITS["evaluation"] | {"last": last}})
    (seconds,) = estimates([often]).values()
    assert seconds == pytest.approx(25 * 0.1 + 2 * 2 * 0.5 + 4 * 0.5)


def test_kinds_of_work_are_probed_once_and_methods_that_ask_all_are_charged_for_all(monkeypatch):
    called = clocked(monkeypatch, loop=0.01, client=0.03, batch=0.5)
    trials = [
        Trial.read(DIGITS | {"algorithm": name, "seed": seed}) for name in ("fedavg", "fedpbc") for seed in (0, 1)
    ]
    watched = []
    found = estimates(trials, lambda kinds: watched.append(len(kinds)) or kinds)
    rounds = [(found[trial.digest] - 4 * 2 * 0.5) / 25 for trial in trials]
    assert rounds == pytest.approx([0.1, 0.1, 0.37, 0.37])
    assert max(called) == 8  # of the twelve, no more than a quarter second bears
    assert watched == [1]  # kind of work, for four trials


def test_a_larger_evaluation_is_some_of_its_batches_in_proportion(monkeypatch):
    clocked(monkeypatch, loop=0.01, client=0.03, batch=0.5)
    monkeypatch.setattr(
        "rollcall.tasks.base.ClientData.evaluation", lambda self, split: Batches(self.splits[split], 100)
    )
    (seconds,) = estimates([Trial.read(DIGITS)]).values()
    # 718 training and 360 test images: 8 and 4 batches, of which 2 and 2 are evaluated.
    assert seconds == pytest.approx(25 * 0.1 + 4 * 12 * 0.5)


def test_roll_calls_are_counted():
    targets = {"name": "quadratic", "targets": np.zeros((4, 1))}
    mask = np.zeros((400, 4))
    mask[:100, 0] = mask[:50, 3] = 1  # within 200 rounds 150 answers, then none
    trials = [
        Trial.read({"task": targets, "participation": roll_call, "algorithm": method, "rounds": 9})
        for roll_call in ("full", {"name": "trace", "mask": mask})
        for method in ("mifa", "fedpbc")
    ]
    assert estimate.computing(trials, Population(4)) == [4, 4, 0.75, 4]


def test_with_a_clock_only_the_clients_in_time_are_computed():
    """Four are available and the first two uploads count: methods that ask all see the four, others the two."""
    task = {"name": "quadratic", "targets": np.zeros((5, 1))}
    settings = {"task": task, "participation": {"name": "trace", "mask": [[1, 1, 1, 1, 0]]}, "rounds": 9}
    clock = {"clock": {"speed": [1, 2, 3, 4, 5], "wait": {"first": 2}}}
    trials = [Trial.read(settings | clock | {"algorithm": name}) for name in ("fedavg", "mifa", "fedpbc")]
    assert estimate.computing(trials, Population(5)) == [2, 2, 4]


def test_what_counts_as_the_same_work():
    def kind(**changes):
        return work(Trial.read(DIGITS | changes)).digest

    same = [{"algorithm": "mifa"}, {"participation": "full"}, {"seed": 3}, {"rounds": 7}, {"server": {"lr": 0.5}}]
    same += [
        {"local": {"steps": 2, "batch_size": 4, "lr": 3.0}},
        {"evaluation": {"every": 3, "splits": ["test"]}},
    ]
    other = [{"local": {"steps": 3, "batch_size": 4}}, {"local": {"steps": 2, "batch_size": 5}}]
    other += [{"task": DIGITS["task"] | {"clients": 13}}, {"numerics": {"dtype": "float64"}}]
    other += [{"local": {"steps": 2, "batch_size": 4, "momentum": 0.5}}]
    assert {kind(**changes) for changes in same} == {kind()}
    assert len({kind(**changes) for changes in other} | {kind()}) == 6
    assert work(Trial.read(DIGITS)).numerics.device == "cpu"


def test_analyses_are_left_out_and_missing_data_are_named(tmp_path, monkeypatch):
    monkeypatch.setenv("ROLLCALL_DATA", str(tmp_path))
    analysis = Analysis.read(
        {
            "analysis": {
                "name": "rollcall.benchmark.experiments.fedpbc.analyses:prop1_limit",
                "targets": [0, 1],
                "probability": [0.5, 0.5],
            }
        }
    )
    assert estimates([analysis]) == {}
    tasks = [{"name": name, "clients": 2} for name in ("mnist", "cinic10", "digits")]
    trials = [Trial.read({"task": task, "algorithm": "fedavg", "rounds": 1}) for task in tasks]
    assert missing([analysis, *trials]) == ["cinic10", "mnist"]
