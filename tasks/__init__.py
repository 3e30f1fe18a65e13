"""Learning tasks: data set x model x partition, as Lightning modules that can also be trained centrally.

`TASKS`, `MODELS`, `PARTITIONS` and `AUGMENTATIONS` list the names that an experiment file can use;
`rollcall.tasks.metrics` has those of metrics. A task takes the seed first; its keyword arguments are the options of the
file. It returns the Lightning module and the data: `Trainer().fit(*digits(0, clients=20))`. `supervised` makes a task
from plain parts.
"""

from collections.abc import Callable

from rollcall.tasks.base import Batches as Batches
from rollcall.tasks.base import ClientData as ClientData
from rollcall.tasks.base import Samples as Samples
from rollcall.tasks.base import Task as Task
from rollcall.tasks.base import evaluating as evaluating
from rollcall.tasks.images import AUGMENTATIONS as AUGMENTATIONS
from rollcall.tasks.images import cifar10 as cifar10
from rollcall.tasks.images import cifar100 as cifar100
from rollcall.tasks.images import cinic10 as cinic10
from rollcall.tasks.images import digits as digits
from rollcall.tasks.images import fashion_mnist as fashion_mnist
from rollcall.tasks.images import mnist as mnist
from rollcall.tasks.images import svhn as svhn
from rollcall.tasks.known_optimum import cauchy as cauchy
from rollcall.tasks.known_optimum import fedpbc_quadratic as fedpbc_quadratic
from rollcall.tasks.known_optimum import quadratic as quadratic
from rollcall.tasks.known_optimum import ridge as ridge
from rollcall.tasks.known_optimum import sun_synthetic as sun_synthetic
from rollcall.tasks.leaf_synthetic import leaf_synthetic as leaf_synthetic
from rollcall.tasks.leaf_synthetic import synthetic_clustered as synthetic_clustered
from rollcall.tasks.minibatches import Minibatches as Minibatches
from rollcall.tasks.models import MODELS as MODELS
from rollcall.tasks.partitions import PARTITIONS as PARTITIONS
from rollcall.tasks.supervised import Supervised as Supervised
from rollcall.tasks.supervised import SupervisedTask as SupervisedTask
from rollcall.tasks.supervised import supervised as supervised
from rollcall.tasks.table import table as table

TASKS: dict[str, Callable[..., tuple[Task, ClientData]]] = {
    "quadratic": quadratic,
    "fedpbc_quadratic": fedpbc_quadratic,
    "cauchy": cauchy,
    "ridge": ridge,
    "sun_synthetic": sun_synthetic,
    "leaf_synthetic": leaf_synthetic,
    "synthetic_clustered": synthetic_clustered,
    "table": table,
    "digits": digits,
    "mnist": mnist,
    "fashion_mnist": fashion_mnist,
    "svhn": svhn,
    "cifar10": cifar10,
    "cifar100": cifar100,
    "cinic10": cinic10,
}
