"""Partitions of the training samples among clients.

A partition takes the labels, the number of clients and the seed; its keyword arguments are the options of an experiment
file. Parts are disjoint and none is empty. A partition uses all samples unless its docstring says otherwise.
"""

from collections.abc import Callable

from tasks.partitions.base import Partition, Parts
from tasks.partitions.dirichlet import dirichlet, dirichlet_by_class
from tasks.partitions.files import from_file
from tasks.partitions.labels import by_label, shards
from tasks.partitions.volumes import by_sizes, iid, natural

PARTITIONS: dict[str, Callable[..., Parts]] = {
    "iid": iid,
    "by_sizes": by_sizes,
    "natural": natural,
    "dirichlet": dirichlet,
    "dirichlet_by_class": dirichlet_by_class,
    "shards": shards,
    "by_label": by_label,
    "from_file": from_file,
}

__all__ = [
    "PARTITIONS",
    "Partition",
    "Parts",
    "by_label",
    "by_sizes",
    "dirichlet",
    "dirichlet_by_class",
    "from_file",
    "iid",
    "natural",
    "shards",
]
