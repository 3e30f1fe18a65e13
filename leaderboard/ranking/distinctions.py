"""What tells the rows of a ranking apart: the method, and the labels or settings in which cells differ."""

from collections.abc import Sequence

from rollcall.leaderboard.ranking.axes import Axis

METHOD = "algorithm"


def distinctions(cells: Sequence[dict[str, str]], axes: Sequence[Axis]) -> list[tuple[str, dict[str, str]]]:
    """For each cell its method, and what differs between cells, by axis or dotted setting.

    Args:
        cells: their settings as text, by dotted name.
        axes: cells show their labels on an axis. If a cell is not on it, as after `run --set`, they show instead the
            settings of the axis in which cells differ.
    """
    shown = [axis for axis in axes if _is_shown(axis, cells)]
    columns = [axis for axis in shown if axis.name != METHOD and len({axis.label(cell) for cell in cells}) > 1]
    rest = [
        {key: text for key, text in cell.items() if not any(axis.covers(key) for axis in columns)} for cell in cells
    ]
    differing = [key for key in _differing(rest) if not _is_method(key)]
    options = [key for key in _differing(cells) if _is_method(key) and key != METHOD]
    named = next((axis for axis in shown if axis.name == METHOD), None)
    methods = [(named and named.label(cell)) or _method(cell, cells, options) for cell in cells]
    labels = [{axis.name: axis.label(cell) or "" for axis in columns} for cell in cells]
    settings = [{key: cell.get(key, "") for key in differing} for cell in cells]
    return [(method, own | other) for method, own, other in zip(methods, labels, settings, strict=True)]


def _is_shown(axis: Axis, cells: Sequence[dict[str, str]]) -> bool:
    """Whether cells show their labels on this axis. Methods show their options, unless the file names them."""
    if axis.name == "rounds" or (_is_method(axis.name) and not (axis.name == METHOD and axis.named)):
        return False
    return all(axis.label(cell) is not None for cell in cells)


def _is_method(setting: str) -> bool:
    return setting.partition(".")[0] == METHOD


def _differing(cells: Sequence[dict[str, str]]) -> list[str]:
    """The settings in which cells differ, without the rounds; an option of a choice if cells of that choice differ."""
    keys = sorted({key for cell in cells for key in cell} - {"rounds"})
    differing = []
    for key in keys:
        above = [other for other in keys if key.startswith(f"{other}.")]
        texts: dict[tuple[str, ...], set[str]] = {}
        for cell in cells:
            if all(other in cell for other in above):
                texts.setdefault(tuple(cell[other] for other in above), set()).add(cell.get(key, ""))
        if any(len(distinct) > 1 for distinct in texts.values()):
            differing.append(key)
    return differing


def _method(cell: dict[str, str], cells: Sequence[dict[str, str]], options: Sequence[str]) -> str:
    """The class of a cell's method, with its file if another method has the same name, and these of its options."""
    method, methods = cell[METHOD], {other[METHOD] for other in cells}
    name = method.rpartition(":")[2]
    is_unique = [other.rpartition(":")[2] for other in methods].count(name) == 1
    chosen = [f"{key.removeprefix(f'{METHOD}.')}={cell[key]}" for key in options if key in cell]
    return " ".join([name if is_unique else method, *chosen])
