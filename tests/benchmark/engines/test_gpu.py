"""A GPU gives the numbers of a CPU, and the same bits every time. Without a GPU these tests are skipped."""

import numpy as np
import pytest
import torch

from rollcall import Trial, simulate
from rollcall.algorithms import ALGORITHMS
from rollcall.benchmark.engines import recording
from rollcall.benchmark.engines.captured import Captured
from rollcall.benchmark.process import Interrupted
from rollcall.benchmark.sweep.jobs import Job
from rollcall.benchmark.sweep.lockstep import run_lockstep

pytestmark = pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")

M, T = 6, 10
DRAW = np.random.default_rng(5)
P = np.tile(DRAW.uniform(0.05, 0.9, M), (T, 1))
MASK = DRAW.random((T, M)) < P
MASK[[2, 5]] = False  # empty rounds
CALLS = {"name": "trace", "mask": MASK, "probability": P, "stationary": P[0], "correlation": np.full(M, 0.1)}
DIGITS = {"name": "digits", "clients": M, "model": "mlp", "partition": {"name": "dirichlet", "alpha": 0.5}}
CONVOLUTIONS = DIGITS | {"model": f"{__file__}:convolutions", "augmentation": {"name": "crop_flip", "padding": 1}}
BATCHNORM = DIGITS | {"model": f"{__file__}:batchnorm"}
DROPOUT = DIGITS | {"model": f"{__file__}:dropout"}
EIGHT = {"steps": 3, "lr": 0.05, "batch_size": 8}


@pytest.fixture(autouse=True)
def captures(monkeypatch):
    """Kernels are captured from the second call on; the list of captures, None for each that failed."""
    monkeypatch.setattr(recording, "CALLS_BEFORE_RECORDING", 1)
    launch, made = Captured._launch, []
    monkeypatch.setattr(Captured, "_launch", lambda self, steps: made.append(launch(self, steps)) or made[-1])
    return made


def convolutions(shape, classes):
    layers = torch.nn.Conv2d(shape[0], 8, 3), torch.nn.ReLU(), torch.nn.MaxPool2d(2), torch.nn.Flatten()
    return torch.nn.Sequential(*layers, torch.nn.Linear(72, classes))


def batchnorm(shape, classes):
    layers = torch.nn.Flatten(), torch.nn.Linear(64, 8), torch.nn.BatchNorm1d(8), torch.nn.ReLU()
    return torch.nn.Sequential(*layers, torch.nn.Linear(8, classes))


def dropout(shape, classes):
    layers = torch.nn.Flatten(), torch.nn.Linear(64, 8), torch.nn.ReLU(), torch.nn.Dropout(0.5)
    return torch.nn.Sequential(*layers, torch.nn.Linear(8, classes))


def trial(device, dtype="float64", engine="auto", **settings):
    base = {"task": DIGITS, "participation": CALLS, "algorithm": "fedavg", "local": EIGHT, "rounds": T, "seed": 3}
    numerics = {"device": device, "dtype": dtype, "engine": engine}
    return Trial.read(base | {"evaluation": {"every": 5}, "numerics": numerics} | settings)


def distance(one, other):
    """Largest difference of the models and of all that was measured."""
    table = (one.history - other.history).abs().to_numpy().max()
    return max(table, *(np.abs(a - b).max() for a, b in ((one.server, other.server), (one.model, other.model))))


@pytest.mark.parametrize("engine", ["sequential", "vectorised"])
@pytest.mark.parametrize("method", ALGORITHMS)
def test_every_method_gives_the_numbers_of_a_cpu(method, engine):
    local = EIGHT | ({"steps": 1} if method in ("fedsgd", "fedsgd_iw") else {})
    settings = {"algorithm": method, "local": local}
    cpu = simulate(trial("cpu", engine="sequential", **settings))
    assert distance(simulate(trial("cuda", engine=engine, **settings)), cpu) < 1e-9


@pytest.mark.parametrize("engine", ["sequential", "vectorised"])
@pytest.mark.parametrize(
    "settings",
    [
        {"task": CONVOLUTIONS},
        {"task": CONVOLUTIONS, "algorithm": "fedpbc", "local": EIGHT | {"clip": 0.5}},
        {"task": BATCHNORM, "local": EIGHT | {"last_batch": "drop"}},
        {"task": BATCHNORM, "local": EIGHT | {"batch_size": "full"}},
        {"local": EIGHT | {"momentum": 0.9, "keep_momentum": True}},
        {"local": {"epochs": 2, "lr": 0.05, "batch_size": 32, "momentum": 0.9, "weight_decay": 0.01}},
        {"server": {"optimizer": "adam", "lr": 0.1}},
        {"evaluation": {"every": 5, "weights": ["availability"], "by": ["class", "client"]}},
    ],
    ids=str,
)
def test_every_setting_gives_the_numbers_of_a_cpu(settings, engine):
    cpu = simulate(trial("cpu", engine="sequential", **settings))
    assert distance(simulate(trial("cuda", engine=engine, **settings)), cpu) < 1e-9


@pytest.mark.parametrize(
    "settings",
    [
        {},
        {"task": CONVOLUTIONS, "local": EIGHT | {"clip": 0.5}},
        {"task": BATCHNORM, "local": EIGHT | {"last_batch": "drop"}},
        {"algorithm": "scaffold", "local": EIGHT},
        {"local": EIGHT | {"momentum": 0.9, "keep_momentum": True}},
    ],
    ids=str,
)
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_steps_are_captured(settings, dtype, captures):
    simulate(trial("cuda", dtype, "vectorised", **settings))
    assert captures
    assert None not in captures


class Waiting(torch.nn.Module):
    """Copies a constant to the GPU in each step, for which the host waits: no capture allows that."""

    def forward(self, x):
        return x.flatten(1) - torch.full((64,), 0.5).to(x.device)


def waiting(shape, classes):
    return torch.nn.Sequential(Waiting(), torch.nn.Linear(64, classes))


def test_a_step_that_cannot_be_captured(captures):
    settings = {"task": DIGITS | {"model": f"{__file__}:waiting"}}
    for _ in range(2):
        run = simulate(trial("cuda", engine="vectorised", **settings))
        assert distance(run, simulate(trial("cpu", engine="sequential", **settings))) < 1e-9
    assert captures
    assert all(capture is None for capture in captures)
    assert torch.cuda.current_stream() == torch.cuda.default_stream()
    assert torch.cuda.get_sync_debug_mode() == 0
    torch.cuda.empty_cache()
    assert torch.rand(1, device="cuda") < 1


@pytest.mark.parametrize("engine", ["sequential", "vectorised"])
def test_float32_is_float32(engine):
    exact = simulate(trial("cpu", task=CONVOLUTIONS)).server
    errors = {
        dtype: np.linalg.norm(simulate(trial("cuda", dtype, engine, task=CONVOLUTIONS)).server - exact)
        for dtype in ("float32", "tf32")
    }
    assert errors["float32"] < 1e-5 * np.linalg.norm(exact) < errors["tf32"]


@pytest.mark.parametrize(
    ("engine", "task"),
    [("sequential", CONVOLUTIONS), ("vectorised", CONVOLUTIONS), ("sequential", DROPOUT), ("auto", DROPOUT)],
)
def test_the_same_bits_again_and_after_an_interruption(engine, task, tmp_path):
    settings = {"task": task, "algorithm": "mifa"}
    once, again = (simulate(trial("cuda", "float32", engine, **settings)) for _ in range(2))
    rounds = iter(range(T))
    with pytest.raises(Interrupted):
        simulate(trial("cuda", "float32", engine, **settings), folder=tmp_path / "run", stop=lambda: next(rounds) == 4)
    torch.cuda.manual_seed_all(2)  # which dropout must not depend on
    resumed = simulate(trial("cuda", "float32", engine, **settings), folder=tmp_path / "run")
    for other in again, resumed:
        assert distance(once, other) == 0


def test_an_interrupted_run_goes_on_on_a_cpu(tmp_path):
    settings = {"task": CONVOLUTIONS, "algorithm": "fedpbc", "rounds": T}
    rounds = iter(range(T))
    with pytest.raises(Interrupted):
        simulate(trial("auto", **settings), folder=tmp_path / "run", stop=lambda: next(rounds) == 4)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("torch.cuda.is_available", lambda: False)
        resumed = simulate(trial("auto", **settings), folder=tmp_path / "run")
    assert distance(resumed, simulate(trial("cpu", **settings))) < 1e-9


@pytest.mark.parametrize("method", ["fedavg", "mifa", "scaffold", "fedpbc"])
def test_trials_side_by_side(method, tmp_path, captures):
    rates = [{"local": EIGHT | {"lr": lr}, "algorithm": method} for lr in (0.05, 0.1, 0.2)]
    jobs = [Job(trial("cuda", **settings), "side", tmp_path) for settings in rates]
    assert run_lockstep(jobs) == ({}, False)
    for job, settings in zip(jobs, rates, strict=True):
        alone = simulate(trial("cpu", **settings))
        assert distance(simulate(job.trial, folder=job.folder.path), alone) < 1e-9
        assert job.folder.status["device"] == "cuda"
    assert captures
    assert None not in captures
