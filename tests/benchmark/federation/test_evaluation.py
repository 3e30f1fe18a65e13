"""Evaluations: when, means over splits and groups, and metrics; against sums written out and scikit-learn."""

from functools import partialmethod

import numpy as np
import pytest
import torch
from sklearn.metrics import f1_score, roc_auc_score

from rollcall import SettingError, simulate
from rollcall.benchmark.config.trial import Evaluation
from rollcall.benchmark.federation.evaluation import Groups, Tally, group, is_often
from rollcall.tasks import ClientData, digits
from rollcall.tasks.partitions import dirichlet


def test_means_over_uneven_batches_and_groups():
    """Five samples in batches of 3 and 2; group b is met in both, c in neither."""
    of = torch.tensor([0, 1, 1, 0, 1])
    tally = Tally({"test": 5, "train": 1}, [Groups("test", ["a", "b", "c"], of, by="client")])
    tally.take("test", 0, 3, {"loss": torch.tensor([1.0, 2.0, 4.0]), "distance": torch.tensor(7.0)})
    tally.take("test", 3, 2, {"loss": torch.tensor([10.0, 30.0]), "distance": torch.tensor(7.0)})
    tally.take("train", 0, 1, {"loss": torch.tensor([5.0])})
    groups = {"test/loss/a": 11 / 2, "test/loss/b": 36 / 3, "test/loss/per_client": (11 / 2 + 12) / 2}
    assert tally.means() == pytest.approx({"test/loss": 47 / 5, "test/distance": 7.0, "train/loss": 5.0} | groups)


DATA = ClientData(
    {"train": (torch.zeros(6, 1), torch.tensor([0, 1, 1, 2, 0, 2])), "test": (torch.zeros(2, 1), torch.tensor([2, 0]))},
    [np.array([4, 0]), np.array([1]), np.array([5, 2, 3])],
    owners={"test": np.array([1, 1])},
    classes=np.full((3, 3), 1 / 3),
)


def test_groups():
    assert group("class", "test", DATA, None).of.tolist() == [2, 0]
    assert group("client", "train", DATA, None).of.tolist() == [0, 1, 2, 2, 0, 2]
    assert group("client", "test", DATA, None).of.tolist() == [1, 1]
    by = group("availability", "train", DATA, np.array([0.9, 0.2, 0.6]))  # 0.57 on average
    assert by.names == ["rare", "often"]
    assert by.of.tolist() == [1, 0, 1, 1, 1, 1]
    assert group("client", "validation", DATA, None) is None
    with pytest.raises(ValueError, match=r"by: 'availability' is not allowed"):
        group("availability", "train", DATA, None)


def test_who_is_often_there():
    assert is_often(np.array([0.02, 0.02, 0.02, 0.5])).tolist() == [False, False, False, True]
    assert is_often(np.array([0.1, 0.9, 0.9, 0.9])).tolist() == [False, True, True, True]
    assert np.full(3, 0.1).mean() > 0.1  # the mean of equal numbers rounds
    assert is_often(np.full(3, 0.1)).all()


TRIAL = {
    "task": {"name": "digits", "clients": 6, "partition": {"name": "dirichlet", "alpha": 0.3}},
    "algorithm": "fedavg",
    "local": {"steps": 3, "lr": 0.1, "batch_size": 16},
}


def test_a_trial_by_class_client_and_availability():
    trial = TRIAL | {"participation": {"name": "bernoulli", "probability": [0.9, 0.1, 0.8, 0.2, 0.7, 0.3]}}
    by = {"every": 20, "by": ["class", "client", "availability"]}
    found = simulate(trial | {"rounds": 20, "evaluation": by})
    row = found.history.iloc[-1]
    task, data = digits(0, clients=6, partition=lambda *given: dirichlet(*given, alpha=0.3))
    torch.nn.utils.vector_to_parameters(torch.from_numpy(found.model), task.parameters())
    pixels, labels = data.splits["test"]
    right = (task(pixels).argmax(dim=1) == labels).numpy()
    for c in range(10):
        assert row[f"test/accuracy/class{c}"] == pytest.approx(right[labels == c].mean())
    pixels, labels = data.splits["train"]
    right = (task(pixels).argmax(dim=1) == labels).numpy()
    by_client = [right[rows].mean() for rows in data.parts]
    assert [row[f"train/accuracy/client{i}"] for i in range(6)] == pytest.approx(by_client)
    assert row["train/accuracy/per_client"] == pytest.approx(np.mean(by_client))
    rare = np.concatenate([data.parts[i] for i in (1, 3, 5)])
    assert row["train/accuracy/rare"] == pytest.approx(right[rare].mean())
    assert row["train/accuracy"] == pytest.approx(right.mean())
    assert len({row["train/accuracy/rare"], row["train/accuracy/often"], row["train/accuracy"]}) == 3
    assert not any(name.startswith("test/accuracy/client") for name in row.index)


@pytest.mark.parametrize("by", ["client", "availability"])
def test_groups_of_samples_that_belong_to_nobody_are_refused(by):
    trial = TRIAL | {"participation": {"name": "bernoulli", "probability": 0.5}, "rounds": 1}
    with pytest.raises(
        SettingError, match=rf"^evaluation\.by: {by} is not allowed with the splits test, whose .*add train"
    ):
        simulate(trial | {"evaluation": {"by": ["class", by], "splits": ["test"]}})
    last = {"by": [by], "splits": ["test"], "last": {"rounds": 1, "every": 1, "splits": ["train"]}}
    assert any(name.startswith("train/accuracy/") for name in simulate(trial | {"evaluation": last}).history)


def test_evaluations_are_where_the_table_looks():
    for every, last, at, rounds in (
        (20, (30, 4), (), 107),
        (7, None, (), 50),
        (200, (100, 10), (), 300),
        (5, (500, 3), (), 31),
        (9, (9, 9), (), 9),
        (10, None, (3, 20, 3, 34, 60), 50),
        (20, (30, 4), (7, 80, 81, 107, 200), 107),
    ):
        given = {"every": every, "last": last and {"rounds": last[0], "every": last[1], "splits": ["test"]}, "at": at}
        evaluation = Evaluation.model_validate(given)
        expected = {0, rounds, *range(0, rounds, every), *(t for t in at if t < rounds)}
        if last:
            expected |= {t for t in range(rounds) if t > rounds - last[0] and t % last[1] == 0}
        assert {t for t in range(rounds + 1) if evaluation.due(t, rounds)} == expected
        among = {t for t in expected if last and t > max(0, rounds - last[0])}
        assert {t for t in expected if evaluation.splits_at(t, rounds) == ("test",)} == among


def test_metrics_over_uneven_batches_are_those_of_the_whole_split(monkeypatch):
    """360 test samples in batches of 97, 97, 97, 69; pieces of 64 in each."""
    monkeypatch.setattr(ClientData, "__init__", partialmethod(ClientData.__init__, evaluation_batch=97))
    by = {"every": 5, "metrics": ["auroc", "f1", "worst_10_accuracy"], "by": ["client", "class"]}
    result = simulate(TRIAL | {"rounds": 5, "evaluation": by})
    row = result.history.iloc[-1]
    task, data = digits(0, clients=6, partition=lambda *supplied: dirichlet(*supplied, alpha=0.3))
    torch.nn.utils.vector_to_parameters(torch.from_numpy(result.model), task.parameters())
    probabilities, labels = (column.detach().numpy() for column in task.outputs(data.splits["test"]))
    assert row["test/auroc"] == pytest.approx(roc_auc_score(labels, probabilities, multi_class="ovr"), rel=1e-6)
    guesses = probabilities.argmax(axis=1)
    assert row["test/f1"] == pytest.approx(f1_score(labels, guesses, average="macro"), rel=1e-6)
    assert row["test/auroc/class3"] == pytest.approx(roc_auc_score(labels == 3, probabilities[:, 3]), rel=1e-6)
    assert row["test/f1/class3"] == pytest.approx(f1_score(labels == 3, guesses == 3), rel=1e-6)
    probabilities, labels = (column.detach().numpy() for column in task.outputs(data.splits["train"]))
    right = probabilities.argmax(axis=1) == labels
    assert row["train/worst_10_accuracy"] == pytest.approx(min(right[rows].mean() for rows in data.parts))
    assert "test/worst_10_accuracy" not in row  # no client owns test samples
