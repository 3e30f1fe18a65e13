"""Runs that stop, resume, grow or use other threads: the bits of an undisturbed run, and no row twice."""

import json
import os
import signal
import subprocess
import sys
import time
from datetime import timedelta
from pathlib import Path

import numpy as np
import pytest
import torch
import yaml
from command import rollcall, write
from lightning.pytorch import Callback
from lightning.pytorch.callbacks import EarlyStopping
from runs import DIGITS, Asked, Count, rounds_in

from rollcall import SettingError, load, simulate
from rollcall.benchmark.federation.run_folder import RunFolder
from rollcall.benchmark.process import Interrupted
from rollcall.benchmark.sweep.mlflow_copy import Mirror

MARKOV = DIGITS | {
    "participation": {"name": "markov_pi_lambda", "correlation": 0.3},
    "evaluation": {"every": 6, "last": {"rounds": 4, "every": 2}},
}
# Without memory, with a row for each client, and with a state in a state; server optimizers with moments.
CASES = [("fedsgd", {}), ("scaffnew", {}), ("mifa", {"momentum": 0.9}), ("focus", {"optimizer": "adam"})]
CASES += [("fedavg", {"optimizer": "yogi"}), ({"name": "ca_fed", "oracle": False}, {})]


@pytest.mark.fault
@pytest.mark.parametrize(("name", "server"), CASES, ids=str)
def test_a_stopped_run_ends_like_an_undisturbed_one(name, server, tmp_path):
    stop = 10 if server else 7  # after an evaluation, and between two
    steps = 1 if name == "fedsgd" else 2
    trial = DIGITS | {"algorithm": name, "server": server, "local": DIGITS["local"] | {"steps": steps}}
    whole = simulate(trial)
    with pytest.raises(KeyboardInterrupt):
        simulate(trial, folder=tmp_path / "run", callbacks=[Count(stop)], checkpoint_every=timedelta(0))
    assert RunFolder(tmp_path / "run").state != "finished"
    count = Count()
    resumed = simulate(trial, folder=tmp_path / "run", callbacks=[count])
    assert count.rounds == list(range(stop, 14))  # the round that was cut off is done again, none before it
    assert np.array_equal(resumed.model, whole.model)
    assert np.array_equal(resumed.server, whole.server)
    assert resumed.history.equals(whole.history)
    assert resumed.history["round"].tolist() == [0, 5, 10, 13]


def test_the_model_of_a_run_that_begins_again_is_not_kept(tmp_path):
    simulate(DIGITS | {"algorithm": "fedavg"}, folder=tmp_path)
    RunFolder(tmp_path).checkpoint.unlink()
    with pytest.raises(KeyboardInterrupt):
        simulate(DIGITS | {"algorithm": "fedavg", "rounds": 99}, folder=tmp_path, callbacks=[Count(5)])
    with pytest.raises(SettingError, match="has no model; its state is"):
        load(tmp_path)


class Measuring(torch.optim.SGD):
    """It keeps a number of NumPy."""

    def step(self, closure=None):
        loss = super().step(closure)
        for group in self.param_groups:
            for x in group["params"]:
                self.state[x]["norm"] = np.float64(x.norm().item())
        return loss


def test_an_optimizer_that_keeps_a_number_of_numpy_resumes(tmp_path):
    trial = DIGITS | {"algorithm": "fedavg", "server": {"optimizer": Measuring}}
    with pytest.raises(KeyboardInterrupt):
        simulate(trial, folder=tmp_path, callbacks=[Count(7)], checkpoint_every=timedelta(0))
    assert np.array_equal(simulate(trial, folder=tmp_path).model, simulate(trial).model)


class Weights(Callback):
    """Saves the weights alone after each round."""

    def on_train_batch_end(self, trainer, *_):
        trainer.save_checkpoint(Path(trainer.default_root_dir) / "weights.ckpt", weights_only=True)


def test_a_callback_may_save_weights_alone(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert simulate(DIGITS | {"algorithm": "fedavg", "rounds": 2}, callbacks=[Weights()]).history["round"].iloc[-1] == 2


def test_the_same_trial_gives_the_same_bits_and_another_seed_does_not():
    trial = DIGITS | {"algorithm": "fedpbc"}
    one = simulate(trial).model
    torch.manual_seed(123)
    np.random.seed(123)  # noqa: NPY002
    assert np.array_equal(one, simulate(trial).model)
    assert not np.array_equal(one, simulate(trial | {"seed": 1}).model)


@pytest.mark.parametrize(("name", "server"), CASES[2:4], ids=str)
def test_a_run_that_grows_ends_like_one_of_all_rounds(name, server, tmp_path):
    trial = MARKOV | {"algorithm": name, "server": server}
    folder = tmp_path / "run"
    short = simulate(trial | {"rounds": 10}, folder=folder)
    assert short.history["round"].tolist() == [0, 6, 8, 10]
    grown = simulate(trial | {"rounds": 23}, folder=folder)
    whole = simulate(trial | {"rounds": 23})
    assert np.array_equal(grown.model, whole.model)
    assert np.array_equal(grown.server, whole.server)
    assert rounds_in(folder) == [0, 6, 8, 10, 12, 18, 20, 22, 23]
    assert whole.history["round"].tolist() == [0, 6, 12, 18, 20, 22, 23]
    assert grown.history.equals(whole.history)  # the folder keeps rounds 8 and 10 of the shorter run
    assert load(folder).history.equals(whole.history)
    assert (RunFolder(folder).finished, RunFolder(folder).state) == (23, "finished")
    assert yaml.safe_load((folder / "trial.yaml").read_text())["rounds"] == 23


def test_a_run_that_was_begun_with_more_rounds_may_lack_evaluations(tmp_path):
    """Of 23 rounds, 20 and 22 are among the last ones; of 19, 16 and 18."""
    trial = MARKOV | {"algorithm": "mifa"}
    with pytest.raises(Interrupted):
        simulate(trial | {"rounds": 23}, folder=tmp_path, stop=Asked(17))
    with pytest.raises(
        SettingError, match=r"^rounds: 19 is not allowed with .*, which was not evaluated after round 16;"
    ):
        simulate(trial | {"rounds": 19}, folder=tmp_path)
    assert simulate(trial | {"rounds": 21}, folder=tmp_path).history.equals(simulate(trial | {"rounds": 21}).history)


class End(Callback):
    """Ends the run after a round, or at the evaluation of that round as EarlyStopping does."""

    def __init__(self, t, at_evaluation):
        self.t, self.at_evaluation = t, at_evaluation

    def on_train_batch_end(self, trainer, federation, *_):
        trainer.should_stop |= not self.at_evaluation and federation.t == self.t

    def on_validation_end(self, trainer, federation):
        trainer.should_stop |= self.at_evaluation and federation.t == self.t


@pytest.mark.parametrize(("name", "server", "t", "at_evaluation"), [(*CASES[2], 10, False), (*CASES[3], 12, True)])
def test_a_run_that_a_callback_ends_is_a_shorter_one(name, server, t, at_evaluation, tmp_path):
    trial, folder = MARKOV | {"algorithm": name, "server": server, "rounds": 23}, tmp_path / "run"
    short = simulate(trial, folder=folder, callbacks=[End(t, at_evaluation)])
    status = RunFolder(folder).status
    assert (status["state"], status["round"], status["finished"]) == ("finished", t, t)
    of_t_rounds = simulate(trial | {"rounds": t})
    assert short.trial == load(folder).trial == of_t_rounds.trial
    for result in (short, load(folder), simulate(trial | {"rounds": t}, folder=folder)):
        assert np.array_equal(result.model, of_t_rounds.model)
        assert result.history["round"].tolist() == ([0, 6, 10] if t == 10 else [0, 6, 12])
    count = Count()
    grown, whole = simulate(trial, folder=folder, callbacks=[count]), simulate(trial)
    assert count.rounds == list(range(t + 1, 24))
    assert np.array_equal(grown.model, whole.model)
    assert np.array_equal(grown.server, whole.server)
    assert grown.history.equals(whole.history)
    assert len(set(rounds_in(folder))) == len(rounds_in(folder))
    assert (RunFolder(folder).finished, RunFolder(folder).state) == (23, "finished")


@pytest.mark.parametrize("t", [4, 5, 10])
def test_early_stopping_counts_each_evaluation_once_wherever_a_run_was_stopped(t, tmp_path):
    """No evaluation improves by so much, so that patience alone decides."""
    trial = MARKOV | {"algorithm": "fedavg", "rounds": 60, "evaluation": {"every": 5}}

    def ends():
        return [EarlyStopping("train/loss", patience=3, min_delta=1e9)]

    whole = simulate(trial, callbacks=ends())
    assert whole.trial.rounds == 20  # the first evaluation in training is the best; three do not improve it
    with pytest.raises(Interrupted):
        simulate(trial, folder=tmp_path, callbacks=ends(), stop=Asked(t))
    resumed = simulate(trial, folder=tmp_path, callbacks=ends())
    assert resumed.trial.rounds == 20
    assert resumed.history.equals(whole.history)
    assert rounds_in(tmp_path) == [0, 5, 10, 15, 20]


@pytest.mark.fault
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_saves_the_round_and_no_round_is_made_twice(number, tmp_path):
    trial = MARKOV | {"algorithm": "scaffold", "rounds": 17}
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


# Each round waits until it may be fast.
SLOW = """
import time
from pathlib import Path
from rollcall.algorithms.mifa import MIFA


class Slow(MIFA):
    def round(self, state, x, call, work):
        if not Path("FOLDER/fast").exists():
            time.sleep(0.03)
        return super().round(state, x, call, work)
"""


@pytest.mark.fault
@pytest.mark.full
@pytest.mark.usefixtures("one_ray")
@pytest.mark.parametrize(
    ("executor", "number"), [("ray", signal.SIGINT), ("ray", signal.SIGTERM), ("inline", signal.SIGINT)]
)
def test_a_signal_in_a_sweep(executor, number, store, tmp_path, capsys):
    """The whole process group gets SIGINT, as from a terminal; the process alone gets SIGTERM, as from a scheduler."""
    (tmp_path / "slow.py").write_text(SLOW.replace("FOLDER", str(tmp_path)))
    rounds, every = 100, 10
    settings = MARKOV | {"algorithm": f"{tmp_path}/slow.py:Slow", "rounds": rounds, "evaluation": {"every": every}}
    file = write(tmp_path, trial=settings, grid={"seed": [0, 1, 2]}, report={})
    run = subprocess.Popen(
        [sys.executable, "-m", "rollcall.cli", "run", file, "--executor", executor],
        env=os.environ | {"OMP_NUM_THREADS": "1"},
        start_new_session=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    folders, begun = store / "tiny", time.monotonic()
    while not any(len(rounds_in(path.parent)) > 3 for path in folders.glob("*/metrics.jsonl")):
        assert run.poll() is None, run.stderr.read()
        assert time.monotonic() - begun < 240
        time.sleep(0.05)
    (os.killpg if number == signal.SIGINT else os.kill)(run.pid, number)
    out, err = run.communicate(timeout=120)
    assert run.returncode == 130, err
    assert "Rerun the command to resume." in out
    states = {path.parent.name: json.loads(path.read_text()) for path in folders.glob("*/status.json")}
    assert "interrupted" in {status["state"] for status in states.values()} <= {"interrupted", "finished"}
    assert len(states) <= 2  # and no other trial began
    mirror = Mirror(store, "tiny")
    mirror.look()
    copied = {run.data.tags["rollcall.trial"]: run.info.status for run in mirror.client.search_runs([mirror.id])}
    there = {"finished": "FINISHED", "interrupted": "KILLED"}
    assert (mirror.written, copied) == (0, {one["digest"]: there[one["state"]] for one in states.values()})
    for name, status in states.items():
        saved = torch.load(folders / name / "last.ckpt", weights_only=True)["global_step"]
        assert saved == status["round"]
        assert (saved < rounds) == (status["state"] == "interrupted")
    (tmp_path / "fast").touch()
    assert rollcall(capsys, "run", file, "--executor", "inline")[0] == 0
    for seed in (0, 1, 2):
        whole = simulate(settings | {"seed": seed})
        run = RunFolder(folders / whole.trial.name)
        assert np.array_equal(run.models()["model"], whole.model)
        assert rounds_in(run.path) == list(range(0, rounds + 1, every))
