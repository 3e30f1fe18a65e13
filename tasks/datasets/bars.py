"""Progress bars for downloads and decoding, on the error stream, if that is a terminal."""

from rich.console import Console
from rich.progress import BarColumn, Progress, ProgressColumn, TextColumn, TimeRemainingColumn


def bars(*columns: ProgressColumn) -> Progress:
    """Progress bars with these columns, removed when they end."""
    console = Console(stderr=True)
    return Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        *columns,
        TimeRemainingColumn(),
        console=console,
        transient=True,
        disable=not console.is_terminal,
    )
