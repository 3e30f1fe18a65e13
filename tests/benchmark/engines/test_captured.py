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


def captured(engine, capture=lambda function: function):
    engine.captured = Captured(engine._take, capture)
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
        captures = captured(work.engine).captures if capture else {}
        correct = torch.rand(4, len(x), dtype=x.dtype) if correct is None else correct
        scale = torch.tensor([1.0, 0.5, 2.0, 1.0], dtype=x.dtype)
        ends = [work.sgd(CLIENTS, x.expand(4, -1), scale=factor * scale, correct=correct) for factor in (1, 2, 3)]
        ends += [work.sgd(CLIENTS[:2], x.expand(2, -1) + shift) for shift in (1, 2)]
        results.append([*ends, *work.buffers(CLIENTS)])
        assert len(captures) >= capture
        assert None not in captures.values()
    assert all(map(torch.equal, *results))


def test_each_combination_of_shapes_has_a_capture():
    _, work, x = rigs()
    captures = captured(work.engine).captures
    for a in (2, 3, 2, 3):
        work.sgd(CLIENTS[:a], x.expand(a, -1))
    assert len(captures) == 2


def failing(function):
    raise RuntimeError("operation not permitted when stream is capturing")


@pytest.mark.parametrize("capture", [failing, lambda function: lambda: None], ids=["impossible", "other bits"])
def test_steps_that_cannot_be_captured_are_taken_as_they_are(capture):
    _, work, x = rigs()
    expected = work.sgd(CLIENTS, x.expand(4, -1))
    captures = captured(work.engine, capture).captures
    for _ in range(2):
        assert torch.equal(work.sgd(CLIENTS, x.expand(4, -1)), expected)
    assert [*captures.values()] == [None]
