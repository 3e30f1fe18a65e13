"""How the next samples of a cell are chosen: at random, from a grid, or by Optuna's TPE."""

from importlib.util import find_spec
from typing import Any

from benchmark.config.errors import SettingError
from benchmark.config.metric import Metric
from benchmark.search.cells import Cell
from benchmark.search.record import Sample
from benchmark.search.sampling import grid, random_samples, shuffled
from benchmark.search.search import Propose

INSTALL_OPTUNA = "pip install 'rollcall[tune]'"


def at_random(seed: int, count: int) -> Propose:
    """Random samples."""

    def propose(cell: Cell, samples: list[Sample]) -> list[dict[str, Any]]:
        return random_samples(cell.space, seed, cell.name, count)[len(samples) :]

    return propose


def from_grid(cell: Cell, samples: list[Sample]) -> list[dict[str, Any]]:
    """All combinations of the space, in their order."""
    return grid(cell.space)[len(samples) :]


def from_shuffled_grid(seed: int) -> Propose:
    """All combinations of the space, in random order: a search that ends early has tried values of the whole space."""

    def propose(cell: Cell, samples: list[Sample]) -> list[dict[str, Any]]:
        return shuffled(grid(cell.space), seed, cell.name)[len(samples) :]

    return propose


def proposals(search: str, seed: int, count: int, metric: Metric, may_end_early: bool = False) -> Propose:
    """The strategy with this name: `random`, `grid` or `optuna`.

    Args:
        search: the name.
        seed: of the search.
        count: samples of each cell; a grid has its own.
        metric: what samples are judged by.
        may_end_early: whether a budget may end the search; a grid is then tried in random order.

    Raises:
        SettingError: there is no such strategy, or its package is not installed.
    """
    if search == "random":
        return at_random(seed, count)
    if search == "grid":
        return from_shuffled_grid(seed) if may_end_early else from_grid
    if search != "optuna":
        raise SettingError(f"search: {search!r} is not allowed; must be random or optuna")
    if not find_spec("optuna"):
        raise SettingError(f"--search optuna needs Optuna: {INSTALL_OPTUNA}")
    from benchmark.search.tpe import Tpe

    return Tpe(seed, count, metric)
