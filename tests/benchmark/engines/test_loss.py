"""Properties of losses, against losses whose properties are known."""

from engine_rigs import Normalising, Standardising

from rollcall.benchmark.engines import FlatTask
from rollcall.benchmark.engines.loss import Loss, is_mean_of_samples
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
