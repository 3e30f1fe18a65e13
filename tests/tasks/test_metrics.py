"""Metrics over a split against scikit-learn on the whole split, and against hand arithmetic."""

import numpy as np
import pytest
import torch
import torchmetrics
from sklearn.metrics import f1_score, roc_auc_score

from rollcall.tasks.metrics import auroc, client_variance, f1, worst_10_accuracy

RNG = np.random.default_rng(3)
LABELS = RNG.choice(4, size=97, p=[0.5, 0.3, 0.15, 0.05])
LOGITS = torch.from_numpy(RNG.normal(size=(97, 4)) + 0.8 * np.eye(4)[LABELS])
PROBABILITIES, TARGETS = LOGITS.softmax(dim=1), torch.from_numpy(LABELS)
ONE_VS_REST = {"multi_class": "ovr", "labels": [0, 1, 2, 3]}


def over(metric, predictions, targets, sizes=(50, 3, 40, 4)):
    """The value after batches of these sizes."""
    for batch in zip(predictions.split(sizes), targets.split(sizes), strict=True):
        metric.update(*batch)
    return float(metric.compute())


def test_scores_over_uneven_batches():
    truth, guess = LABELS, PROBABILITIES.argmax(dim=1).numpy()
    area = over(auroc(), PROBABILITIES, TARGETS)
    assert area == pytest.approx(roc_auc_score(truth, PROBABILITIES.numpy(), average="macro", **ONE_VS_REST), rel=1e-6)
    whole = torchmetrics.AUROC("multiclass", num_classes=4, average="macro")(PROBABILITIES, TARGETS)
    assert area == pytest.approx(float(whole), rel=1e-6)
    parts = zip(PROBABILITIES.split([50, 47]), TARGETS.split([50, 47]), strict=True)
    assert area != pytest.approx(np.mean([over(auroc(), *part, len(part[1])) for part in parts]), rel=1e-5)
    assert over(f1(), PROBABILITIES, TARGETS) == pytest.approx(f1_score(truth, guess, average="macro"), rel=1e-6)


def test_only_classes_that_the_samples_have_are_averaged():
    """Class 2 is absent: the value is that of the three other columns."""
    rows = TARGETS != 2
    metric = auroc()
    value = over(metric, PROBABILITIES[rows], TARGETS[rows], int(rows.sum()))
    areas = [roc_auc_score(LABELS[rows] == c, PROBABILITIES[rows, c].numpy()) for c in (0, 1, 3)]
    assert value == pytest.approx(np.mean(areas), rel=1e-6)
    assert metric.per_class()[[0, 1, 3]].tolist() == pytest.approx(areas, rel=1e-6)
    assert metric.per_class()[2].isnan()
    metric.reset()
    metric.update(PROBABILITIES[:5], torch.zeros(5, dtype=torch.int64))
    assert metric.compute().isnan()  # no area without a second class


def test_probabilities_of_one_class():
    positive = (TARGETS == 1).float()
    share = PROBABILITIES[:, 1:2]
    area = roc_auc_score(LABELS == 1, share[:, 0].numpy())
    assert over(auroc(), share, positive) == pytest.approx(area, rel=1e-6)
    expected = f1_score(LABELS == 1, share[:, 0].numpy() > 0.5)
    assert over(f1(), share[:, 0], positive) == pytest.approx(expected, rel=1e-6)


def test_statistics_over_clients():
    accuracies = np.array([0.9, 0.1, 0.5, 0.3, *[0.8] * 11])  # 10 % of 15 clients are 2
    assert worst_10_accuracy().statistic(accuracies) == pytest.approx((0.1 + 0.3) / 2)
    assert worst_10_accuracy().statistic(accuracies[:4]) == pytest.approx(0.1)
    assert client_variance().statistic(np.array([0.2, 0.4, 0.9])) == pytest.approx((0.09 + 0.01 + 0.16) / 3)
