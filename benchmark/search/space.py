"""The space of a search: for each setting the values to search, written as text or as domains of Tune.

Keys are dotted settings, such as `local.lr`, or those of one method alone, such as `fedau:algorithm.cutoff`.
"""

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Any, Literal
from zlib import crc32

import numpy as np

from rollcall.benchmark.config.base import load_yaml
from rollcall.benchmark.config.errors import SettingError
from rollcall.benchmark.config.text import parse_values
from rollcall.participation import stream

EDGE = 0.05
"""The share of a range, at each end, that counts as its edge."""

SEARCHED = ("algorithm", "local", "server")
"""The parts of a trial whose settings can be searched. Others decide how hard the problem is, or how it is measured."""

MOST = 10_000
"""The most values of `randint`."""

FORMS = "uniform(a,b), loguniform(a,b), randint(a,b) or choice(a,b,...)"


@dataclass(frozen=True)
class Domain:
    """The values of a setting to search: a list of values, all equally likely, or a range of numbers.

    Attributes:
        values: the list; empty for a range.
        low, high: the ends of the range.
        log: whether the logarithm is drawn uniformly.
    """

    values: tuple[Any, ...] = ()
    low: float = 0.0
    high: float = 0.0
    log: bool = False

    def draw(self, seed: int, path: str, number: int) -> Any:
        """The draw of this number for a setting. Values of a list come each once, and then in another order."""
        key = crc32(path.encode())
        if self.values:
            cycle, place = divmod(number, len(self.values))
            return self.values[stream(seed, "search", key, cycle).permutation(len(self.values))[place]]
        share = stream(seed, "search", key, number).random()
        low, high = (math.log(self.low), math.log(self.high)) if self.log else (self.low, self.high)
        value = low + share * (high - low)
        return self.read(math.exp(value) if self.log else value)

    def read(self, value: Any) -> Any:
        """A value of Tune as a setting: the option of this number, or a number with four significant digits."""
        if self.values:
            return self.values[value]
        return min(max(float(f"{value:.4g}"), self.low), self.high)

    def tune(self) -> Any:
        """The domain of Tune; of a list, the numbers of its values, for searchers take no lists and mappings."""
        from ray import tune

        if self.values:
            return tune.randint(0, len(self.values))
        return tune.loguniform(self.low, self.high) if self.log else tune.uniform(self.low, self.high)

    def edge(self, value: Any) -> Literal["", "lower", "upper"]:
        """Where a value is the smallest or largest of several numbers, or in the outermost 5 % of a range."""
        if self.values:
            numbers = [one for one in self.values if _is_number(one)]
            if len(numbers) < 2 or value not in (min(numbers), max(numbers)):
                return ""
            return "lower" if value == min(numbers) else "upper"
        scale = math.log if self.log else float
        share = (scale(value) - scale(self.low)) / (scale(self.high) - scale(self.low))
        return "lower" if share <= EDGE else "upper" if share >= 1 - EDGE else ""

    @property
    def examples(self) -> tuple[Any, ...]:
        """Values that show whether a setting allows the domain: the ends of a range, or the whole list."""
        return self.values or (self.low, self.high)


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def read_space(space: Mapping[str, Any] | str | Path) -> dict[str, Any]:
    """A space as plain data, by key: from a mapping, a YAML file, or a text such as `local.lr=uniform(0,1)`.

    A mapping may have Tune's domains, and below the name of a method its own settings.

    Raises SettingError: it is no space, or a setting cannot be searched: a search over the task, the participation
    model and so on would choose the easiest problem.
    """
    if isinstance(space, Path) or (isinstance(space, str) and space.endswith((".yaml", ".yml"))):
        # In `{local.lr: choice(1,3)}` YAML would separate the entries at the comma of a domain without quotes.
        domains = re.compile(r"""(?<!["'\w])(?:uniform|loguniform|randint|choice)\([^()"\n]*\)""")
        space = load_yaml(Path(space), lambda text: domains.sub(r'"\g<0>"', text))
    elif isinstance(space, str):
        space = assignments(space)
    if not isinstance(space, Mapping) or not space:
        raise SettingError(f"space: {space!r} is not allowed; must map settings to {FORMS}")
    flat: dict[str, Any] = {}
    for key, value in space.items():
        if isinstance(value, Mapping) and "grid_search" not in value:
            flat |= {f"{key}:{path}": _plain(path, one) for path, one in value.items()}
        else:
            flat[str(key)] = _plain(key, value)
    for key in flat:
        path = key.rpartition(":")[2]
        part, _, setting = path.partition(".")
        if part not in SEARCHED or setting in ("", "name"):
            parts = f"{', '.join(SEARCHED[:-1])} or {SEARCHED[-1]}"
            raise SettingError(f"space: {path} is not allowed; must be a setting of {parts}, such as local.lr")
        domain(path, flat[key])
    return flat


def assignments(text: str) -> dict[str, str]:
    """`local.lr=uniform(0,1),server.lr=1,3` as a mapping. A comma separates settings where SETTING= follows it."""
    parts = [part.partition("=") for part in re.split(r",(?=[^,=()]+=)", text)]
    if not all(path.strip() and equals for path, equals, _ in parts):
        raise SettingError(f"space: {text!r} is not allowed; must be SETTING=DOMAIN,...")
    return {path.strip(): value.strip() for path, _, value in parts}


def _plain(path: str, value: Any) -> Any:
    """A domain of Tune as a user would write it in a file; anything else as it is."""
    if isinstance(value, Mapping):
        if "grid_search" not in value:
            raise SettingError(f"space: {path} is a mapping; settings must be dotted, such as local.lr")
        return _plain(path, list(value["grid_search"]))
    if isinstance(value, list | tuple):
        return [one.item() if isinstance(one, np.generic) else one for one in value]
    if not hasattr(value, "get_sampler"):
        return value.item() if isinstance(value, np.generic) else value
    from ray.tune.search import sample

    sampler = value.get_sampler()
    log = isinstance(sampler, sample.LogUniform)
    if isinstance(value, sample.Categorical):
        return _plain(path, list(value.categories))
    if isinstance(value, sample.Float) and (log or isinstance(sampler, sample.Uniform)):
        return f"{'log' * log}uniform({value.lower},{value.upper})"
    if isinstance(value, sample.Integer) and isinstance(sampler, sample.Uniform):
        return f"randint({value.lower},{value.upper - 1})"  # Tune leaves the upper end out
    raise SettingError(f"space: {path}: {type(sampler).__name__} is not allowed; must be Tune's {FORMS}")


def domain(path: str, value: Any) -> Domain:
    """The domain that a user wrote: a text such as `loguniform(1e-3,1)` or `1,3`, a list of values, or one value."""
    if not isinstance(value, str | list | None):
        return Domain((value,))
    if isinstance(value, list) and value:
        return Domain(tuple(value))
    if isinstance(value, str):
        match = re.fullmatch(r"\s*(\w+)\s*\((.*)\)\s*", value)
        if match is None:
            return Domain(tuple(parse_values(f"space {path}", value)))
        kind, arguments = match[1], parse_values(f"space {path}", match[2]) if match[2].strip() else []
        if kind == "choice" and arguments:
            return Domain(tuple(arguments))
        if len(arguments) == 2 and all(map(_is_number, arguments)):
            low, high = arguments
            if kind == "randint" and low < high < low + MOST and low == int(low) and high == int(high):
                return Domain(tuple(range(int(low), int(high) + 1)))
            if kind in ("uniform", "loguniform") and low < high and (kind == "uniform" or low > 0):
                return Domain((), low, high, log=kind == "loguniform")
    raise SettingError(f"space: {path}: {value!r} is not allowed; must be {FORMS} with a below b (above 0 for log)")


def draw_points(space: Mapping[str, Any], samples: int, seed: int) -> list[dict[str, Any]]:
    """Random points of a space, none twice; fewer than `samples` if the space has fewer.

    Draw number s of a setting is a function of (seed, setting, s) alone. So all methods draw the same values of the
    settings that they share, and 30 points begin with the same 10 points as a search with 10.
    """
    each = {path: one if isinstance(one, Domain) else domain(path, one) for path, one in space.items()}
    most = min(samples, math.prod(len(one.values) or math.inf for one in each.values()))
    points: list[dict[str, Any]] = []
    for number in range(100 * samples):  # a space of few points repeats them
        point = {path: one.draw(seed, path, number) for path, one in each.items()}
        if point not in points:
            points.append(point)
        if len(points) == most:
            break
    return points


def grid(space: Mapping[str, Domain]) -> list[dict[str, Any]]:
    """All combinations; the last setting varies fastest. A range is refused."""
    for path, one in space.items():
        if not one.values:
            raise SettingError(f"space: {path}: a range is not allowed in a grid; must be a choice, as choice(1,3)")
    return [dict(zip(space, values, strict=True)) for values in product(*(one.values for one in space.values()))]
