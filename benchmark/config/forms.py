"""Short forms of a choice: a participation model may be written as an array, the file of one, or a function."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from benchmark.config import contributed

RECORDINGS = (".npy", ".npz", ".csv", ".parquet")


def participation_form(value: Any) -> Any:
    """A participation model in its long form; what has no short form is returned as it is.

    An array [rounds, m], its name, or the path of a recording becomes the model `trace`. A function of (t, rng), or its
    name, becomes the model `function`; options that this model lacks are those of the function.
    """
    if isinstance(value, np.ndarray | list) or (isinstance(value, str) and value.endswith(RECORDINGS)):
        return {"name": "trace", "mask": value}
    settings = dict(value) if isinstance(value, Mapping) else {"name": value}
    name = thing = settings.pop("name", None)
    if isinstance(name, str):
        name = contributed.address("participation", name)
        thing = contributed.loaded(name) if ":" in name else None
    if isinstance(thing, np.ndarray):
        return {"name": "trace", "mask": thing} | settings
    from participation.function import FromFunction, is_draw

    if not is_draw(thing):
        return value
    from inspect import signature

    own, models = signature(thing).parameters, signature(FromFunction).parameters
    of_function = {key: option for key, option in settings.items() if key in own or key not in models}
    of_model = {key: option for key, option in settings.items() if key not in of_function}
    return {"name": "function", "function": {"name": name} | of_function} | of_model


FORMS = {"participation": participation_form}
"""The kinds that have short forms; each function returns the long form."""
