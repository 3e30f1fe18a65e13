"""The space of a search: for each setting, the values to search; for single methods, spaces of their own.

Random samples are functions of (seed, index, setting), so that all cells try the same values of the settings that they
share; those of a method's own space are functions of the cell too.
"""

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Any
from zlib import crc32

from rollcall.benchmark.config.base import load_yaml
from rollcall.benchmark.config.errors import SettingError
from rollcall.benchmark.config.text import parse_values
from rollcall.participation.streams import stream

EDGE = 0.05
"""The share of a range, at each end, that counts as its edge."""

SEARCHED = ("algorithm", "local", "server")
"""The parts of a trial whose settings can be searched. Others decide how hard the problem is, or how it is measured."""

MOST = 10_000
"""The most combinations that are listed, so that they are drawn without repetition."""

FORMS = "uniform(a,b), loguniform(a,b), randint(a,b) or choice(a,b,...)"


def outside(end: float, sign: int) -> tuple[float, float]:
    """A number just below (-1) or above (1) an end, and one a whole step away for settings that are whole numbers."""
    return end + sign * 1e-6 * (abs(end) or 1), int(end) + sign


@dataclass(frozen=True)
class Range:
    """A range of numbers, both ends included; with `log`, the logarithm is drawn uniformly."""

    low: float
    high: float
    log: bool = False
    whole: bool = False

    def at(self, share: float) -> float:
        """The number below which this share of the range lies; four significant digits."""
        if self.whole:
            return int(self.low) + min(int(share * (self.high - self.low + 1)), int(self.high - self.low))
        low, high = (math.log(self.low), math.log(self.high)) if self.log else (self.low, self.high)
        value = low + share * (high - low)
        return self.rounded(math.exp(value) if self.log else value)

    def rounded(self, value: float) -> float:
        """The nearest number of the range with four significant digits; a whole number stays as it is."""
        return value if self.whole else min(max(float(f"{value:.4g}"), self.low), self.high)

    def beyond(self, value: float) -> tuple[float, ...]:
        """Numbers outside the range, if this one lies in the outermost 5 % at either end: on that side of it."""
        if self.log:
            share = math.log(value / self.low) / math.log(self.high / self.low)
        else:
            share = (value - self.low) / (self.high - self.low)
        if EDGE < share < 1 - EDGE:
            return ()
        return outside(self.low, -1) if share < 0.5 else outside(self.high, 1)

    @property
    def examples(self) -> tuple[Any, ...]:
        """Values that show whether the range is allowed: its ends."""
        return (int(self.low), int(self.high)) if self.whole else (self.low, self.high)

    @property
    def values(self) -> tuple[Any, ...] | None:
        """All values; None if they cannot be listed."""
        return tuple(range(int(self.low), int(self.high) + 1)) if self.whole else None


@dataclass(frozen=True)
class Options:
    """Values to choose from, all equally likely."""

    values: tuple[Any, ...]

    def at(self, share: float) -> Any:
        """The value at this share of the list."""
        return self.values[min(int(share * len(self.values)), len(self.values) - 1)]

    def beyond(self, value: Any) -> tuple[float, ...]:
        """Numbers outside the options, if this one is the smallest or the largest of several: on that side of them."""
        numbers = [one for one in self.values if isinstance(one, int | float) and not isinstance(one, bool)]
        if len(numbers) < 2 or value not in (min(numbers), max(numbers)):
            return ()
        return outside(value, 1 if value == max(numbers) else -1)

    @property
    def examples(self) -> tuple[Any, ...]:
        """Values that show whether the options are allowed: all of them."""
        return self.values


Domain = Range | Options


@dataclass(frozen=True)
class Space:
    """The domains that are searched.

    Attributes:
        common: domains by dotted setting, for all methods that have the setting.
        methods: for a method, by label, the domains that it has besides; they replace common ones.
        text: as the user wrote it.
    """

    common: dict[str, Domain]
    methods: dict[str, dict[str, Domain]]
    text: dict[str, Any]

    @classmethod
    def read(cls, space: "Space | Mapping[str, Any] | str | Path") -> "Space":
        """A space from a mapping, a YAML file, or a text; see `assignments`."""
        if isinstance(space, Space):
            return space
        if isinstance(space, Path) or (isinstance(space, str) and space.endswith((".yaml", ".yml"))):
            space = load_yaml(Path(space), quoted)
        elif isinstance(space, str):
            space = assignments(space)
        if not isinstance(space, Mapping) or not space:
            raise SettingError(f"space: {space!r} is not allowed; must map settings to {FORMS}")
        methods = {name: dict(value) for name, value in space.items() if isinstance(value, Mapping)}
        common = {path: value for path, value in space.items() if path not in methods}
        return cls(domains(common), {name: domains(own) for name, own in methods.items()}, dict(space) | methods)

    @property
    def settings(self) -> set[str]:
        """All settings that are searched for any method."""
        return {*self.common, *(path for own in self.methods.values() for path in own)}


def quoted(text: str) -> str:
    """YAML with every domain in quotes: in `{local.lr: choice(1,3)}` YAML would separate the entries at its comma."""
    return re.sub(r"""(?<!["'\w])(?:uniform|loguniform|randint|choice)\([^()"\n]*\)""", r'"\g<0>"', text)


def assignments(text: str) -> dict[str, Any]:
    """`local.lr=uniform(0,1),server.lr=1,3,fedau:algorithm.cutoff=randint(10,100)` as a mapping.

    A comma separates settings where SETTING= follows it. The last setting here is one of the method `fedau` alone.
    """
    space: dict[str, Any] = {}
    for part in re.split(r",(?=[^,=()]+=)", text):
        path, equals, value = part.partition("=")
        method, _, setting = (word.strip() for word in path.rpartition(":"))
        own = space.setdefault(method, {}) if method else space
        if not equals or not setting:
            raise SettingError(f"space: {text!r} is not allowed; must be SETTING=DOMAIN,... or a .yaml file")
        if not isinstance(own, dict):
            raise SettingError(f"space: {method}: is a setting and a method; must be one of them")
        own[setting] = value.strip()
    return space


def domains(written: Mapping[str, Any]) -> dict[str, Domain]:
    """Domains by dotted setting, from the texts of a user.

    Settings of the task, the participation model and so on are refused: a search would choose the easiest problem.
    """
    for path in written:
        part, _, setting = str(path).partition(".")
        if part not in SEARCHED or setting in ("", "name"):
            parts = f"{', '.join(SEARCHED[:-1])} or {SEARCHED[-1]}"
            raise SettingError(f"space: {path} is not allowed; must be a setting of {parts}, such as local.lr")
    return {path: domain(path, value) for path, value in written.items()}


def domain(path: str, value: Any) -> Domain:
    """The domain that a user wrote: a text such as `loguniform(1e-3,1)` or `1,3`, a list of values, or one value."""
    if not isinstance(value, str | list | None):
        return Options((value,))
    if isinstance(value, list) and value:
        return Options(tuple(value))
    if isinstance(value, str):
        match = re.fullmatch(r"\s*(\w+)\s*\((.*)\)\s*", value)
        if match is None:
            return Options(tuple(parse_values(f"space {path}", value)))
        kind, arguments = match[1], parse_values(f"space {path}", match[2]) if match[2].strip() else []
        if kind == "choice" and arguments:
            return Options(tuple(arguments))
        numbers = all(isinstance(one, int | float) and not isinstance(one, bool) for one in arguments)
        whole = all(isinstance(one, int) or (numbers and float(one).is_integer()) for one in arguments)
        if kind in ("uniform", "loguniform", "randint") and numbers and len(arguments) == 2:
            low, high = arguments
            if low < high and (kind != "loguniform" or low > 0) and (kind != "randint" or whole):
                return Range(low, high, log=kind == "loguniform", whole=kind == "randint")
    raise SettingError(f"space: {path}: {value!r} is not allowed; must be {FORMS} with a below b (above 0 for log)")


def sample(domains: Mapping[str, Domain], seed: int, cell: str, index: int) -> dict[str, Any]:
    """A random sample. It does not depend on other samples or other settings."""
    return {
        path: domain.at(stream(seed, "search", crc32(cell.encode()), index, crc32(path.encode())).random())
        for path, domain in domains.items()
    }


def draw_points(space: Mapping[str, Any], samples: int, seed: int) -> list[dict[str, Any]]:
    """Random points of a space, none twice; fewer than `samples` if the space has fewer.

    Draw number s of a setting is a function of (seed, setting, s) alone. So all methods draw the same values of the
    settings that they share, and 30 points begin with the same 10 points as a search with 10. The values of a list
    come in random order, each once, then in another order.

    Args:
        space: domains by dotted setting, or what `domain` reads as one.
        samples: how many points to draw.
        seed: of the draws.
    """
    each = {path: one if isinstance(one, Range | Options) else domain(path, one) for path, one in space.items()}
    points: list[dict[str, Any]] = []
    for number in range(100 * samples):  # a space of few points repeats them
        point = {path: _draw(one, seed, path, number) for path, one in each.items()}
        if point not in points:
            points.append(point)
        if len(points) == samples:
            break
    return points


def _draw(domain: Domain, seed: int, path: str, number: int) -> Any:
    key = crc32(path.encode())
    values = domain.values
    if values is None or len(values) > MOST:
        return domain.at(stream(seed, "search", key, number).random())
    cycle, place = divmod(number, len(values))
    return values[stream(seed, "search", key, cycle).permutation(len(values))[place]]


def grid(domains: Mapping[str, Domain]) -> list[dict[str, Any]]:
    """All combinations; the last setting varies fastest. A range whose values cannot be listed is refused."""
    for path, domain in domains.items():
        if domain.values is None:
            raise SettingError(
                f"space: {path}: a range is not allowed in a grid; must be a choice, such as choice(1,3)"
            )
    return [dict(zip(domains, values, strict=True)) for values in product(*(d.values or () for d in domains.values()))]


def random_samples(
    domains: Mapping[str, Domain], seed: int, cell: str, count: int, shared: Mapping[str, Domain] | None = None
) -> list[dict[str, Any]]:
    """Random samples of a cell. Of few combinations none is drawn twice, and there may be fewer than `count`.

    Sample s has the s-th shared values, and the s-th values of the cell's own settings. When both lists have been used
    up together, one of them is shifted by one.

    Args:
        domains: of the cell.
        seed: of the search.
        cell: its name.
        count: the number of samples.
        shared: domains that all cells draw alike. A cell that lacks one leaves it out; a cell may replace one.
    """
    shared = shared or {}
    alike = [path for path in shared if domains.get(path) is shared[path]]
    rows: list[dict[str, Any]] = []
    for point in _points(shared, seed, "", count):
        if (row := {path: point[path] for path in alike}) not in rows:
            rows.append(row)
    own = _points({path: domain for path, domain in domains.items() if path not in alike}, seed, cell, count)
    a, b = len(rows), len(own)
    pairs = ((rows[s % a], own[(s + s // math.lcm(a, b)) % b]) for s in range(min(count, a * b)))
    return [{path: (row | other)[path] for path in domains} for row, other in pairs]


def _points(domains: Mapping[str, Domain], seed: int, cell: str, count: int) -> list[dict[str, Any]]:
    """All combinations in random order if they are few, else this many random samples."""
    lists = [domain.values for domain in domains.values()]
    if all(values is not None for values in lists) and math.prod(len(values or ()) for values in lists) <= MOST:
        points = grid(domains)
        return [points[row] for row in stream(seed, "search grid", crc32(cell.encode())).permutation(len(points))]
    return [sample(domains, seed, cell, index) for index in range(count)]
