"""From settings to a federation: the same parts for all algorithms of a seed, and refusals."""

import warnings
from dataclasses import dataclass
from functools import cache

import numpy as np
import pytest
import torch
from keys import initial_layer, keyed
from parts import of_three
from runs import DIGITS
from torch import nn

from rollcall import SettingError, simulate
from rollcall.algorithms import FedAvg, Traffic
from rollcall.benchmark.config.trial import Trial
from rollcall.benchmark.federation.build import availability, build
from rollcall.benchmark.federation.checked import check_task
from rollcall.benchmark.sweep.jobs import recorded
from rollcall.participation import MODELS, Population
from rollcall.participation.probabilities import staircase
from rollcall.tasks import ClientData, Task, supervised


def test_all_algorithms_of_a_seed_meet_the_same_roll_call_data_and_start():
    first, second = (build(Trial.read(DIGITS | {"algorithm": name})) for name in ("fedavg", "fedpbc"))
    assert torch.equal(first.server, second.server)
    assert all(np.array_equal(a, b) for a, b in zip(first.data.parts, second.data.parts, strict=True))
    assert all(np.array_equal(first.participation.active(t), second.participation.active(t)) for t in range(20))
    assert np.array_equal(first.minibatches.rows(3, 9), second.minibatches.rows(3, 9))


@pytest.mark.parametrize("seed", [0, 3])
def test_model_roll_call_and_minibatches_are_those_of_the_seed(seed):
    trial = DIGITS | {"task": {"name": "digits", "clients": 4, "model": "linear"}, "algorithm": "fedavg", "seed": seed}
    built = build(Trial.read(trial | {"participation": {"name": "bernoulli", "probability": 0.4}}))
    assert torch.equal(built.server, nn.utils.parameters_to_vector(initial_layer(seed, 64, 10).parameters()))
    for t in range(9):
        on = keyed(seed, "participation", t).random(4) < 0.4
        assert built.participation.active(t).tolist() == np.flatnonzero(on).tolist()
    for client, n in enumerate(built.minibatches.per_epoch.tolist()):
        seen = np.concatenate([built.minibatches.rows(client, step) for step in range(n, 2 * n)])
        assert seen.tolist() == keyed(seed, "minibatch", client, 1).permutation(built.data.parts[client]).tolist()


def test_epochs_are_the_steps_of_each_client():
    built = build(Trial.read(DIGITS | {"algorithm": "fedavg", "local": {"epochs": 2, "lr": 0.1, "batch_size": 16}}))
    steps = [2 * -(-len(part) // 16) for part in built.data.parts]
    assert len(set(steps)) > 1
    assert built.local.of(range(8)) == steps


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


def test_an_array_is_a_roll_call(tmp_path):
    mask = np.arange(24).reshape(3, 8) % 3 == 0
    np.save(tmp_path / "mask.npy", mask)
    named = {"name": "trace", "mask": mask}
    values = (named, mask, mask.tolist(), str(tmp_path / "mask.npy"))
    trials = [Trial.read(DIGITS | {"algorithm": "fedavg", "participation": value}) for value in values]
    for trial in trials:
        for t, row in enumerate(mask):
            assert build(trial).participation.active(t).tolist() == np.flatnonzero(row).tolist()
    assert trials[1].digest == trials[3].digest


def test_a_method_is_told_no_more_than_it_asks_for():
    told = {}
    for name in ("fedavg", "fedavg_known"):
        half = {"participation": {"name": "bernoulli", "probability": 0.5}}
        federation = build(Trial.read(DIGITS | half | {"algorithm": name}))
        federation.on_fit_start()
        told[name] = federation._call(0)
    assert told["fedavg"].probability is None
    assert told["fedavg_known"].probability.tolist() == [0.5] * 8
    assert told["fedavg_known"].stationary is None


def test_a_method_is_told_the_least_losses_of_the_task():
    task = {"name": "leaf_synthetic", "clients": 6}
    trial = {"task": task, "algorithm": {"name": "ca_fed", "least": "optimum"}, "local": {"lr": 0.1}, "rounds": 1}
    built = build(Trial.read(trial | {"participation": {"name": "markov", "probability": 0.5}}))
    built.begin()
    least = built.model.task.least_losses(built.data)
    assert least.max() > 0.1
    assert built._call(0).least_loss.tolist() == pytest.approx(least.tolist(), rel=1e-6)


def test_importance_weights_that_would_all_be_the_threshold_are_refused():
    trial = DIGITS | {"algorithm": {"name": "fedsgd_iw", "delta": 0.125}, "local": {"lr": 0.1}}
    refused = (
        r"^algorithm\.delta: 0\.125 is not allowed with 8 clients; must be below 0\.125, the largest mean of the c_i"
    )
    with pytest.raises(SettingError, match=refused):
        build(Trial.read(trial))
    trial["algorithm"]["delta"] = 0.12
    build(Trial.read(trial))


class Tied(nn.Module):
    """Two layers with one weight, and a head."""

    def __init__(self):
        super().__init__()
        self.one, self.two, self.head = nn.Linear(4, 4), nn.Linear(4, 4), nn.Linear(4, 2)
        self.two.weight = self.one.weight

    def forward(self, x):
        return self.head(self.two(self.one(x)))


def head(seed):
    network = nn.Sequential(nn.Linear(4, 3), nn.BatchNorm1d(3), nn.Linear(3, 2))
    network[0].requires_grad_(False)
    return network


def features(network, **changes):
    x = np.random.default_rng(0).normal(size=(60, 4))
    task = supervised((x, (x[:, 0] > 0).astype(int)), None, network, clients=8)
    local, numerics = {"lr": 0.5, "steps": 3, "batch_size": 4}, {"dtype": "float64"} | changes
    return {"task": task, "algorithm": "mifa", "local": local, "rounds": 4, "numerics": numerics}


@pytest.mark.parametrize(("network", "d"), [(head, 2 * 3 + 3 * 2 + 2), (lambda seed: Tied(), 16 + 4 + 4 + 10)])
def test_frozen_parameters_stay_and_shared_ones_count_once(network, d):
    sequential, auto = (simulate(features(network, engine=engine)) for engine in ("sequential", "auto"))
    assert np.abs(sequential.server - auto.server).max() < 1e-10
    assert sequential.server.shape == (d,)
    assert sequential.history["cost/floats_up"].iloc[-1] == 4 * 8 * d
    trained, start = sequential.module().network, build(Trial.read(features(network))).model.task.network
    for (name, after), before in zip(trained.named_parameters(), start.parameters(), strict=True):
        assert torch.equal(after, before) == (not before.requires_grad), name


class FrozenNorm(nn.Module):
    """A BatchNorm that training leaves alone, as in a pretrained network; NaN stands for a missing value."""

    def __init__(self):
        super().__init__()
        self.norm, self.drop, self.head = nn.BatchNorm1d(4).eval(), nn.Dropout(0.5), nn.Linear(4, 2)

    def forward(self, x):
        return self.head(self.drop(self.norm(x.nan_to_num())))


def test_each_part_of_a_network_keeps_its_own_mode():
    """Checks, evaluations and losses of held-out samples are in evaluation mode; afterwards all is as before."""
    x = np.random.default_rng(0).normal(size=(60, 4))
    x[7, 2] = np.nan
    one = FrozenNorm()  # the same module in every call
    task = supervised((x, (x[:, 0] > 0).astype(int)), None, lambda seed: one, clients=6, test_share=0.2)
    settings = {"task": task, "algorithm": {"name": "ca_fed", "losses": "test"}, "rounds": 4}
    trial = Trial.read(settings | {"local": {"lr": 0.1}, "evaluation": {"every": 2, "metrics": ["auroc"]}})
    result = simulate(trial)
    assert {name: value.tolist() for name, value in result.buffers.items()} == {
        "network.norm.running_mean": [0.0] * 4,
        "network.norm.running_var": [1.0] * 4,
        "network.norm.num_batches_tracked": 0,
    }
    federation = build(trial)
    samples = tuple(column[:2] for column in federation.data.splits["train"])
    for step in (lambda: check_task(federation.model.task, samples), lambda: recorded(federation)):
        step()
        own = federation.model.task.network
        assert [part.training for part in (federation.model.task, own, own.norm, own.drop)] == [True, True, False, True]


def corner(t, *, start, slope):
    return None if start is None else abs(start + slope * t)


@pytest.mark.parametrize(("start", "slope", "at"), [(0, 0.2, 0), (1, -0.2, 5), (2, -1, 2), (None, 0, 0)])
def test_a_rate_that_is_not_above_zero_is_refused(start, slope, at):
    """Before the first round if it is of the first or the last one of six. Methods divide by the rate."""
    schedule = {"name": corner, "start": start, "slope": slope}
    settings = {"task": {"name": "quadratic", "targets": [[0.0], [1.0]]}, "rounds": 6, "algorithm": "mifa"}
    with pytest.raises(SettingError, match=rf"^local\.schedule: (0|0\.0|None) in round {at} is not allowed"):
        simulate(settings | {"local": {"schedule": schedule, "lr": 0.1}})


def test_each_run_starts_from_the_same_network():
    """A user's function may return one network in each call; a run trains a copy of it."""
    x, network = np.eye(4), nn.Linear(4, 2)
    task = supervised((x, np.array([0, 1, 0, 1])), None, lambda seed: network, clients=2)
    first, second = (simulate({"task": task, "algorithm": "fedavg", "rounds": 2}) for _ in range(2))
    assert first.history.equals(second.history)
    assert first.history["train/loss"].iloc[-1] < first.history["train/loss"][0]
    before = network.weight.detach().clone()
    model = first.module()
    assert torch.equal(network.weight, before)
    assert not torch.equal(model.network.weight, before)


class Normed(Task):
    """It measures a batch as a whole, and its network cannot be copied as it is; its scores are by class."""

    def __init__(self):
        super().__init__(lr=0.1)
        with warnings.catch_warnings(action="ignore"):
            self.layer = nn.utils.weight_norm(nn.Linear(4, 2))

    def outputs(self, batch):
        return self.layer(batch[0]), batch[1]

    def loss(self, batch):
        return nn.functional.cross_entropy(*self.outputs(batch))

    def metrics(self, batch):
        return {"loss": self.loss(batch)}


def normed(seed):
    x, y = torch.eye(4), torch.tensor([0, 1, 0, 1])
    classes = np.array([[0.5, 0.5], [0.5, 0.5]])
    return Normed(), ClientData({"train": (x, y)}, [np.arange(2), np.arange(2, 4)], classes=classes, seed=seed)


def test_scores_by_class_of_a_network_with_the_old_weight_norm():
    trial = {"task": normed, "algorithm": "fedavg", "rounds": 2, "evaluation": {"by": ["class"], "metrics": ["f1"]}}
    result = simulate(trial)
    assert {"train/f1", "train/f1/class0", "train/f1/class1"} <= {*result.history}
    assert result.module().layer.weight.shape == (2, 4)


def test_a_complex_network_is_refused():
    network = nn.Linear(2, 2)
    network.register_buffer("filter", torch.zeros(3, dtype=torch.complex64))
    task = supervised((np.eye(2), np.array([0, 1])), None, lambda seed: network, clients=2)
    with pytest.raises(SettingError, match=r"^task\.network\.filter: a complex tensor is not allowed; must be real"):
        build(Trial.read({"task": task, "algorithm": "fedavg", "rounds": 1}))


@cache
def shared(seed):
    return of_three(seed)


def test_data_that_a_function_returns_in_each_call_stay_as_they_are(tmp_path):
    trial = {"task": shared, "algorithm": "fedavg", "rounds": 1}
    simulate(trial, folder=tmp_path)
    assert simulate(trial | {"rounds": 2}, folder=tmp_path).history["round"].iloc[-1] == 2
    task, data = shared(0)
    assert {column.dtype for column in data.splits["train"]} == {torch.float64}
    simulate(trial | {"numerics": {"dtype": "float64"}})
    assert next(task.parameters()).dtype == torch.float32


@dataclass(frozen=True)
class Reading(FedAvg):
    """It reads the numbers of x before the first round, and its traffic is in tensors."""

    def init(self, x, clients):
        assert x.norm().item() == 0
        return super().init(x, clients)

    def traffic(self, state, call):
        return Traffic(up=torch.tensor(len(call.active)), down=torch.tensor(1))


def test_a_method_may_read_the_initial_model_and_count_in_tensors():
    settings = {"task": {"name": "quadratic", "targets": [[0.0, 1.0], [1.0, 5.0]]}, "rounds": 2, "algorithm": Reading}
    history = simulate(settings).history
    assert [history[f"cost/floats_{way}"].iloc[-1] for way in ("up", "down")] == [2 * 2 * 2, 2 * 1 * 2]


def test_a_job_of_slurm_with_many_tasks(monkeypatch):
    """Lightning would want a device for each task, and refuses other numbers."""
    for name, value in {"SLURM_NTASKS": "4", "SLURM_JOB_NAME": "x", "SLURM_JOB_ID": "1"}.items():
        monkeypatch.setenv(name, value)
    settings = {"task": {"name": "quadratic", "targets": [[0.0], [1.0]]}, "rounds": 2, "algorithm": "fedavg"}
    assert simulate(settings).history["round"].iloc[-1] == 2


def test_a_mac_computes_on_its_cpu(monkeypatch):
    """Its GPU has no float64, in which metrics are added up."""
    monkeypatch.setattr("lightning.fabric.accelerators.mps.MPSAccelerator.is_available", lambda *_: True)
    monkeypatch.setattr("torch.cuda.is_available", lambda: False)
    trial = {
        "task": {"name": "quadratic", "targets": [0, 1]},
        "algorithm": "fedavg",
        "rounds": 2,
        "numerics": {"device": "auto"},
    }
    assert simulate(trial).history["round"].iloc[-1] == 2


def test_a_server_optimizer_of_other_parameters_is_refused():
    """It would leave the model as it is."""
    settings = {"task": {"name": "quadratic", "targets": [[0.0], [1.0]]}, "rounds": 1, "algorithm": "fedavg"}
    wrong = torch.optim.Adam(nn.Linear(1, 1).parameters())
    with pytest.raises(SettingError, match=r"server\.optimizer: holds other parameters"):
        simulate(settings | {"server": {"optimizer": wrong}})


def test_availability_is_that_in_the_long_run_where_it_is_known():
    """In the first half of a period p, then 0.4 p: 0.7 p in the mean. A function has no known long run."""
    p = np.array([0.2, 0.5, 0.9])
    varying = MODELS["bernoulli"](Population(3), probability=p, variation=staircase)
    assert varying.probability(0) == pytest.approx(p)
    assert availability(varying) == pytest.approx(0.7 * p)
    function = MODELS["function"](Population(3), function=lambda t, rng: [0], probability=p)
    assert availability(function) == pytest.approx(p)
