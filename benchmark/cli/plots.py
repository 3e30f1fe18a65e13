"""Pictures that commands draw. The functions are found by entry points, so this package needs no plotting code."""

from importlib.metadata import entry_points
from pathlib import Path
from typing import Any

from benchmark.cli.options import err
from benchmark.config.errors import SettingError

GROUP = "rollcall.plots"
"""The entry-point group. An entry is a function that returns a matplotlib figure."""


def draw(name: str, file: Path, *content: Any) -> None:
    """Draw a picture into a file, whose folder is made if need be.

    Args:
        name: of the entry point, such as `partition`.
        file: its ending decides the format.
        content: what the function draws.

    Raises:
        SettingError: no installed package draws this picture, or the ending is of no format.
    """
    entries = entry_points(group=GROUP, name=name)
    if not entries:
        raise SettingError(
            f"no installed package draws {name!r}; reinstall rollcall, which has it as an entry point of {GROUP}"
        )
    figure = next(iter(entries)).load()(*content)
    endings = figure.canvas.get_supported_filetypes()
    if file.suffix.lower().removeprefix(".") not in endings:
        raise SettingError(f"plot: {str(file)!r} is not allowed; must end in one of .{', .'.join(sorted(endings))}")
    file.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(file, dpi=150)
    err.print(f"{name}: {file}", highlight=False, soft_wrap=True)
