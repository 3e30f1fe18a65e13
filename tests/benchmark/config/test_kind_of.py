"""The kind of a part, seen from its name or its base class: one part of each sort."""

import pytest

from rollcall import SettingError
from rollcall.benchmark.config.choice import kind_of

PARTS = """
import numpy as np
import pandas as pd
import torch
import torchmetrics
from torch import nn

from rollcall.algorithms import FedAvg
from rollcall.participation import Participation
from rollcall.tasks import Task

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
class Other: ...
class WithoutBase:
    def init(self, x, clients): ...
    def round(self, state, x, call, work): ...
class Problem(Task): ...

def network(shape, classes, width=3): ...
def table(seed) -> pd.DataFrame: ...

mask = np.ones((4, 3), bool)
vector = np.ones(3)
duck, kappa, count, net = Duck(), Kappa("multiclass", num_classes=3), Count(), nn.Linear(2, 2)
"""
KINDS = {
    "algorithm": ["Method"],
    "participation": ["RollCall", "Duck", "duck", "mask"],
    "model": ["Network", "net"],
    "metric": ["Kappa", "kappa", "Count", "count"],
    "server_optimizer": ["Steps"],
    "task": ["Problem"],
}
UNCLEAR = ["Other", "WithoutBase", "network", "table", "vector"]


def test_each_part_is_of_its_kind(tmp_path):
    (tmp_path / "parts.py").write_text(PARTS)
    seen = {
        kind: [name for name in names if kind_of(f"{tmp_path}/parts.py:{name}") == kind]
        for kind, names in KINDS.items()
    }
    assert seen == KINDS
    for name in UNCLEAR:
        with pytest.raises(SettingError, match=r"not clear from a base class; say it with --kind \(task, model"):
            kind_of(f"{tmp_path}/parts.py:{name}")
