"""The methods, one file each, read beside their papers. They know nothing of data, Lightning or schedules."""

from typing import Any

from rollcall.algorithms.adafed import AdaFed as AdaFed
from rollcall.algorithms.amplified_fedavg import AmplifiedFedAvg as AmplifiedFedAvg
from rollcall.algorithms.amplified_scaffold import AmplifiedScaffold as AmplifiedScaffold
from rollcall.algorithms.base import KNOWLEDGE as KNOWLEDGE
from rollcall.algorithms.base import Algorithm as Algorithm
from rollcall.algorithms.base import LocalWork as LocalWork
from rollcall.algorithms.base import Memoryless as Memoryless
from rollcall.algorithms.base import Nothing as Nothing
from rollcall.algorithms.base import Properties as Properties
from rollcall.algorithms.base import Round as Round
from rollcall.algorithms.base import Rows as Rows
from rollcall.algorithms.base import Traffic as Traffic
from rollcall.algorithms.base import TrainingSetup as TrainingSetup
from rollcall.algorithms.base import local_steps as local_steps
from rollcall.algorithms.ca_fed import CAFed as CAFed
from rollcall.algorithms.f3ast import F3AST as F3AST
from rollcall.algorithms.fedau import FedAU as FedAU
from rollcall.algorithms.fedavg import FedAvg as FedAvg
from rollcall.algorithms.fedavg_all import FedAvgAll as FedAvgAll
from rollcall.algorithms.fedavg_debiased import FedAvgDebiased as FedAvgDebiased
from rollcall.algorithms.fedavg_known import FedAvgKnown as FedAvgKnown
from rollcall.algorithms.fedavgm import FedAvgM as FedAvgM
from rollcall.algorithms.fedawe import FedAWE as FedAWE
from rollcall.algorithms.feddyn import FedDyn as FedDyn
from rollcall.algorithms.fednova import FedNova as FedNova
from rollcall.algorithms.fedpbc import FedPBC as FedPBC
from rollcall.algorithms.fedprox import FedProx as FedProx
from rollcall.algorithms.fedsgd import FedSGD as FedSGD
from rollcall.algorithms.fedsgd_iw import FedSGDIW as FedSGDIW
from rollcall.algorithms.fedstale import FedStale as FedStale
from rollcall.algorithms.fedvarp import FedVARP as FedVARP
from rollcall.algorithms.focus import Focus as Focus
from rollcall.algorithms.local_sgd import LocalSGD as LocalSGD
from rollcall.algorithms.mifa import MIFA as MIFA
from rollcall.algorithms.mimic import MimiC as MimiC
from rollcall.algorithms.more_available import MoreAvailable as MoreAvailable
from rollcall.algorithms.scaffnew import Scaffnew as Scaffnew
from rollcall.algorithms.scaffold import Scaffold as Scaffold
from rollcall.algorithms.unbiased import Unbiased as Unbiased

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
}
