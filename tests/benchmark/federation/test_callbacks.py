"""Callbacks: evaluations are recorded once, with their time."""

import json
from datetime import timedelta
from itertools import count

import pytest
from lightning.pytorch import Callback

from rollcall import simulate
from rollcall.benchmark.federation.interruption import Interrupted
from rollcall.benchmark.federation.run_folder import RunFolder

DIGITS = {
    "task": {"name": "digits", "clients": 8, "partition": {"name": "dirichlet", "alpha": 0.5}},
    "participation": {"name": "bernoulli", "probability": {"name": "class_coupled", "delta": 0.2}},
    "local": {"steps": 2, "lr": 0.1, "batch_size": 16, "schedule": {"name": "inverse_sqrt"}},
    "rounds": 13,
    "evaluation": {"every": 5},
}


def rounds_in(folder):
    return [json.loads(line)["round"] for line in (folder / "metrics.jsonl").read_text().splitlines()]


class Asked:
    """A request to stop that comes after so many rounds of this process."""

    def __init__(self, rounds):
        self.left = rounds

    def __call__(self):
        self.left -= 1
        return self.left == 0


def test_the_time_of_evaluations_is_kept(tmp_path, monkeypatch):
    ticks = count()
    monkeypatch.setattr("rollcall.benchmark.federation.trainer.monotonic", lambda: next(ticks))
    trial = DIGITS | {"algorithm": "fedavg", "rounds": 4, "evaluation": {"every": 2}}
    simulate(trial, folder=tmp_path / "run")
    assert RunFolder(tmp_path / "run").status["evaluation_seconds"] == 3  # a second each: rounds 0, 2 and 4


def test_rows_of_rounds_after_a_checkpoint_are_not_doubled(tmp_path):
    class Killed(Callback):
        def on_train_batch_end(self, trainer, federation, *_):
            if federation.t == 15:
                raise RuntimeError("killed")

    trial = DIGITS | {"algorithm": "fedpbc", "rounds": 20, "evaluation": {"every": 2}}
    with pytest.raises(Interrupted):
        simulate(trial, folder=tmp_path, stop=Asked(7))
    with pytest.raises(RuntimeError):  # with the checkpoint of round 7 and rows until 14
        simulate(trial, folder=tmp_path, callbacks=[Killed()], checkpoint_every=timedelta(hours=1))
    resumed = simulate(trial, folder=tmp_path)
    assert rounds_in(tmp_path) == list(range(0, 21, 2))
    assert resumed.history.equals(simulate(trial).history)
