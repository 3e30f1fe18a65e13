"""Trials of a second, and what stops them or follows them."""

import gc
import json
import os
from contextlib import contextmanager

from lightning.pytorch import Callback

from rollcall.benchmark.federation.module import Federation

DIGITS = {
    "task": {"name": "digits", "clients": 8, "partition": {"name": "dirichlet", "alpha": 0.5}},
    "participation": {"name": "bernoulli", "probability": {"name": "class_coupled", "delta": 0.2}},
    "local": {"steps": 2, "lr": 0.1, "batch_size": 16, "schedule": {"name": "inverse_sqrt"}},
    "rounds": 13,
    "evaluation": {"every": 5},
}
QUADRATIC = {
    "task": {"name": "quadratic", "targets": [[0.0, 1.0], [4.0, 5.0], [2.0, -3.0]]},
    "participation": {"name": "bernoulli", "probability": 0.5},
    "algorithm": "mifa",
    "local": {"steps": 2, "lr": 0.1},
    "rounds": 20,
    "evaluation": {"every": 5},
}
TRAINER = {"accelerator": "cpu", "logger": False, "enable_checkpointing": False, "enable_progress_bar": False}
"""Options of Lightning's trainer that keep it quiet."""


def rounds_in(folder):
    """The rounds of metrics.jsonl, line by line."""
    return [json.loads(line)["round"] for line in (folder / "metrics.jsonl").read_text().splitlines()]


class Asked:
    """A request to stop that comes after this number of rounds."""

    def __init__(self, rounds):
        self.left = rounds

    def __call__(self):
        self.left -= 1
        return self.left == 0


class Count(Callback):
    """Notes the rounds that are done. After round `at` it breaks the run off, as a power cut would, or signals it."""

    def __init__(self, at=None, number=None):
        self.rounds, self.at, self.number = [], at, number

    def on_train_batch_end(self, trainer, federation, *_):
        self.rounds.append(federation.t)
        if federation.t == self.at:
            if self.number is None:
                raise KeyboardInterrupt
            os.kill(os.getpid(), self.number)


@contextmanager
def no_federation_left():
    """No federation made within is in memory at the end, although Python collects no cycles meanwhile."""

    def federations():
        return sum(type(item) is Federation for item in gc.get_objects())

    gc.collect()
    before = federations()
    gc.disable()
    try:
        yield
        assert federations() == before
    finally:
        gc.enable()
