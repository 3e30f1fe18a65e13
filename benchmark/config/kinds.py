"""The kinds of choices: where the suite's choices are listed, and what a choice of one's own must be."""

import typing
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from pkgutil import resolve_name
from typing import Any

GROUP = "rollcall"
"""The group of entry points of installed packages; an entry point is named `KIND.NAME`."""


@dataclass(frozen=True)
class Kind:
    """A kind of choice.

    Attributes:
        address: of the dictionary that lists the choices; it is imported when a choice is read, since that takes long.
        supplied: the number of parameters that the suite supplies.
        parameters: their names.
        returns: address of the class of what a choice makes; empty if it is a number or an array.
        returned: what a choice makes, in words.
        subclass: whether a choice must be a subclass of `returns`.
        entries: addresses of the classes of the entries, if a choice makes a tuple.
        method: name of a method; an object that has it needs no base class.
        also: other forms of a choice, in words.
    """

    address: str
    supplied: int
    parameters: str = ""
    returns: str = ""
    returned: str = ""
    subclass: bool = False
    entries: tuple[str, ...] = ()
    method: str = ""
    also: str = ""

    @cached_property
    def known(self) -> Mapping[str, Callable[..., Any]]:
        """The choices by name."""
        return typing.cast(Mapping[str, Callable[..., Any]], resolve_name(self.address))

    @property
    def result(self) -> Any:
        """The class of what a choice makes; None if it is a number or an array."""
        return resolve_name(self.returns) if self.returns else None

    @property
    def needs(self) -> str:
        """What a choice must be, in words."""
        if self.subclass:
            return f"a subclass of {self.returns.replace(':', '.')}"
        return f"a function of ({self.parameters}) that returns {self.returned or 'a value'}{self.also}"

    def fits(self, value: Any) -> bool:
        """Whether a value is what a choice makes; of numbers and arrays nothing is known."""
        right = self.result is None or (isinstance(value, self.result) and self._holds_entries(value))
        return right or self._has_method(value)

    def may_make(self, cls: type) -> bool:
        """Whether an instance of a class is what a choice makes."""
        protocol = getattr(self.result, "_is_protocol", False)
        return self.result is None or protocol or issubclass(cls, self.result) or self._has_method(cls)

    def _holds_entries(self, value: Any) -> bool:
        classes = [resolve_name(address) for address in self.entries]
        return not classes or (len(value) == len(classes) and all(map(isinstance, value, classes)))

    def _has_method(self, value: Any) -> bool:
        return bool(self.method) and callable(getattr(value, self.method, None))


KINDS = {
    "task": Kind(
        "tasks:TASKS",
        1,
        "seed",
        "builtins:tuple",
        "(tasks.Task, tasks.ClientData)",
        entries=("tasks:Task", "tasks:ClientData"),
        also="; tasks.supervised(train, test, network) makes one, also from a LightningModule",
    ),
    "model": Kind("tasks.models:MODELS", 2, "shape, classes", "torch.nn:Module", "a torch.nn.Module"),
    "partition": Kind(
        "tasks.partitions:PARTITIONS",
        3,
        "labels, clients, seed",
        "tasks.partitions:Parts",
        "tasks.partitions.Parts, or a list of the samples' numbers for each client",
    ),
    "augmentation": Kind(
        "tasks.augmentation:AUGMENTATIONS", 1, "seed", "tasks.augmentation:Augment", "a tasks.augmentation.Augment"
    ),
    "participation": Kind(
        "participation:MODELS",
        1,
        "population",
        "participation:Participation",
        "a participation.Participation or another object with active(t)",
        method="active",
        also="; or a function of (t, rng) that returns a mask or ids of clients; or a mask",
    ),
    "probability": Kind(
        "participation.probabilities:PROBABILITIES", 1, "population", "", "a probability for each client"
    ),
    "variation": Kind("participation.variations:VARIATIONS", 2, "p, t", "", "a probability for each client"),
    "algorithm": Kind("algorithms:ALGORITHMS", 0, returns="algorithms:Algorithm", subclass=True),
    "schedule": Kind("benchmark.config.schedules:SCHEDULES", 1, "t", "", "a number"),
    "server_optimizer": Kind(
        "benchmark.federation.server_optimizers:OPTIMIZERS",
        2,
        "params, lr",
        "torch.optim:Optimizer",
        "a torch.optim.Optimizer",
    ),
    "metric": Kind(
        "tasks.metrics:METRICS", 0, "", "tasks.metrics:Metric", "a torchmetrics.Metric or a tasks.metrics.OverClients"
    ),
    "function": Kind("participation.function:FUNCTIONS", 2, "t, rng", "", "a mask or ids of clients"),
    "local_optimizer": Kind(
        "benchmark.engines.local_training:OPTIMIZERS",
        2,
        "params, lr",
        "torch.optim:Optimizer",
        "a torch.optim.Optimizer",
    ),
    "analysis": Kind("benchmark.config.analyses:ANALYSES", 1, "seed", "pandas:DataFrame", "a pandas.DataFrame"),
}
