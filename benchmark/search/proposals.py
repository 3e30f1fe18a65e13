"""How the next samples of a cell are chosen: at random, from a grid, or by Optuna's TPE."""

from importlib.util import find_spec
from typing import Any

from benchmark.config.errors import SettingError
from benchmark.config.metric import Metric
from benchmark.search.cells import Cell
from benchmark.search.record import Sample
from benchmark.search.sampling import grid, random_samples
from benchmark.search.search import Propose

INSTALL_OPTUNA = "pip install 'rollcall[tune]'"


def at_random(seed: int, count: int) -> Propose:
    """Random samples, all at once."""

    def propose(cell: Cell, samples: list[Sample]) -> list[dict[str, Any]]:
        return [] if samples else random_samples(cell.space, seed, cell.name, count)

    return propose


def from_grid(cell: Cell, samples: list[Sample]) -> list[dict[str, Any]]:
    """All combinations of the space, at once."""
    return [] if samples else grid(cell.space)


def proposals(search: str, seed: int, count: int, metric: Metric) -> Propose:
    """The strategy with this name: `random`, `grid` or `optuna`.

    Raises:
        SettingError: there is no such strategy, or its package is not installed.
    """
    if search == "random":
        return at_random(seed, count)
    if search == "grid":
        return from_grid
    if search != "optuna":
        raise SettingError(f"search: {search!r} is not allowed; must be random or optuna")
    if not find_spec("optuna"):
        raise SettingError(f"--search optuna needs Optuna: {INSTALL_OPTUNA}")
    from benchmark.search.tpe import Tpe

    return Tpe(seed, count, metric)
