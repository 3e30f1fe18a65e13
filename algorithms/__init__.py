"""The methods, one file each, read beside their papers. They know nothing of data, Lightning or schedules."""

from typing import Any

from rollcall.algorithms.adafed import AdaFed
from rollcall.algorithms.amplified_fedavg import AmplifiedFedAvg
from rollcall.algorithms.amplified_scaffold import AmplifiedScaffold
from rollcall.algorithms.base import (
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
from rollcall.algorithms.ca_fed import CAFed
from rollcall.algorithms.f3ast import F3AST
from rollcall.algorithms.fedau import FedAU
from rollcall.algorithms.fedavg import FedAvg
from rollcall.algorithms.fedavg_all import FedAvgAll
from rollcall.algorithms.fedavg_debiased import FedAvgDebiased
from rollcall.algorithms.fedavg_known import FedAvgKnown
from rollcall.algorithms.fedavgm import FedAvgM
from rollcall.algorithms.fedawe import FedAWE
from rollcall.algorithms.feddyn import FedDyn
from rollcall.algorithms.fednova import FedNova
from rollcall.algorithms.fedopt import FedAdam, FedYogi
from rollcall.algorithms.fedpbc import FedPBC
from rollcall.algorithms.fedprox import FedProx
from rollcall.algorithms.fedsgd import FedSGD
from rollcall.algorithms.fedsgd_iw import FedSGDIW
from rollcall.algorithms.fedstale import FedStale
from rollcall.algorithms.fedvarp import FedVARP
from rollcall.algorithms.focus import Focus
from rollcall.algorithms.local_sgd import LocalSGD
from rollcall.algorithms.mifa import MIFA
from rollcall.algorithms.mimic import MimiC
from rollcall.algorithms.more_available import MoreAvailable
from rollcall.algorithms.rows import Rows
from rollcall.algorithms.scaffnew import Scaffnew
from rollcall.algorithms.scaffold import Scaffold
from rollcall.algorithms.unbiased import Unbiased

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
    "fedstale": FedStale,
    "mimic": MimiC,
    "scaffold": Scaffold,
    "scaffnew": Scaffnew,
    "fedpbc": FedPBC,
    "fedawe": FedAWE,
    "focus": Focus,
    "ca_fed": CAFed,
    "feddyn": FedDyn,
    "fednova": FedNova,
    "amplified_fedavg": AmplifiedFedAvg,
    "amplified_scaffold": AmplifiedScaffold,
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
    "AmplifiedScaffold",
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
    "FedStale",
    "FedVARP",
    "FedYogi",
    "Focus",
    "LocalSGD",
    "LocalWork",
    "Memoryless",
    "MimiC",
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
