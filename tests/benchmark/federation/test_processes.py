"""A trial in two processes of its own: it starts and ends them, and can be resumed with another number of them."""

import os
import signal
from datetime import timedelta

import pytest
import torch
from lightning.pytorch import Callback

from benchmark import SettingError, simulate
from benchmark.config.trial import Trial
from benchmark.engines.peers import PeerFailed
from benchmark.federation import processes
from benchmark.federation.interruption import Interrupted
from benchmark.federation.run_folder import RunFolder
from benchmark.sweep.pool import Pool, RayOptions

TRIAL = {
    "task": {"name": "digits", "clients": 5},
    "participation": {"name": "bernoulli", "probability": 0.6},
    "algorithm": "scaffold",
    "local": {"steps": 2, "lr": 0.1, "batch_size": 16},
    "rounds": 9,
    "evaluation": {"every": 2},
    "numerics": {"dtype": "float64", "engine": "sequential"},
}


def on(devices):
    return TRIAL | {"numerics": TRIAL["numerics"] | {"devices": devices}}


class Rounds(Callback):
    """Calls a function after a round."""

    def __init__(self, t, act=lambda: None):
        self.t = t
        self.act = act
        self.done = 0

    def on_train_batch_end(self, trainer, federation, *_):
        self.done = federation.t
        if federation.t == self.t:
            self.act()


@pytest.fixture
def peers(monkeypatch):
    """The peers that were started."""
    popen, every = processes.subprocess.Popen, []

    def start(command, **options):
        process = popen(command, **options)
        if "benchmark.federation.peer" in command:  # not git, which is asked for the commit
            every.append(process)
        return process

    monkeypatch.setattr(processes.subprocess, "Popen", start)
    return every


def test_a_run_goes_on_with_another_number_of_processes(tmp_path, peers):
    undisturbed, folder = tmp_path / "undisturbed", tmp_path / "run"
    simulate(on(1), folder=undisturbed)
    options = {"folder": folder, "checkpoint_every": timedelta(0)}

    ctrl_c = Rounds(3, lambda: os.kill(os.getpid(), signal.SIGINT))
    with pytest.raises(Interrupted, match="stopped after round 3 of 9"):
        simulate(on(2), callbacks=[ctrl_c], **options)
    assert RunFolder(folder).state == "interrupted"

    clock = Rounds(6)
    with pytest.raises(Interrupted):
        simulate(on(1), callbacks=[clock], stop=lambda: clock.done == 6, **options)
    assert len(peers) == 1

    death = Rounds(7, lambda: peers[-1].kill())
    with pytest.raises(PeerFailed, match="process 1 of 2 died; memory may have run out"):
        simulate(on(2), callbacks=[death], **options)
    assert RunFolder(folder).state == "failed"
    assert "process 1 of 2 died" in RunFolder(folder).error_file.read_text()

    simulate(on(1), **options)
    for file in ("metrics.jsonl", "model.npz"):
        assert (folder / file).read_bytes() == (undisturbed / file).read_bytes()
    assert [peer.poll() for peer in peers] == [-signal.SIGKILL] * 2  # nothing is left running


def test_the_number_of_processes_does_not_change_the_name_of_a_run():
    assert Trial.read(on(2)).name == Trial.read(TRIAL).name
    with pytest.raises(SettingError, match=r"numerics\.devices: 0 is not allowed"):
        Trial.read(on(0))


def test_a_process_that_does_not_start(monkeypatch):
    monkeypatch.setattr(processes.sys, "executable", "false")
    with pytest.raises(PeerFailed, match="process 1 ended with code 1 before it started to work"):
        simulate(on(2))


def test_more_processes_than_gpus_are_refused(monkeypatch):
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 1)
    with pytest.raises(SettingError, match=r"numerics\.devices: 2 is not allowed here, where torch finds 1 GPU; must"):
        processes.check_gpus(Trial.read(on(2)))
    processes.check_gpus(Trial.read(on(1)))


@pytest.mark.parametrize(("rank", "peer"), [("0", False), ("3", True)])
def test_under_torchrun_rank_0_runs_the_command(monkeypatch, rank, peer):
    assert not processes.follows()
    environment = {"TORCHELASTIC_RUN_ID": "x", "RANK": rank, "WORLD_SIZE": "4", "LOCAL_WORLD_SIZE": "2"}
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    assert processes.follows() == peer
    assert processes.number_of_processes(Trial.read(TRIAL)) == 4
    assert processes.processes_on_this_machine(Trial.read(TRIAL)) == 2
    assert Pool.of(None, RayOptions()).executor == "inline"  # all processes compute one trial
    with pytest.raises(SettingError, match="--executor: ray is not allowed under torchrun; must be inline"):
        Pool.of("ray", RayOptions())
