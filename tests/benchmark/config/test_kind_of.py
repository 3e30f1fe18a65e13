"""The kind of a part, seen from what it is: one part of each sort."""

import re

import pytest

from benchmark import SettingError
from benchmark.config.kind_of import Seen, kind_of

PARTS = """
import numpy as np
import pandas as pd
import torch
import torchmetrics
from torch import nn

from algorithms import FedAvg
from participation import Participation
from tasks import ClientData, Task

class Method(FedAvg): ...
class RollCall(Participation): ...
class Duck:
    def active(self, t): ...
class Network(nn.Module): ...
class Kappa(torchmetrics.CohenKappa): ...
class Count:
    def update(self, predictions, targets): ...
    def compute(self): ...
    def reset(self): ...
class Steps(torch.optim.SGD): ...
class Blur:
    def __init__(self, seed): ...
class Other: ...
class WithoutBase:
    def init(self, x, clients): ...
    def round(self, state, x, call, work): ...
class Problem(Task): ...

def network(shape, classes, width=3): ...
def parts(labels, clients, seed): ...
def source(population, low=0.1): ...
def roll_call(population) -> Participation: ...
def lottery(t, rng): ...
def decay(t, rate=0.1): ...
def season(p, t): ...
def optimizer(params, lr): ...
def task(seed): ...
def annotated_task(seed, clients=3) -> tuple[Task, ClientData]: ...
def table(seed) -> pd.DataFrame: ...
def score() -> torchmetrics.Metric: ...
def anything(*values): ...
def renamed(labels, n_clients, seed): ...

mask = np.ones((4, 3), bool)
vector = np.ones(3)
duck, kappa, count, net = Duck(), Kappa("multiclass", num_classes=3), Count(), nn.Linear(2, 2)
"""
KINDS = {
    "algorithm": ["Method", "WithoutBase"],
    "participation": ["RollCall", "Duck", "duck", "roll_call", "lottery", "mask"],
    "model": ["Network", "net", "network"],
    "metric": ["Kappa", "kappa", "Count", "count", "score"],
    "server_optimizer": ["Steps", "optimizer"],
    "augmentation": ["Blur"],
    "partition": ["parts"],
    "probability": ["source"],
    "schedule": ["decay"],
    "variation": ["season"],
    "task": ["task", "annotated_task", "Problem"],
    "analysis": ["table"],
}


@pytest.fixture
def file(tmp_path):
    (tmp_path / "parts.py").write_text(PARTS)
    return tmp_path / "parts.py"


def test_each_part_is_of_its_kind(file):
    seen = {kind: [name for name in names if kind_of(f"{file}:{name}").kind == kind] for kind, names in KINDS.items()}
    assert seen == KINDS


def test_names_of_the_suite():
    names = ("mifa", "markov", "dirichlet", "auroc", "two_level", "crop_flip", "yogi", "uplink", "who_knows")
    assert [kind_of(name).kind for name in names] == [
        "algorithm",
        "participation",
        "partition",
        "metric",
        "probability",
        "augmentation",
        "server_optimizer",
        "analysis",
        "algorithm",  # an unknown name; reading it lists the methods
    ]


def test_what_tells_the_kind(file):
    """A base class tells it alone. Parameters are named, with the other kinds that have the same."""
    seen = [kind_of(f"{file}:{name}") for name in ("Method", "decay", "source", "task", "Blur", "lottery", "optimizer")]
    assert seen == [
        Seen("algorithm"),
        Seen("schedule", "t"),
        Seen("probability", "population", ("participation",)),
        Seen("task", "seed", ("augmentation", "analysis")),
        Seen("augmentation", "seed", ("task", "analysis")),
        Seen("participation", "t, rng"),
        Seen("server_optimizer", "params, lr"),
    ]


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("Other", "from its base class or its methods; say it with --kind. Classes are algorithm: a subclass of algo"),
        ("anything", "from its parameters (); say it with --kind. With as many parameters there are metric ()"),
        (
            "renamed",
            "from its parameters (labels, n_clients, seed); say it with --kind. With as many parameters there are "
            "partition (labels, clients, seed)",
        ),
        ("vector", "it is an array [3]; must be a class, a function, a mask [rounds, clients], or an instance"),
    ],
)
def test_what_has_no_kind_says_which_are_possible(name, message, file):
    with pytest.raises(SettingError, match=re.escape(message)):
        kind_of(f"{file}:{name}")
