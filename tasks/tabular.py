"""Tasks on tables of real data that scikit-learn ships."""

from functools import cache

import numpy as np
from torch import nn

from rollcall.tasks.base import ClientData
from rollcall.tasks.partitions import Partition, iid
from rollcall.tasks.supervised import Supervised, SupervisedTask, supervised


@cache
def _task(name: str) -> Supervised:
    """The linear model of a table, with a fixed fifth of the rows as the test split."""
    from sklearn import datasets
    from sklearn.model_selection import train_test_split

    table = getattr(datasets, f"load_{name}")()
    regression = name == "diabetes"
    train, test = train_test_split(
        np.arange(len(table.target)), test_size=0.2, stratify=None if regression else table.target, random_state=0
    )
    inputs, targets = _standard(table.data, train), table.target
    if regression:
        targets = _standard(targets, train)
    columns, outputs = int(inputs.shape[1]), 1 if regression else 2
    return supervised(
        (inputs[train], targets[train]),
        (inputs[test], targets[test]),
        lambda seed: nn.Linear(columns, outputs),
        metrics=["r2" if regression else "auroc"],
    )


def _standard(values: np.ndarray, train: np.ndarray) -> np.ndarray:
    """Columns with mean 0 and variance 1 on the training rows."""
    return (values - values[train].mean(axis=0)) / values[train].std(axis=0)


def diabetes(
    seed: int, *, clients: int = 10, partition: Partition = iid, validation: float = 0.0
) -> tuple[SupervisedTask, ClientData]:
    """Linear regression of the progress of diabetes on 10 measurements of 442 patients (Efron et al. 2004).

    Inputs and targets have mean 0 and variance 1 on the training split, 353 patients.

    Args:
        seed: of the partition, the initial model and the validation split.
        clients: m, the number of clients.
        partition: of the training samples among clients; not one by classes.
        validation: share of each client's training samples that is held out as the split `validation`, in [0, 1).
    """
    return _task("diabetes")(seed, clients=clients, partition=partition, validation=validation)


def breast_cancer(
    seed: int, *, clients: int = 10, partition: Partition = iid, validation: float = 0.0
) -> tuple[SupervisedTask, ClientData]:
    """Logistic regression on 30 features of 569 cell images, malignant (0) or benign (1) (Wolberg et al. 1995).

    Inputs have mean 0 and variance 1 on the training split, 455 images.

    Args:
        seed: of the partition, the initial model and the validation split.
        clients: m, the number of clients.
        partition: of the training samples among clients.
        validation: share of each client's training samples that is held out as the split `validation`, in [0, 1).
    """
    return _task("breast_cancer")(seed, clients=clients, partition=partition, validation=validation)
