"""Trials: what is read is what is written, and a digest names the settings."""

import hashlib

import numpy as np
import pytest

from rollcall import SettingError, Trial, simulate
from rollcall.benchmark.config.choice import read
from rollcall.benchmark.config.digest import digest

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


def test_the_digest_is_the_hash_of_the_settings_as_they_are_written():
    spec = {
        "task": {"name": "quadratic", "targets": [0.0, 2.5]},
        "algorithm": {"name": "fedavg"},
        "rounds": 4,
        "seed": 2,
    }
    text = (
        '[1, {"algorithm": "fedavg", "numerics": {}, "rounds": null, "seed": 2, '
        '"task": {"name": "quadratic", "targets": [0, 2.5]}}]'
    )
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


@pytest.mark.parametrize(
    ("change", "complaint"),
    [
        ({"algorithm": {"name": "mifa", "memory": "x"}}, "algorithm.memory: 'x' is not allowed; must be 'gradients', 'updates' or 'differences'"),
        ({"task": {"name": "digits", "clients": 3, "partition": {"name": "dirichlet", "beta": 1}}}, "task.partition.beta: is not an option of dirichlet; allowed: alpha"),
        ({"task": {"name": "digits", "clients": 3, "partition": "slices"}}, "task.partition: 'slices' is not allowed; must be one of iid, dirichlet"),
        ({"task": {"name": "quadratic", "targets": "none.npy"}}, "task.targets: 'none.npy' is not allowed; there is no file /.*/none.npy"),
        ({"task": {"name": "quadratic", "targets": "none"}}, "task.targets: 'none' is not allowed; must be numbers, or the path of a .npy or .npz file"),
        ({"participation": {"name": "trace", "mask": "none.csv"}}, "participation.mask: 'none.csv' is not allowed; there is no file /.*/none.csv"),
        ({"task": {"name": "quadratic", "targets": [[1, 2], [1]]}}, "must be numbers in rows of equal length"),
        ({"participation": {"name": "bernoulli", "probability": {"name": "constant", "p": "a"}}}, "participation.probability.p: 'a' is not allowed; must be a number"),
        *[
            ({"participation": {"name": "bernoulli", "probability": value}}, f"participation.probability{complaint}")
            for value, complaint in {
                "halfs": ": 'halfs' is not allowed; must be numbers, or the path of a .npy or .npz file",
                None: ": null is not allowed; must be numbers, or the path of a .npy or .npz file",
                True: ": true is not allowed; must be a number",
            }.items()
        ],
        ({"local": {"batch_size": 0}}, "local.batch_size: 0 is not allowed; must be a whole number above 0, or full"),
        ({"local": {"schedule": {"name": "inverse_sqrt", "period": 0}}}, "local.schedule.period: 0 is not allowed; must be greater than 0"),
        ({"server": {"optimizer": "adam", "momentum": 0.9}}, "server.momentum: 0.9 is not allowed with adam; must be left out"),
        ({"algorithm": "fedpbc", "server": {"momentum": 0.9}}, "server: .* is not allowed with fedpbc"),
        ({"algorithm": "fedsgd", "local": {"steps": 3}}, "local.steps: 3 is not allowed with fedsgd, which uses one gradient in each round; must be local.steps: 1"),
        ({"local": 3}, "local: 3 is not allowed; must be a mapping of settings to values"),
        ({"local": {"steps": 1.5}}, "local.steps: 1.5 is not allowed; must be a whole number"),
        ({"local": {"lr": float("inf")}}, "local.lr: inf is not allowed; must be a finite number"),
        ({"local": {"keep_momentum": None}}, "local.keep_momentum: null is not allowed; must be true or false"),
        ({"evaluation": {"splits": [1]}}, "evaluation.splits.0: 1 is not allowed; must be a text"),
        ({"target": "size"}, "target: 'size' is not allowed; must be uniform, samples, or numbers from 0 for each client"),
    ],
)  # fmt: skip
def test_what_is_not_allowed_is_named(change, complaint):
    with pytest.raises(SettingError, match=complaint) as caught:
        Trial.read(SPEC | change)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("algorithm", "participation", "missing"),
    [
        ("unbiased", {"name": "weighted", "per_round": 1, "probability": [0.2, 0.4]}, "stationary"),
        ("ca_fed", {"name": "cyclic", "probability": 0.5}, "correlation"),
        ("fedsgd_iw", {"name": "markov", "probability": 0.5}, "share"),
    ],
)
def test_knowledge_that_is_not_there_is_said_before_the_run(algorithm, participation, missing):
    trial = {"task": {"name": "quadratic", "targets": [[0.0], [1.0]]}, "participation": participation, "rounds": 1}
    with pytest.raises(SettingError, match=f"does not provide {missing}"):
        simulate(trial | {"algorithm": {"name": algorithm, "oracle": True}})
    simulate(trial | {"algorithm": {"name": algorithm, "oracle": False}})


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
