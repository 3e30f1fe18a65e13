"""The loop: one round is one training step, evaluation is exact, and a stopped run goes on bit for bit."""

import json
from datetime import timedelta
from itertools import count

import numpy as np
import pandas as pd
import pytest
import torch
from lightning.pytorch import Callback, Trainer
from lightning.pytorch.callbacks import EarlyStopping
from lightning.pytorch.loggers import CSVLogger
from torch import nn

from algorithms import ALGORITHMS
from benchmark import SettingError, simulate
from benchmark.config.trial import Trial
from benchmark.federation.build import build
from benchmark.federation.run_folder import RunFolder
from benchmark.federation.trainer import quiet

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


def test_all_algorithms_of_a_seed_meet_the_same_roll_call_data_and_start():
    first, second = (build(Trial.read(DIGITS | {"algorithm": name})) for name in ("fedavg", "fedpbc"))
    assert torch.equal(first.server, second.server)
    assert all(np.array_equal(a, b) for a, b in zip(first.data.parts, second.data.parts, strict=True))
    assert all(np.array_equal(first.participation.active(t), second.participation.active(t)) for t in range(20))
    assert np.array_equal(first.minibatches.rows(3, 9), second.minibatches.rows(3, 9))


def test_the_objective_weighs_clients_alike_or_by_their_samples():
    told = {}
    for target in ("uniform", "samples"):
        federation = build(Trial.read(DIGITS | {"algorithm": "fedavg", "target": target}))
        federation.on_fit_start()
        told[target] = federation._call(0).alpha.tolist()
    sizes = federation.data.parts.sizes
    assert len(set(sizes)) > 1
    assert told["uniform"] == pytest.approx([1 / len(sizes)] * len(sizes))
    assert told["samples"] == pytest.approx((sizes / sizes.sum()).tolist())


def test_evaluation_is_exact_over_uneven_batches():
    federation = build(Trial.read(DIGITS | {"algorithm": "fedavg", "numerics": {"dtype": "float64"}}))
    federation.data.evaluation_batch = 100
    with quiet():
        trainer = Trainer(accelerator="cpu", logger=False, enable_checkpointing=False, enable_progress_bar=False)
        trainer.validate(federation, verbose=False)
    for split in ("train", "test"):
        pixels, labels = federation.data.splits[split]
        logits = federation.model.task(pixels)
        loss = nn.functional.cross_entropy(logits, labels).item()
        assert federation.measured[f"{split}/loss"] == pytest.approx(loss, rel=1e-12)
        accuracy = (logits.argmax(1) == labels).double().mean().item()
        assert federation.measured[f"{split}/accuracy"] == pytest.approx(accuracy, rel=1e-12)


def test_one_round_is_one_training_step():
    seen = []

    class Watch(Callback):
        def on_train_batch_end(self, trainer, federation, *_):
            seen.append((federation.t, trainer.global_step))

    simulate(DIGITS | {"algorithm": "fedavg"}, callbacks=[Watch()])
    assert seen == [(t, t) for t in range(1, 14)]


def test_batchnorm_statistics_are_averaged_over_the_active_clients():
    from benchmark.engines import LocalTraining
    from benchmark.federation.module import Federation
    from participation import Population, Trace
    from tasks import ClientData, Minibatches, Task

    class Norm(Task):
        def __init__(self):
            super().__init__(lr=0.1)
            self.norm = nn.BatchNorm1d(1, momentum=1.0)

        def loss(self, batch):
            return self.norm(batch[0]).square().mean()

        def metrics(self, batch):
            return {"loss": self.loss(batch)}

    means = torch.tensor([1.0, 10.0, 100.0])
    samples = (torch.stack([means - 1, means + 1], dim=1).flatten()[:, None],)
    mask = np.array([[1, 0, 1], [0, 0, 0]])
    federation = Federation(
        Norm(),
        ClientData({"train": samples}, list(np.arange(6).reshape(3, 2))),
        Trace(Population(3), mask=mask),
        ALGORITHMS["fedpbc"](),  # everybody computes; only the active are heard
        minibatches=Minibatches(list(np.arange(6).reshape(3, 2)), "full", seed=0),
        local=LocalTraining(1),
        lr=lambda t: 0.0,
        alpha=np.full(3, 1 / 3),
        optimizer=lambda parameters: torch.optim.SGD(parameters, lr=1.0),
        splits=lambda t: ["train"],
        seed=0,
    )
    with quiet():
        Trainer(max_steps=2, max_epochs=1, accelerator="cpu", logger=False, enable_checkpointing=False,
                enable_progress_bar=False, enable_model_summary=False, limit_val_batches=0).fit(federation)  # fmt: skip
    norm = federation.model.task.norm
    assert norm.running_mean.item() == pytest.approx((1 + 100) / 2)
    assert norm.running_var.item() == pytest.approx(2.0)


def test_an_oracle_must_know_what_a_method_needs():
    trace = {"name": "trace", "mask": np.ones((3, 2))}
    trial = {"task": {"name": "quadratic", "targets": [[0.0], [1.0]]}, "participation": trace, "rounds": 3}
    with pytest.raises(SettingError, match=r"algorithm.name: 'fedavg_known' .*trace.*probability"):
        simulate(trial | {"algorithm": "fedavg_known"})


def test_a_method_is_told_no_more_than_it_asks_for():
    told = {}
    for name in ("fedavg", "fedavg_known"):
        federation = build(
            Trial.read(DIGITS | {"algorithm": name, "participation": {"name": "bernoulli", "probability": 0.5}})
        )
        federation.on_fit_start()
        told[name] = federation._call(0)
    assert told["fedavg"].probability is None
    assert told["fedavg_known"].probability.tolist() == [0.5] * 8
    assert told["fedavg_known"].stationary is None


def test_a_run_folder_tells_the_whole_story(tmp_path):
    result = simulate(DIGITS | {"algorithm": "fedpbc"}, folder=tmp_path / "run")
    status = json.loads((tmp_path / "run" / "status.json").read_text())
    assert status["state"] == "finished"
    assert status["round"] == status["rounds"] == 13
    assert status["versions"]["torch"] == torch.__version__.partition("+")[0]
    assert status["device"] == "cpu"
    assert status["seconds"] > 0
    assert (tmp_path / "run" / "last.ckpt").exists()
    again = simulate(tmp_path / "run" / "trial.yaml", folder=tmp_path / "run")
    assert np.array_equal(again.model, result.model)
    assert again.history.equals(result.history)
    assert np.array_equal(simulate(tmp_path / "run" / "trial.yaml").model, result.model)


def test_a_folder_is_run_by_one_process_at_a_time(tmp_path):
    trial = DIGITS | {"algorithm": "fedpbc"}

    class Another(Callback):
        def on_train_batch_end(self, trainer, federation, *_):
            if federation.t == 5:
                with pytest.raises(SettingError, match=r"folder: .*run is in use; another process"):
                    simulate(trial, folder=tmp_path / "run")

    disturbed = simulate(trial, folder=tmp_path / "run", callbacks=[Another()])
    assert RunFolder(tmp_path / "run").state == "finished"
    assert disturbed.history.equals(simulate(trial).history)


def test_a_folder_belongs_to_one_trial(tmp_path):
    simulate(DIGITS | {"algorithm": "fedavg", "rounds": 2}, folder=tmp_path / "run")
    with pytest.raises(SettingError, match=r"folder: .*run is not allowed; it holds another trial, fedavg-seed0-"):
        simulate(DIGITS | {"algorithm": "fedavg", "rounds": 2, "seed": 1}, folder=tmp_path / "run")
    with pytest.raises(SettingError, match=r"rounds: 1 is not allowed with .*run, which holds 2 rounds of this trial"):
        simulate(DIGITS | {"algorithm": "fedavg", "rounds": 1}, folder=tmp_path / "run")


def test_a_failing_trial_says_why_in_its_folder(tmp_path):
    class Broken(Callback):
        def on_train_batch_end(self, *_):
            raise RuntimeError("out of luck")

    with pytest.raises(RuntimeError, match="out of luck"):
        simulate(DIGITS | {"algorithm": "fedavg"}, folder=tmp_path / "run", callbacks=[Broken()])
    assert RunFolder(tmp_path / "run").status["error"] == "RuntimeError: out of luck"
    assert RunFolder(tmp_path / "run").state == "failed"


def test_a_half_written_last_line_is_passed_over(tmp_path):
    (tmp_path / "metrics.jsonl").write_text(
        '{"round": 0, "a": 1}\n{"round": 5, "a": 2}\n{"round": 5, "a": 3}\n{"round": 1'
    )
    history = RunFolder(tmp_path).history()
    assert history.to_dict("list") == {"round": [0, 5], "a": [1, 3]}


def test_status_follows_about_once_a_second_and_ends_exact(tmp_path, monkeypatch):
    now = 100.0
    monkeypatch.setattr("benchmark.federation.run_folder.time.monotonic", lambda: now)
    run = RunFolder(tmp_path / "run")
    seen = []
    with run.running(Trial.read(DIGITS | {"algorithm": "fedavg"}), device="cpu", threads=1):
        for t, now in ((1, 100.5), (2, 101.0), (3, 101.5), (4, 102.5)):  # noqa: B007
            run.append({"round": t}, seconds=0.25)
            seen.append(run.status["round"])
        run.append({"round": 5})
        assert run.history()["round"].tolist() == [1, 2, 3, 4, 5]
    assert seen == [0, 2, 2, 4]
    assert run.status["round"] == 5
    assert run.state == "finished"
    assert (run.status["seconds"], run.status["evaluation_seconds"]) == (2.5, 1.0)
    with run.running(Trial.read(DIGITS | {"algorithm": "fedavg"}), device="cpu", threads=1):
        run.append({"round": 6}, seconds=0.5)
        now += 3.0
    assert (run.status["seconds"], run.status["evaluation_seconds"]) == (5.5, 1.5)


def test_the_time_of_evaluations_is_kept(tmp_path, monkeypatch):
    ticks = count()
    monkeypatch.setattr("benchmark.federation.callbacks.monotonic", lambda: next(ticks))
    trial = DIGITS | {"algorithm": "fedavg", "rounds": 4, "evaluation": {"every": 2}}
    simulate(trial, folder=tmp_path / "run")
    assert RunFolder(tmp_path / "run").status["evaluation_seconds"] == 3  # a second each: rounds 0, 2 and 4


def test_who_reads_metrics_finds_them(tmp_path):
    trial = {"task": {"name": "quadratic", "targets": np.array([[1.0], [3.0]])}, "algorithm": "fedavg", "rounds": 4}
    trial |= {"evaluation": {"every": 1}, "numerics": {"dtype": "float64"}, "local": {"lr": 0.5}}
    # x = 0, 1, 1.5, 1.75, 1.875: the first distance from 2 below 0.3 is the third.
    stop = EarlyStopping("train/distance", stopping_threshold=0.3, patience=9)
    assert simulate(trial, callbacks=[stop]).server.tolist() == [1.75]
    assert simulate(trial, callbacks=[]).server.tolist() == [1.875]
    simulate(trial, logger=CSVLogger(tmp_path, name="", version=""))
    logged = pd.read_csv(tmp_path / "metrics.csv")
    assert logged["train/distance"].dropna().tolist()[:4] == [2.0, 1.0, 0.5, 0.25]
