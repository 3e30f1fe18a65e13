"""Trials: what is read is what is written, and a digest names the settings."""

import hashlib
from dataclasses import dataclass
from types import MappingProxyType

import numpy as np
import pytest

from rollcall import Trial, simulate
from rollcall.benchmark.config.choice import read
from rollcall.benchmark.config.digest import array_file, digest

TARGETS = np.arange(6.0).reshape(3, 2)
SPEC = {
    "task": {"name": "quadratic", "targets": TARGETS},
    "participation": {"name": "trace", "mask": [[1, 0, 1]], "probability": [0.5, 0.5, 0.5]},
    "algorithm": {"name": "mifa"},
    "rounds": 4,
}


def test_a_saved_trial_reads_back_the_same(tmp_path):
    trial = Trial.read(SPEC)
    trial.save(tmp_path)
    again = Trial.read(tmp_path / "trial.yaml")
    assert again.digest == trial.digest
    assert np.array_equal(again.task.options["targets"], TARGETS)
    assert again.complete() == trial.complete()
    assert Trial.read(trial.portable).digest == trial.digest  # as another process reads it


@pytest.mark.parametrize(
    "change",
    [
        {"seed": 1},
        {"local": {"lr": 0.2}},
        {"local": {"steps": 1}},  # the default
        {"algorithm": {"name": "mifa", "wait_for_all": True}},
        {"algorithm": "fedavg"},
        {"task": {"name": "quadratic", "targets": TARGETS + 1e-12}},
        {"participation": SPEC["participation"] | {"mask": [[1, 1, 1]]}},
        {"numerics": {"dtype": "float64"}},
    ],
)
def test_every_setting_changes_the_digest(change):
    assert Trial.read(SPEC | change).digest != Trial.read(SPEC).digest


@pytest.mark.parametrize(
    "change",
    [
        {"rounds": 9},
        {"numerics": {"engine": "sequential", "device": "cpu"}},
        {"algorithm": "mifa"},
        {"task": {"name": "quadratic", "targets": TARGETS.copy()}},
    ],
    ids=str,
)
def test_what_changes_no_result_leaves_the_digest_alone(change):
    assert Trial.read(SPEC | change).digest == Trial.read(SPEC).digest


def test_options_of_the_server_optimizer_may_stand_with_its_name():
    for name, options in (("adam", {"eps": 1.0}), ("sgd", {"momentum": 0.5}), ("sgd", {})):
        within, beside = {"optimizer": {"name": name} | options}, {"optimizer": name} | options
        assert Trial.read(SPEC | {"server": within}).server == Trial.read(SPEC | {"server": beside}).server


def test_the_digest_is_the_hash_of_the_settings_as_they_are_written():
    task = {"name": "quadratic", "targets": [0.0, 2.5]}
    spec = {"task": task, "algorithm": {"name": "fedavg"}, "rounds": 4, "seed": 2}
    text = '[1, {"algorithm": "fedavg", "numerics": {}, "rounds": null, "seed": 2, '
    text += '"task": {"name": "quadratic", "targets": [0, 2.5]}}]'
    assert Trial.read(spec).digest == digest(spec) == hashlib.sha256(text.encode()).hexdigest()[:10]
    assert Trial.read(spec).name == f"fedavg-seed2-{digest(spec)}"


def test_arrays_may_come_from_files_beside(tmp_path):
    np.save(tmp_path / "u.npy", TARGETS)
    (tmp_path / "trial.yaml").write_text("task: {name: quadratic, targets: u.npy}\nalgorithm: fedavg\nrounds: 1\n")
    trial = Trial.read(tmp_path / "trial.yaml")
    assert np.array_equal(trial.task.options["targets"], TARGETS)
    inline = {"task": {"name": "quadratic", "targets": TARGETS}, "algorithm": "fedavg", "rounds": 1}
    assert trial.digest == Trial.read(inline).digest
    np.save(tmp_path / "u.npy", TARGETS + 1)
    assert Trial.read(tmp_path / "trial.yaml").digest != trial.digest


def test_arrays_of_equal_bytes_have_a_file_each(tmp_path):
    """Targets [4, 1] and curvatures [4] of equal numbers; a mask of whole zeros and probabilities 0 of equal shape."""
    task = {"name": "quadratic", "targets": np.arange(1.0, 5)[:, None], "curvature": np.arange(1.0, 5)}
    zeros = {"name": "trace", "mask": np.zeros((2, 4), np.int64), "probability": np.zeros((2, 4))}
    trial = Trial.read({"task": task, "participation": zeros, "algorithm": "fedavg", "rounds": 1})
    trial.save(tmp_path)
    again = Trial.read(tmp_path / "trial.yaml")
    assert again.digest == trial.digest
    for kind, given in (("task", task), ("participation", zeros)):
        options = getattr(again, kind).options
        for name, array in list(given.items())[1:]:
            assert (options[name].dtype, options[name].shape) == (array.dtype, array.shape)
            assert np.array_equal(options[name], array)
    assert len(list(tmp_path.glob("*.npy"))) == 4
    # Kept results name vectors of float64 by the hash of their bytes.
    assert array_file(np.arange(1.0, 5)) == f"{hashlib.sha256(np.arange(1.0, 5).tobytes()).hexdigest()[:10]}.npy"


def test_an_option_is_read_as_the_first_type_that_fits(tmp_path):
    def option(name, key, value):
        return read("participation", {"name": name, key: value}).options[key]

    choice = option("bernoulli", "probability", {"name": "constant", "p": 0.25})
    assert (choice.name, choice.options) == ("constant", {"p": 0.25})
    assert option("bernoulli", "probability", "mixture").name == "mixture"
    assert repr(option("bernoulli", "probability", 1)) == "1.0"
    assert option("bernoulli", "probability", [1, 0.5]).tolist() == [1, 0.5]
    (tmp_path / "a.csv").write_text("round,client\n0,4\n")
    assert option("trace", "mask", str(tmp_path / "a.csv"))["client"].tolist() == [4]


def test_settings_may_be_any_mapping():
    local, server = {"epochs": 2, "batch_size": 1}, {"optimizer": {"name": "adam", "eps": 0.5}}
    task = {"name": "quadratic", "targets": [0.0, 1.0]}
    plain = {
        "task": task,
        "participation": "full",
        "algorithm": "fedavg",
        "rounds": 1,
        "local": local,
        "server": server,
    }
    views = {name: MappingProxyType(value) if isinstance(value, dict) else value for name, value in plain.items()}
    read = Trial.read(views)
    assert (read.local.steps, read.local.epochs, read.server.eps) == (None, 2, 0.5)
    assert read.digest == Trial.read(plain).digest


@dataclass
class Days:
    """A participation model as an object that cannot be hashed."""

    order: list[int]

    def __call__(self, t, rng):
        return [self.order[t]]


@dataclass(frozen=True)
class FrozenDays:
    order: list[int]
    __call__ = Days.__call__


@pytest.mark.parametrize("kind", [Days, FrozenDays])
def test_an_object_that_cannot_be_hashed_is_a_choice(kind):
    task, sent = {"name": "quadratic", "targets": [0.0, 4.0, 2.0]}, {"name": "function", "function": kind([0, 1])}
    trial = {"task": task, "participation": sent, "algorithm": "fedavg", "local": {"lr": 0.5}, "rounds": 2}
    assert simulate(trial).model.tolist() == [2.0]  # client 0 stays at 0, client 1 halves the way to 4
