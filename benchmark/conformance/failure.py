"""The exception of a check that fails, and where in the code of the method it did."""

import inspect
import traceback
from pathlib import Path
from typing import Any

from algorithms import Algorithm


class CheckFailed(Exception):
    """A check that failed.

    Attributes:
        expected: by the check.
        seen: instead.
    """

    def __init__(self, expected: str, seen: str) -> None:
        super().__init__(f"expected {expected}; seen: {seen}")
        self.expected = expected
        self.seen = seen


def location(method: Algorithm[Any], error: Exception) -> str:
    """`FILE:LINE` of the line that raised the error; otherwise of `round`, or of the class if it inherits `round`."""
    code = inspect.unwrap(type(method).round).__code__
    for frame in reversed(traceback.extract_tb(error.__traceback__)):
        if frame.filename == code.co_filename:
            return f"{_short(frame.filename)}:{frame.lineno}"
    if "round" in vars(type(method)):
        return f"{_short(code.co_filename)}:{code.co_firstlineno}"
    try:
        return f"{_short(inspect.getfile(type(method)))}:{inspect.getsourcelines(type(method))[1]}"
    except (OSError, TypeError):  # a class that is not in a file
        return ""


def _short(path: str) -> str:
    """Relative to the working directory, if it is inside."""
    return str(Path(path).relative_to(Path.cwd())) if Path(path).is_relative_to(Path.cwd()) else path
