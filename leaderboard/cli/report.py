"""`rollcall report`."""

from pathlib import Path
from typing import Annotated

import typer
from rich.progress import track

from rollcall.benchmark.cli.shared import err, out
from rollcall.leaderboard import results
from rollcall.leaderboard.cli.shared import FOLDER, RESULTS, papers
from rollcall.leaderboard.paper.reproduction import NAME, PICTURE, judged, reproduction
from rollcall.leaderboard.plots.printed import printed_figure


def report(
    to: Annotated[
        Path, typer.Option(metavar="DIR", help="Folder of the report; results in DIR/results count too.")
    ] = FOLDER,
) -> None:
    """Write REPRODUCTION.md, a page for each experiment, and figures: claim by claim, what reproduced.

    They are made from the results that come with Rollcall and those that `rollcall archive` kept in ./leaderboard.
    """
    from rollcall.leaderboard.plots.curves import paper_figure

    quiet = not err.is_terminal
    folders = (results.PACKAGE, to / RESULTS)
    all_judged = [
        judged(experiment, *folders)
        for experiment in track(papers(), "claims", console=err, transient=True, disable=quiet)
    ]
    for path, text in reproduction(all_judged).items():
        _below(to, path).write_text(text, encoding="utf-8")
    for one in track(all_judged, "figures", console=err, transient=True, disable=quiet):
        measured = [cell for cell in one.cells if cell.runs]
        if measured:
            figure = paper_figure(one.experiment, measured)
            figure.savefig(_below(to, f"figures/{one.experiment.name}.png"), dpi=90)
    compared = printed_figure([result for one in all_judged for result in one.claims if result.claim.tag == "paper"])
    if compared is not None:
        compared.savefig(_below(to, PICTURE), dpi=90)
    out.print(f"{to / NAME}, {to / 'reproduction'} and {to / 'figures'}", highlight=False, soft_wrap=True)


def _below(folder: Path, path: str) -> Path:
    """A path in a folder; its own folder is made."""
    file = folder / path
    file.parent.mkdir(parents=True, exist_ok=True)
    return file
