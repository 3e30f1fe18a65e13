"""The methods, one file each, read beside their papers. They know nothing of data, Lightning or schedules."""

from typing import Any

from algorithms.adafed import AdaFed
from algorithms.amplified_fedavg import AmplifiedFedAvg
from algorithms.base import (
    KNOWLEDGE,
    Algorithm,
    LocalWork,
    Memoryless,
    Nothing,
    Properties,
    Round,
    Setting,
    Traffic,
    local_steps,
)
from algorithms.ca_fed import CAFed
from algorithms.f3ast import F3AST
from algorithms.fedau import FedAU
from algorithms.fedavg import FedAvg
from algorithms.fedavg_all import FedAvgAll
from algorithms.fedavg_debiased import FedAvgDebiased
from algorithms.fedavg_known import FedAvgKnown
from algorithms.fedavgm import FedAvgM
from algorithms.fedawe import FedAWE
from algorithms.feddyn import FedDyn
from algorithms.fednova import FedNova
from algorithms.fedopt import FedAdam, FedYogi
from algorithms.fedpbc import FedPBC
from algorithms.fedprox import FedProx
from algorithms.fedsgd import FedSGD
from algorithms.fedsgd_iw import FedSGDIW
from algorithms.fedvarp import FedVARP
from algorithms.focus import Focus
from algorithms.local_sgd import LocalSGD
from algorithms.mifa import MIFA
from algorithms.more_available import MoreAvailable
from algorithms.rows import Rows
from algorithms.scaffnew import Scaffnew
from algorithms.scaffold import Scaffold
from algorithms.unbiased import Unbiased

ALGORITHMS: dict[str, type[Algorithm[Any]]] = {
    "local_sgd": LocalSGD,
    "fedavg": FedAvg,
    "fedavg_all": FedAvgAll,
    "fedavg_known": FedAvgKnown,
    "fedsgd": FedSGD,
    "fedsgd_iw": FedSGDIW,
    "fedavg_debiased": FedAvgDebiased,
    "unbiased": Unbiased,
    "adafed": AdaFed,
    "more_available": MoreAvailable,
    "fedau": FedAU,
    "f3ast": F3AST,
    "fedprox": FedProx,
    "mifa": MIFA,
    "fedvarp": FedVARP,
    "scaffold": Scaffold,
    "scaffnew": Scaffnew,
    "fedpbc": FedPBC,
    "fedawe": FedAWE,
    "focus": Focus,
    "ca_fed": CAFed,
    "feddyn": FedDyn,
    "fednova": FedNova,
    "amplified_fedavg": AmplifiedFedAvg,
    "fedavgm": FedAvgM,
    "fedadam": FedAdam,
    "fedyogi": FedYogi,
}

__all__ = [
    "ALGORITHMS",
    "F3AST",
    "KNOWLEDGE",
    "MIFA",
    "AdaFed",
    "Algorithm",
    "AmplifiedFedAvg",
    "CAFed",
    "FedAU",
    "FedAWE",
    "FedAdam",
    "FedAvg",
    "FedAvgAll",
    "FedAvgDebiased",
    "FedAvgKnown",
    "FedAvgM",
    "FedDyn",
    "FedNova",
    "FedPBC",
    "FedProx",
    "FedSGD",
    "FedSGDIW",
    "FedVARP",
    "FedYogi",
    "Focus",
    "LocalSGD",
    "LocalWork",
    "Memoryless",
    "MoreAvailable",
    "Nothing",
    "Properties",
    "Round",
    "Rows",
    "Scaffnew",
    "Scaffold",
    "Setting",
    "Traffic",
    "Unbiased",
    "local_steps",
]
