"""Durations as text: of a user, and for a user."""

import re

from rollcall.benchmark.config.errors import SettingError

UNITS = {"s": 1, "m": 60, "h": 3600}


def read_time(text: str, option: str) -> float:
    """The seconds of `30s`, `90m` or `1.5h`, given for this option; another form is refused."""
    match = re.fullmatch(r"(\d+\.?\d*)([smh])", text)
    if not match or not float(match[1]):
        raise SettingError(f"{option}: {text!r} is not allowed; must be a number above 0 with s, m or h, such as 90m")
    return float(match[1]) * UNITS[match[2]]


def duration(seconds: float) -> str:
    """A duration as text: 40 s, 12 min, 3.5 h."""
    if seconds < 90:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"
