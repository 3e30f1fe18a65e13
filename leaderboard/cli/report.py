"""`rollcall report`."""

from pathlib import Path
from typing import Annotated

import typer
from rich.progress import track

from benchmark.cli.options import err, out
from leaderboard.cli.shared import FOLDER, RESULTS, papers


def report(
    to: Annotated[
        Path, typer.Option(metavar="DIR", help="Folder of the report; results in DIR/results count too.")
    ] = FOLDER,
) -> None:
    """Write REPRODUCTION.md and its figures: claim by claim, what reproduced.

    It is made from the results that come with Rollcall and those that `rollcall archive` kept in ./leaderboard.
    """
    from leaderboard.paper.cells import cells
    from leaderboard.paper.reproduction import NAME, reproduction
    from leaderboard.plots.curves import paper_figure
    from leaderboard.results import PACKAGE, unarchive

    experiments = papers()
    folders = (PACKAGE, to / RESULTS)
    to.mkdir(parents=True, exist_ok=True)
    (to / NAME).write_text(reproduction(experiments, *folders), encoding="utf-8")
    for experiment in track(experiments, "figures", console=err, transient=True, disable=not err.is_terminal):
        measured = [cell for cell in cells(experiment, unarchive(experiment.home, *folders)) if cell.runs]
        if measured:
            figure = to / "figures" / f"{experiment.name}.png"
            figure.parent.mkdir(parents=True, exist_ok=True)
            paper_figure(experiment, measured).savefig(figure, dpi=90)
    out.print(f"{to / NAME} and {to / 'figures'}", highlight=False, soft_wrap=True)
