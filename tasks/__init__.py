"""Learning tasks: data set x model x partition, as Lightning modules that can also be trained centrally.

`TASKS`, `MODELS`, `PARTITIONS` and `AUGMENTATIONS` list the names that an experiment file can use;
`rollcall.tasks.metrics` has those of metrics. A task takes the seed first; its keyword arguments are the options of the
file. It returns the Lightning module and the data: `Trainer().fit(*digits(0, clients=20))`. `supervised` makes a task
from plain parts.
"""

from collections.abc import Callable

from rollcall.tasks.augmentation import AUGMENTATIONS
from rollcall.tasks.base import Batches, ClientData, Samples, Task
from rollcall.tasks.images import cifar10, cifar100, cinic10, cinic10_enlarged, digits, fashion_mnist, mnist, svhn
from rollcall.tasks.known_optimum import fedpbc_quadratic, quadratic, ridge, sun_synthetic
from rollcall.tasks.leaf_synthetic import leaf_synthetic
from rollcall.tasks.minibatches import Minibatches
from rollcall.tasks.models import MODELS
from rollcall.tasks.partitions import PARTITIONS
from rollcall.tasks.supervised import Supervised, SupervisedTask, supervised
from rollcall.tasks.table import table

TASKS: dict[str, Callable[..., tuple[Task, ClientData]]] = {
    "quadratic": quadratic,
    "fedpbc_quadratic": fedpbc_quadratic,
    "ridge": ridge,
    "sun_synthetic": sun_synthetic,
    "leaf_synthetic": leaf_synthetic,
    "table": table,
    "digits": digits,
    "mnist": mnist,
    "fashion_mnist": fashion_mnist,
    "svhn": svhn,
    "cifar10": cifar10,
    "cifar100": cifar100,
    "cinic10": cinic10,
    "cinic10_enlarged": cinic10_enlarged,
}

__all__ = [
    "AUGMENTATIONS",
    "MODELS",
    "PARTITIONS",
    "TASKS",
    "Batches",
    "ClientData",
    "Minibatches",
    "Samples",
    "Supervised",
    "SupervisedTask",
    "Task",
    "cifar10",
    "cifar100",
    "cinic10",
    "cinic10_enlarged",
    "digits",
    "fashion_mnist",
    "fedpbc_quadratic",
    "leaf_synthetic",
    "mnist",
    "quadratic",
    "ridge",
    "sun_synthetic",
    "supervised",
    "svhn",
    "table",
]
