"""The metrics of `evaluation.metrics` in a trial, against scikit-learn on the predictions of the final model."""

import numpy as np
import pytest
import torch
from sklearn.metrics import f1_score, roc_auc_score

from rollcall import SettingError, simulate
from rollcall.benchmark.config.trial import Trial
from rollcall.benchmark.federation.build import build
from rollcall.benchmark.federation.evaluation import Groups, Scores
from rollcall.tasks import ClientData, digits
from rollcall.tasks.metrics import METRICS
from rollcall.tasks.partitions import dirichlet

TRIAL = {
    "task": {"name": "digits", "clients": 6, "partition": {"name": "dirichlet", "alpha": 0.3}},
    "algorithm": "fedavg",
    "local": {"steps": 3, "lr": 0.1, "batch_size": 16},
    "rounds": 5,
    "evaluation": {"every": 5, "metrics": ["auroc", {"name": "f1", "average": "weighted"}, "f1", "worst_10_accuracy"]},
}
QUADRATIC = {"task": {"name": "quadratic", "targets": [[0.0], [1.0]]}, "algorithm": "fedavg", "rounds": 1}


def area(labels, probabilities):
    """One-vs-rest AUROC, averaged over the classes that the samples have."""
    return np.mean([roc_auc_score(labels == c, probabilities[:, c]) for c in np.unique(labels)])


def test_auroc_over_uneven_batches_is_that_of_the_whole_split(monkeypatch):
    """360 test samples in batches of 97, 97, 97, 69; pieces of 64 in each."""
    monkeypatch.setattr(ClientData, "__init__", batches_of(97, ClientData.__init__))
    trial = TRIAL | {"evaluation": TRIAL["evaluation"] | {"by": ["client", "class"]}}
    result = simulate(trial)
    row = result.history.iloc[-1]
    task, data = digits(0, clients=6, partition=lambda *supplied: dirichlet(*supplied, alpha=0.3))
    torch.nn.utils.vector_to_parameters(torch.from_numpy(result.model), task.parameters())
    probabilities, labels = (column.detach().numpy() for column in task.outputs(data.splits["test"]))
    assert row["test/auroc"] == pytest.approx(roc_auc_score(labels, probabilities, multi_class="ovr"), rel=1e-6)
    guesses = probabilities.argmax(axis=1)
    assert row["test/f1"] == pytest.approx(f1_score(labels, guesses, average="weighted"), rel=1e-6)
    assert row["test/f1#2"] == pytest.approx(f1_score(labels, guesses, average="macro"), rel=1e-6)
    assert row["test/auroc/class3"] == pytest.approx(roc_auc_score(labels == 3, probabilities[:, 3]), rel=1e-6)
    assert row["test/f1/class3"] == pytest.approx(f1_score(labels == 3, guesses == 3), rel=1e-6)
    probabilities, labels = (column.detach().numpy() for column in task.outputs(data.splits["train"]))
    areas = [area(labels[rows], probabilities[rows]) for rows in data.parts]
    assert [row[f"train/auroc/client{i}"] for i in range(6)] == pytest.approx(areas, rel=1e-6)
    assert row["train/auroc/per_client"] == pytest.approx(np.mean(areas), rel=1e-6)
    right = probabilities.argmax(axis=1) == labels
    assert row["train/worst_10_accuracy"] == pytest.approx(min(right[rows].mean() for rows in data.parts))
    assert "test/worst_10_accuracy" not in row  # no client owns test samples


def batches_of(size, init):
    def with_size(self, *arguments, **options):
        init(self, *arguments, **options, evaluation_batch=size)

    return with_size


def test_client_means_leave_out_clients_without_samples():
    """Client 1 holds out no sample: it has no value, and the mean is over the three others."""
    trial = {"task": {"name": "leaf_synthetic", "clients": 4}, "evaluation": {"metrics": ["f1"], "by": ["client"]}}
    federation = build(Trial.read(TRIAL | trial))
    owner = federation.data.owners["test"]
    kept = np.flatnonzero(owner != 1)
    groups = [Groups("test", ["a", "b", "c", "d"], torch.from_numpy(owner[kept]), "mean", by="client")]
    scores = Scores(federation.metrics.accumulated, ["test"], groups)
    predictions, labels = federation.model.task.outputs(
        tuple(column[kept] for column in federation.data.splits["test"])
    )
    scores.take("test", predictions, labels)
    values = scores.values()
    guesses, mine = predictions.argmax(dim=1).numpy(), [owner[kept] == client for client in (0, 2, 3)]
    expected = [f1_of_occurring(labels.numpy()[rows], guesses[rows]) for rows in mine]
    assert [values[f"test/f1/{name}"] for name in "acd"] == pytest.approx(expected, rel=1e-6)
    assert values["test/f1/mean"] == pytest.approx(np.mean(expected), rel=1e-6)
    assert "test/f1/b" not in values


def f1_of_occurring(labels, guesses):
    return f1_score(labels, guesses, labels=np.unique(labels), average="macro")


def test_a_chosen_metric_replaces_that_of_the_task():
    trial = {"task": "breast_cancer", "evaluation": {"metrics": [{"name": "auroc", "average": "weighted"}, "f1"]}}
    federation = build(Trial.read(TRIAL | trial))
    assert {name: metric.average for name, metric in federation.metrics.accumulated.items()} == {
        "auroc": "weighted",
        "f1": "macro",
    }


def test_a_client_that_is_not_listed_serves_statistics_only():
    row = simulate(TRIAL | {"rounds": 1}).history.iloc[-1]
    assert 0 <= row["train/worst_10_accuracy"] < row["train/accuracy"]
    assert not [name for name in row.index if "client" in name]


def test_undefined_values_are_left_out():
    """Client a has both classes, b has one, c has one sample, d none."""
    of = torch.tensor([0, 0, 0, 1, 1, 2])
    scores = Scores(
        {"auroc": METRICS["auroc"](), "r2": METRICS["r2"]()}, ["test"], [Groups("test", list("abcd"), of, "mean")]
    )
    chances, labels = torch.tensor([0.9, 0.4, 0.6, 0.1, 0.2, 0.3]), torch.tensor([1.0, 0.0, 1.0, 0.0, 0.0, 1.0])
    scores.take("test", chances[:4], labels[:4])
    scores.take("test", chances[4:], labels[4:])
    values = scores.values()
    assert values["test/auroc"] == pytest.approx(roc_auc_score(labels, chances))
    assert values["test/auroc/a"] == values["test/auroc/mean"] == 1.0
    assert not {"test/auroc/b", "test/auroc/c", "test/auroc/d", "test/r2/c", "test/r2/d"} & values.keys()


def test_metrics_that_a_task_does_not_allow():
    with pytest.raises(SettingError, match=r"evaluation\.metrics: auroc needs predictions, which this task does not"):
        build(Trial.read(QUADRATIC | {"evaluation": {"metrics": ["auroc"]}}))
    for task, metric in (("diabetes", "auroc"), ("breast_cancer", "mae")):
        with pytest.raises(SettingError, match=rf"evaluation\.metrics: {metric} cannot be computed from predictions"):
            build(Trial.read(TRIAL | {"task": task, "evaluation": {"metrics": [metric]}}))
    with pytest.raises(SettingError, match=r"evaluation\.metrics: client_variance needs the accuracy of each sample"):
        build(Trial.read(QUADRATIC | {"evaluation": {"metrics": ["client_variance"]}}))
    with pytest.raises(SettingError, match=r"evaluation\.metrics: a statistic over clients needs a split"):
        build(Trial.read(TRIAL | {"evaluation": {"splits": ["test"], "metrics": ["worst_10_accuracy"]}}))
    with pytest.raises(SettingError, match=r"evaluation\.metrics.*'auc' is not allowed; must be one of auroc"):
        Trial.read(TRIAL | {"evaluation": {"metrics": ["auc"]}})
