"""Captured steps: tensors at fixed addresses, one capture for each combination of shapes.

On a CPU a function that calls another one stands for a CUDA graph. `test_gpu.py` tests the real one.
"""

import numpy as np
import pytest
import torch
from engine_rigs import WRAPS, rigs

from rollcall.algorithms import Rows
from rollcall.benchmark.engines import LocalTraining, recording
from rollcall.benchmark.engines.captured import Captured

CLIENTS = torch.tensor([5, 4, 3, 1])
KS = np.array([5, 5, 5, 2, 4, 5])


@pytest.fixture(autouse=True)
def soon(monkeypatch):
    monkeypatch.setattr(recording, "CALLS_BEFORE_RECORDING", 1)
    monkeypatch.setattr(recording, "RECORDINGS", {})


def captured(engine, capture=lambda function: function, memory=1e9):
    engine.captured = Captured(engine._take, memory, capture)
    return engine.captured


@pytest.mark.parametrize(
    ("wrap", "local", "batch_size"),
    [
        ("plain", {"steps": 5}, 16),
        ("plain", {"steps": KS}, 16),
        ("plain", {"steps": 5, "momentum": 0.9, "keep_momentum": True, "weight_decay": 0.1, "clip": 0.5}, 16),
        ("batchnorm", {"steps": KS}, 4),
        ("batchnorm", {"steps": 5, "momentum": 0.9}, 16),  # client 1 has shorter minibatches
    ],
)
def test_captured_steps_are_the_steps_themselves(wrap, local, batch_size):
    momentum = Rows.begin(rigs()[2] * 0, 6) if "keep_momentum" in local else None
    results, correct = [], None
    for capture in (False, True):
        _, work, x = rigs(batch_size, LocalTraining(**local), WRAPS[wrap], momentum)
        launches = captured(work.engine).launches if capture else {}
        correct = torch.rand(4, len(x), dtype=x.dtype) if correct is None else correct
        scale = torch.tensor([1.0, 0.5, 2.0, 1.0], dtype=x.dtype)
        ends = [work.sgd(CLIENTS, x.expand(4, -1), scale=factor * scale, correct=correct) for factor in (1, 2, 3)]
        ends += [work.sgd(CLIENTS[:2], x.expand(2, -1) + shift) for shift in (1, 2)]
        results.append([*ends, *work.buffers(CLIENTS)])
        if capture:
            assert launches
        assert None not in launches.values()
    assert all(map(torch.equal, *results))


def test_each_combination_of_shapes_has_a_capture():
    _, work, x = rigs()
    launches = captured(work.engine).launches
    for a in (2, 3, 2, 3):
        work.sgd(CLIENTS[:a], x.expand(a, -1))
    assert len(launches) == 2


def failing(function):
    raise RuntimeError("operation not permitted when stream is capturing")


@pytest.mark.parametrize(
    ("capture", "memory"),
    [(failing, 1e9), (lambda function: lambda: None, 1e9), (lambda function: function, 1e3)],
    ids=["impossible", "other bits", "too little memory"],
)
def test_steps_that_cannot_be_captured_are_taken_as_they_are(capture, memory):
    _, work, x = rigs()
    expected = work.sgd(CLIENTS, x.expand(4, -1))
    captures = captured(work.engine, capture, memory)
    for _ in range(2):
        assert torch.equal(work.sgd(CLIENTS, x.expand(4, -1)), expected)
    assert [*captures.launches.values()] == [None]
    assert captures.memory == (0 if memory == 1e9 else memory)  # after a failure nothing more is captured


def test_captures_stay_within_their_memory():
    _, work, x = rigs()
    of_two = 2 * x.nbytes + 16 + 2 * 16 * (64 * 8 + 8)  # models, rates and minibatches of digits
    launches = captured(work.engine, memory=1.9 * of_two).launches
    for a in (2, 2, 3, 3, 2):
        work.sgd(CLIENTS[:a], x.expand(a, -1))
    assert [launch is None for launch in launches.values()] == [False, True]


def test_steps_of_models_that_diverged_are_not_captured():
    _, work, x = rigs()
    captures = captured(work.engine)
    for start in (x, x * torch.nan):
        work.sgd(CLIENTS, start.expand(4, -1))
    assert [*captures.launches.values()] == [None]
    work.sgd(CLIENTS[:2], x.expand(2, -1))
    work.sgd(CLIENTS[:2], x.expand(2, -1))
    assert None not in [*captures.launches.values()][1:]
