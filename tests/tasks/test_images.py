"""Image tasks: pixels, ridge, some labels alone, and a plain Trainer."""

from functools import partial

import numpy as np
import pytest
import torch
from keys import keyed
from lightning.pytorch import Trainer
from runs import TRAINER
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split
from torch import nn

from rollcall.benchmark.federation.simulation import quiet
from rollcall.tasks import digits
from rollcall.tasks.partitions import dirichlet


def test_digits_are_those_of_scikit_learn():
    task, data = digits(0, clients=5)
    (train, train_labels), (test, test_labels) = data.splits["train"], data.splits["test"]
    assert train.shape == (1437, 1, 8, 8)
    assert test.shape == (360, 1, 8, 8)
    assert train.dtype == torch.uint8
    pixels = np.rint(torch.cat([train, test]).flatten(1).numpy() / 255 * 16).astype(int)
    labels = torch.cat([train_labels, test_labels]).numpy()
    genuine = load_digits()
    theirs = train_test_split(
        np.column_stack([genuine.target, genuine.data]), test_size=0.2, random_state=0, stratify=genuine.target
    )
    assert np.array_equal(np.column_stack([labels, pixels]), np.concatenate(theirs))
    normalised = task.normalised(torch.cat([train, test]))
    assert normalised.mean().item() == pytest.approx(0, abs=0.0002)
    assert normalised.std().item() == pytest.approx(0.3759 / 0.3762, abs=0.0002)  # 0.3760 before the pixels are rounded


def test_held_out_samples_follow_the_key_and_leave_the_training_samples():
    _, whole = digits(3, clients=4)
    _, data = digits(3, clients=4, validation=0.25, partition=partial(dirichlet, alpha=0.5))
    held_out = np.sort(keyed(3, "validation").permutation(1437)[:359])
    for split, rows in (("validation", held_out), ("train", np.delete(np.arange(1437), held_out))):
        for column, expected in zip(data.splits[split], whole.splits["train"], strict=True):
            assert torch.equal(column, expected[rows])
    labels = data.splits["train"][1].numpy()
    assert data.histogram.tolist() == [[(labels[rows] == c).sum() for c in range(10)] for rows in data.parts]


def test_ridge_is_weight_decay_on_all_parameters():
    plain, data = digits(0, clients=2)
    task, _ = digits(0, clients=2, ridge=0.3)
    batch = tuple(column[:20] for column in data.splits["train"])
    steps = []
    for one, decay in ((task, 0.0), (plain, 0.3)):
        optimizer = torch.optim.SGD(one.parameters(), lr=0.1, weight_decay=decay)
        one.loss(batch).backward()
        optimizer.step()
        steps.append(nn.utils.parameters_to_vector(one.parameters()))
    assert torch.allclose(*steps, atol=1e-6)
    task, plain = digits(0, clients=2, ridge=0.3)[0], digits(0, clients=2)[0]
    squares = sum(float((p.detach().double() ** 2).sum()) for p in plain.parameters())
    for value in ("loss", "accuracy"):
        extra = 0.15 * squares if value == "loss" else 0
        more = task.metrics(batch)[value] - plain.metrics(batch)[value]
        assert more.tolist() == pytest.approx([extra] * len(more), rel=1e-4)


def test_some_labels_alone_are_kept_and_renamed():
    _, whole = digits(0, clients=2)
    _, data = digits(0, clients=2, labels=[7, 0, 3])
    for split in ("train", "test"):
        pixels, labels = whole.splits[split]
        kept, renamed = data.splits[split]
        rows = [row for row, label in enumerate(labels.tolist()) if label in (7, 0, 3)]
        assert torch.equal(kept, pixels[rows])
        assert renamed.tolist() == [{7: 0, 0: 1, 3: 2}[label] for label in labels[rows].tolist()]
    assert data.histogram.shape == (2, 3)
    _, split = digits(0, clients=2, labels=[7, 0, 3], validation=0.5)
    assert sum(len(split.splits[name][0]) for name in ("train", "validation")) == len(data.splits["train"][0])
    assert split.splits["validation"][1].unique().tolist() == [0, 1, 2]
    with pytest.raises(ValueError, match=r"^labels: \[1, 10\] is not allowed; must be different labels"):
        digits(0, clients=2, labels=[1, 10])


def test_a_plain_trainer_trains_digits_centrally():
    task, data = digits(0, clients=20)
    with quiet():
        trainer = Trainer(max_epochs=12, enable_model_summary=False, **TRAINER)
        trainer.fit(task, data)
        (result,) = trainer.test(task, data, verbose=False)
    assert result["test/accuracy"] > 0.95


def test_the_held_out_share_is_rounded():
    data = digits(0, clients=5, validation=0.15)[1]
    n = len(digits(0, clients=5)[1].splits["train"][0])
    assert len(data.splits["validation"][0]) == round(0.15 * n) == int(0.15 * n) + 1
