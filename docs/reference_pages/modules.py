"""API reference: a page for each module, which autodoc fills."""

import pkgutil
from collections.abc import Iterator
from importlib import import_module
from types import ModuleType

PACKAGES = {
    "participation": "Which clients are available in each round",
    "algorithms": "The methods, and what they are made of",
    "tasks": "Data, models, partitions",
    "benchmark": "Settings, engines, the federated loop, sweeps",
    "leaderboard": "Tables and figures from results",
}
LEFT_OUT = ("benchmark.cli", "leaderboard.cli")
"""The command line has a page of its own."""

OPTIONS = [":members:", ":show-inheritance:", ":ignore-module-all:", ":member-order: bysource"]


def pages() -> dict[str, str]:
    """A page for each package and one for each of its modules."""
    result = {}
    for package, title in PACKAGES.items():
        names = list(modules(package))
        listed = "\n".join(f"   {name}" for name in names)
        result[f"api/{package}.rst"] = f"{heading(f'{package}: {title}')}\n.. toctree::\n   :maxdepth: 1\n\n{listed}\n"
        for name in names:
            options = [*OPTIONS, ":no-index:"] if shadowed(name) else OPTIONS
            result[f"api/{name}.rst"] = "\n   ".join([f"{heading(name)}\n.. automodule:: {name}", *options]) + "\n"
    return result


def modules(package: str) -> Iterator[str]:
    """The names of all modules of a package with a docstring, packages among them."""
    top = import_module(package)
    for info in pkgutil.walk_packages(top.__path__, f"{package}."):
        if not info.name.startswith(LEFT_OUT) and import_module(info.name).__doc__:
            yield info.name


def shadowed(name: str) -> bool:
    """Whether the package has something else under the module's name, such as a function."""
    parent, _, last = name.rpartition(".")
    return not isinstance(getattr(import_module(parent), last, None), ModuleType | None)


def heading(title: str) -> str:
    return f"{title}\n{'=' * len(title)}\n"
