"""`simulate`: a stopped run ends bit for bit like an undisturbed one."""

from datetime import timedelta

import numpy as np
import pytest
import torch
from lightning.pytorch import Callback

from rollcall import simulate
from rollcall.algorithms import ALGORITHMS
from rollcall.benchmark.federation.run_folder import RunFolder

DIGITS = {
    "task": {"name": "digits", "clients": 8, "partition": {"name": "dirichlet", "alpha": 0.5}},
    "participation": {"name": "bernoulli", "probability": {"name": "class_coupled", "delta": 0.2}},
    "local": {"steps": 2, "lr": 0.1, "batch_size": 16, "schedule": {"name": "inverse_sqrt"}},
    "rounds": 13,
    "evaluation": {"every": 5},
}


class Stop(Callback):
    """Breaks a run off after a round, as a power cut would."""

    def __init__(self, t):
        self.t = t

    def on_train_batch_end(self, trainer, federation, *_):
        if federation.t == self.t:
            raise KeyboardInterrupt


class Count(Callback):
    """Notes the rounds that are done."""

    def __init__(self):
        self.rounds = []

    def on_train_batch_end(self, trainer, federation, *_):
        self.rounds.append(federation.t)


SERVERS = [(name, {}) for name in ALGORITHMS]
SERVERS += [("fedavg", {"momentum": 0.9}), ("mifa", {"momentum": 0.9}), ("focus", {"optimizer": "adam"})]
SERVERS += [("fedavg", {"optimizer": "yogi"})]
SERVERS += [({"name": name, "oracle": False}, {}) for name in ("unbiased", "ca_fed")]


@pytest.mark.parametrize(("name", "server"), SERVERS)
@pytest.mark.parametrize("stop", [7, 10])
def test_a_stopped_run_ends_like_an_undisturbed_one(name, server, stop, tmp_path):
    steps = 1 if name in ("fedsgd", "fedsgd_iw") else 2
    trial = DIGITS | {"algorithm": name, "server": server, "local": DIGITS["local"] | {"steps": steps}}
    whole = simulate(trial)
    with pytest.raises((KeyboardInterrupt, SystemExit)):
        simulate(trial, folder=tmp_path / "run", callbacks=[Stop(stop)], checkpoint_every=timedelta(0))
    assert RunFolder(tmp_path / "run").state != "finished"
    count = Count()
    resumed = simulate(trial, folder=tmp_path / "run", callbacks=[count])
    assert count.rounds == list(range(stop, 14))  # the round that was cut off is done again, none before it
    assert np.array_equal(resumed.model, whole.model)
    assert np.array_equal(resumed.server, whole.server)
    assert resumed.history.equals(whole.history)
    assert resumed.history["round"].tolist() == [0, 5, 10, 13]


def test_the_same_trial_gives_the_same_bits_and_another_seed_does_not():
    trial = DIGITS | {"algorithm": "fedpbc"}
    one = simulate(trial).model
    torch.manual_seed(123)
    np.random.seed(123)  # noqa: NPY002
    assert np.array_equal(one, simulate(trial).model)
    assert not np.array_equal(one, simulate(trial | {"seed": 1}).model)
