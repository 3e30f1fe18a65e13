"""Samples of a space: random ones, each a function of (seed, cell, index, setting), and grids."""

from collections.abc import Mapping, Sequence
from itertools import product
from math import prod
from typing import Any
from zlib import crc32

from benchmark.config.errors import SettingError
from benchmark.search.space import Domain
from tasks.streams import stream

MOST = 10_000
"""Up to so many combinations are listed and drawn without repetition."""


def sample(domains: Mapping[str, Domain], seed: int, cell: str, index: int) -> dict[str, Any]:
    """A random sample. It does not depend on other samples or other settings."""
    return {
        path: domain.at(stream(seed, "search", crc32(cell.encode()), index, crc32(path.encode())).random())
        for path, domain in domains.items()
    }


def grid(domains: Mapping[str, Domain]) -> list[dict[str, Any]]:
    """All combinations; the last setting varies fastest.

    Raises:
        SettingError: the values of a setting cannot be listed.
    """
    for path, domain in domains.items():
        if domain.values is None:
            raise SettingError(
                f"space: {path}: a range is not allowed in a grid; must be a choice, such as choice(1,3)"
            )
    return [dict(zip(domains, values, strict=True)) for values in product(*(d.values or () for d in domains.values()))]


def shuffled(points: Sequence[dict[str, Any]], seed: int, cell: str) -> list[dict[str, Any]]:
    """The points in a random order."""
    return [points[row] for row in stream(seed, "search grid", crc32(cell.encode())).permutation(len(points))]


def random_samples(domains: Mapping[str, Domain], seed: int, cell: str, count: int) -> list[dict[str, Any]]:
    """Random samples. If there are few combinations, none is drawn twice, and there may be fewer than `count`."""
    lists = [domain.values for domain in domains.values()]
    if all(values is not None for values in lists) and prod(len(values or ()) for values in lists) <= MOST:
        return shuffled(grid(domains), seed, cell)[:count]
    return [sample(domains, seed, cell, index) for index in range(count)]
