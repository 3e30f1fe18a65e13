"""Importing Lightning without the packages for features that the suite does not use.

Lightning needs two classes of torchmetrics. `import torchmetrics` imports every metric of images, sound and text, and
torchvision and SciPy for them. Here these follow when one of their names is asked for.

This module imports no torch, so that the command line starts fast.
"""

import logging
import sys
from importlib import import_module
from importlib.util import find_spec, module_from_spec
from typing import Any

NEEDED = {
    "Metric": "torchmetrics.metric",
    "MetricCollection": "torchmetrics.collections",
    "__version__": "torchmetrics.__about__",
}
"""The names that Lightning takes from torchmetrics, and the modules that define them."""


def defer_torchmetrics() -> None:
    """Let `torchmetrics/__init__.py` run when a name is asked for that Lightning does not need.

    Nothing happens where torchmetrics is imported already, or is not installed.
    """
    spec = None if "torchmetrics" in sys.modules else find_spec("torchmetrics")
    if spec is None or spec.loader is None:
        return
    loader = spec.loader
    package = module_from_spec(spec)

    def attribute(name: str) -> Any:
        if name == "_logger":  # its own modules import it from here
            return logging.getLogger("torchmetrics")
        if name in NEEDED:
            if name != "__version__":
                import_module("torchmetrics.utilities")  # before `torchmetrics.metric`; they import each other
            return getattr(import_module(NEEDED[name]), name)
        del package.__getattr__
        loader.exec_module(package)
        return getattr(package, name)

    package.__getattr__ = attribute  # type: ignore[method-assign]
    sys.modules["torchmetrics"] = package
