"""The exception of a check that fails, and where in the code of what is checked it did."""

import inspect
import traceback
from typing import Any

from benchmark.config.source import definition, plain, shown


class CheckFailed(Exception):
    """A check that failed.

    Attributes:
        expected: by the check.
        seen: instead.
        method: the name of the method that is wrong; empty if it is not known.
    """

    def __init__(self, expected: str, seen: str, method: str = "") -> None:
        super().__init__(f"expected {expected}; seen: {seen}")
        self.expected = expected
        self.seen = seen
        self.method = method


def location(part: Any, error: Exception) -> str:
    """`FILE:LINE` of the line that raised the error; otherwise of the method that does the work, or the definition.

    Args:
        part: what is checked: a function, a class, or an instance.
        error: of the check.
    """
    thing = plain(part)
    methods = (getattr(error, "method", ""), "round", "active", "loss")
    work = next((vars(thing)[name] for name in methods if name in vars(thing)), None)
    try:
        file = inspect.getfile(thing)
    except TypeError:  # a class that is not in a file
        return ""
    inherited = inspect.unwrap(getattr(thing, "round", thing))
    files = {file, getattr(getattr(inherited, "__code__", None), "co_filename", file)}
    for frame in reversed(traceback.extract_tb(error.__traceback__)):
        if frame.filename in files:
            return f"{shown(frame.filename)}:{frame.lineno}"
    if work is not None and hasattr(inspect.unwrap(work), "__code__"):
        return f"{shown(file)}:{inspect.unwrap(work).__code__.co_firstlineno}"
    return definition(thing)
