"""Runs that diverge end early, say so, and are not run again."""

import json
import math
from datetime import timedelta

import numpy as np
import pytest
import torch
from lightning.pytorch import Callback

from rollcall import simulate
from rollcall.benchmark.federation.run_folder import RunFolder

pytestmark = pytest.mark.fault

# One client, one step: x is multiplied by 1 - lr in every round; with lr 1e13 by -1e13, starting from 1 off the target.
TRIAL = {
    "task": {"name": "quadratic", "targets": [[1.0, 2.0], [1.0, 2.0]]},
    "algorithm": "fedavg",
    "local": {"steps": 1, "lr": 1e13, "batch_size": "full"},
    "rounds": 20,
    "evaluation": {"every": 10},
    "numerics": {"dtype": "float32"},
}


class Spoil(Callback):
    """Puts a value into the server's model after a round."""

    def __init__(self, t, value):
        self.t, self.value, self.rounds = t, value, []

    def on_train_batch_start(self, trainer, federation, *_):
        self.rounds.append(federation.t)
        if federation.t == self.t:
            federation.server.data[0] = self.value


def finite(**changes):
    return TRIAL | {"local": TRIAL["local"] | {"lr": 0.1}} | changes


def test_parameters_that_overflow_end_the_run():
    result = simulate(TRIAL)
    assert result.diverged == 3  # 1e13, 1e26, and 1e39 is above the largest float32, 3.4e38
    assert result.history["round"].tolist() == [0]
    assert not np.isfinite(result.server).all()


def test_a_diverged_trial_is_a_result_and_is_not_run_again(tmp_path):
    result = simulate(finite(), folder=tmp_path, callbacks=[Spoil(12, math.inf)])
    assert result.diverged == 13
    status = RunFolder(tmp_path).status
    assert (status["state"], status["diverged"], status["round"], status["finished"]) == ("diverged", 13, 13, 0)
    assert status["reason"] == "diverged: parameters are not finite after round 13"
    rows = [json.loads(line) for line in (tmp_path / "metrics.jsonl").read_text().splitlines()]
    assert [row["round"] for row in rows] == [0, 10]  # and none of the untrained rest
    assert not (tmp_path / "error.txt").exists()
    again = Spoil(12, math.inf)
    stored = simulate(finite(), folder=tmp_path, callbacks=[again])
    assert again.rounds == []
    assert stored.diverged == 13
    assert np.array_equal(stored.server, result.server, equal_nan=True)
    assert stored.history.equals(result.history)
    assert simulate(finite(rounds=12), folder=tmp_path).diverged is None  # it had not diverged by then


def test_no_checkpoint_holds_a_diverged_model(tmp_path):
    simulate(finite(), folder=tmp_path, callbacks=[Spoil(12, math.nan)], checkpoint_every=timedelta(0))
    saved = torch.load(tmp_path / "last.ckpt", weights_only=True)
    assert saved["global_step"] == 12
    assert saved["state_dict"]["server"].isfinite().all()


def test_a_metric_that_is_not_finite_ends_the_run(tmp_path):
    result = simulate(TRIAL | {"evaluation": {"every": 2}}, folder=tmp_path)  # 1e26 is finite, its square is not
    assert result.diverged == 2
    assert np.isfinite(result.server).all()
    assert result.history["round"].tolist() == [0]
    assert RunFolder(tmp_path).status["reason"] == "diverged: train/loss is not finite after round 2"
