"""`--gpus-per-trial auto`: against hand arithmetic, with a GPU of a size that the test chooses."""

from types import SimpleNamespace

import pytest
import torch

from benchmark import Trial
from benchmark.sweep.gpu_share import CONTEXT, automatic, gpu_memory, of_card

GIB = 2**30
SAMPLES, FEATURES, CLASSES, CLIENTS = 1797, 64, 10, 10
D = FEATURES * CLASSES + CLASSES


def trial(algorithm="fedavg", probability=1.0, **changes):
    return Trial.read(
        {
            "task": {"name": "digits", "clients": CLIENTS, "model": "linear"},
            "participation": {"name": "bernoulli", "probability": probability},
            "local": {"steps": 2, "batch_size": 16},
            "algorithm": algorithm,
            "rounds": 10,
        }
        | changes
    )


@pytest.mark.parametrize(
    ("needed", "card", "share"),
    [
        (8, 80, 1 / 8),  # 10 GiB with the margin
        (6, 80, 1 / 10),  # 7.5 GiB with the margin: 10.7 fit
        (33, 80, 1),  # 41 GiB with the margin
        (500, 80, 1),  # too large for the card: the engine computes fewer clients at once
    ],
)
def test_the_share_is_that_of_the_trials_that_fit(needed, card, share):
    assert of_card(needed * GIB, card * GIB)[0] == share


def test_the_sentence_names_both_sizes():
    assert of_card(8 * GIB, 80 * GIB)[1] == (
        "gpus-per-trial auto: 0.125. The largest trial needs about 8.0 GiB, a GPU has 80.0 GiB: 8 at once on each GPU"
    )


def test_without_a_gpu_the_share_is_0_in_words(monkeypatch):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    assert automatic([trial()]) == (0.0, "gpus-per-trial auto: this machine has no GPU; trials run on the CPU")


def test_a_stateful_method_takes_two_more_states():
    # In the last state and in the next one: a row for each client, one for all others, and the place of each row.
    places = CLIENTS * 8
    assert gpu_memory(trial("mifa")) - gpu_memory(trial()) == 2 * ((CLIENTS + 1) * D * 4 + places)
    on_host = {"numerics": {"client_memory": "host"}}
    assert gpu_memory(trial("mifa", **on_host)) - gpu_memory(trial(**on_host)) == 2 * places


def test_memory_grows_with_the_active_clients_and_their_samples():
    def client(**local):
        """Ten clients against one."""
        setting = {"local": {"steps": 2, "batch_size": 16} | local}
        one = {"task": {"name": "digits", "clients": 1, "model": "linear"}}
        return gpu_memory(trial(**setting)) - gpu_memory(trial(**setting | one))

    assert gpu_memory(trial()) > CONTEXT + SAMPLES * (FEATURES + 8) + CLIENTS * 4 * D * 4
    # 16 copies of a sample of 64 bytes and its label, for each of two more steps.
    assert client(steps=4) - client() == 9 * 16 * 2 * 16 * (FEATURES + 8)
    assert client(batch_size=32) > client()
    assert gpu_memory(trial(probability=0.1)) < gpu_memory(trial())


def test_the_largest_trial_of_a_sweep_decides(monkeypatch):
    small, large = gpu_memory(trial()), gpu_memory(trial("mifa"))
    assert large > small
    size = int(1.25 * 4 * small) + 4  # four of the small trials fit, three of the large ones
    card = SimpleNamespace(
        is_available=lambda: True, get_device_properties=lambda _: SimpleNamespace(total_memory=size)
    )
    monkeypatch.setattr("benchmark.sweep.gpu_share.torch", SimpleNamespace(cuda=card))
    assert automatic([trial(), trial(seed=1)])[0] == 1 / 4
    assert automatic([trial(), trial("mifa")])[0] == 1 / 3
