"""Properties of losses, against losses whose properties are known."""

import gc

import torch
from engine_rigs import Normalising, Standardising

from rollcall.benchmark.engines import FlatTask
from rollcall.benchmark.engines.loss import Loss, activation_bytes, is_mean_of_samples
from rollcall.tasks import Task, digits


def test_what_a_loss_depends_on_is_found_out():
    task, data = digits(0, clients=2)
    samples = tuple(column[:8] for column in data.splits["train"])
    for wrap, expected in (
        (lambda task: task, True),
        (Task.double, True),
        (Standardising, False),
        (Normalising, False),
    ):
        names = FlatTask(wrap(task)).parameter_names
        assert is_mean_of_samples(Loss(wrap(task)), names, samples) == expected
        assert is_mean_of_samples(Loss(wrap(task)), names[:1], samples) == expected


def test_what_a_forward_pass_saves_is_counted_and_freed():
    """A graph that saves an output of its own, as log-softmax does, holds it for ever.

    Of a sample: 64 pixels, 64 hidden units and 10 logarithms in float32, and the label as an int64.
    """
    task, data = digits(0, clients=2)
    loss = Loss(task)

    def tensors():
        gc.collect()
        return sum(issubclass(type(item), torch.Tensor) for item in gc.get_objects())

    before = tensors()
    for size in (8, 16):
        samples = tuple(column[:size] for column in data.splits["train"])
        assert activation_bytes(loss, samples) == 4 * (64 + 64 + 10) + 8
    del samples
    assert tensors() == before
