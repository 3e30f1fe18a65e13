"""Properties of losses, against losses whose properties are known."""

from engine_rigs import Normalising, Standardising

from rollcall.benchmark.engines.loss import Loss, activation_bytes, is_mean_of_samples
from rollcall.tasks import digits
from rollcall.tasks.models import mlp


def test_what_a_loss_depends_on_is_found_out():
    task, data = digits(0, clients=2)
    samples = tuple(column[:8] for column in data.splits["train"])
    assert is_mean_of_samples(Loss(task), samples)
    assert is_mean_of_samples(Loss(task.double()), samples)
    assert not is_mean_of_samples(Loss(Standardising(task)), samples)
    assert not is_mean_of_samples(Loss(Normalising(task)), samples)


def test_activations_of_two_layers():
    task, data = digits(0, clients=2, model=lambda shape, classes: mlp(shape, classes, hidden=[5]))
    samples = tuple(column[:8] for column in data.splits["train"])
    # The first layer's input, the second's, the logarithm of the softmax, the label, and one number of the batch;
    # not the second layer's weights, which are nobody's sample.
    assert activation_bytes(Loss(task), samples) == 4 * 64 + 4 * 5 + 4 * 10 + 8 + 4 // 8
