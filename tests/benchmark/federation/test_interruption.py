"""Signals: the run stops after its round, and the next run continues there."""

import json
import os
import signal

import numpy as np
import pytest
from lightning.pytorch import Callback

from rollcall import simulate
from rollcall.benchmark.federation.interruption import Interrupted, stop_requests
from rollcall.benchmark.federation.run_folder import RunFolder

DIGITS = {
    "task": {"name": "digits", "clients": 8, "partition": {"name": "dirichlet", "alpha": 0.5}},
    "participation": {"name": "markov_pi_lambda", "correlation": 0.3},
    "local": {"steps": 2, "lr": 0.1, "batch_size": 16, "schedule": {"name": "inverse_sqrt"}},
    "evaluation": {"every": 6, "last": {"rounds": 4, "every": 2}},
}


def rounds_in(folder):
    return [json.loads(line)["round"] for line in (folder / "metrics.jsonl").read_text().splitlines()]


class Count(Callback):
    """Notes the rounds that are done, and sends a signal after one of them."""

    def __init__(self, at=None, number=signal.SIGINT):
        self.rounds, self.at, self.number = [], at, number

    def on_train_batch_end(self, trainer, federation, *_):
        self.rounds.append(federation.t)
        if federation.t == self.at:
            os.kill(os.getpid(), self.number)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_saves_the_round_and_no_round_is_made_twice(number, tmp_path):
    trial = DIGITS | {"algorithm": "scaffold", "rounds": 17}
    before = signal.getsignal(number)
    first, second = Count(at=9, number=number), Count()
    with pytest.raises(Interrupted):
        simulate(trial, folder=tmp_path, callbacks=[first])
    assert signal.getsignal(number) == before
    status = RunFolder(tmp_path).status
    assert (status["state"], status["round"], status["finished"]) == ("interrupted", 9, 0)
    resumed = simulate(trial, folder=tmp_path, callbacks=[second])
    assert first.rounds + second.rounds == list(range(1, 18))
    assert np.array_equal(resumed.model, simulate(trial).model)
    assert rounds_in(tmp_path) == [0, 6, 12, 14, 16, 17]


def test_a_signal_ends_a_run_without_a_folder_too():
    with pytest.raises(Interrupted, match="stopped after round 3 of 20"):
        simulate(DIGITS | {"algorithm": "fedavg", "rounds": 20}, callbacks=[Count(at=3)])


def test_a_second_signal_does_not_wait(monkeypatch):
    now = 100.0
    monkeypatch.setattr("rollcall.benchmark.federation.interruption.monotonic", lambda: now)
    with stop_requests() as requested:
        assert not requested()
        os.kill(os.getpid(), signal.SIGINT)
        assert requested()
        os.kill(os.getpid(), signal.SIGINT)  # the same request, by a tool that signals the process group too
        now = 101.5
        with pytest.raises(KeyboardInterrupt):
            os.kill(os.getpid(), signal.SIGINT)
