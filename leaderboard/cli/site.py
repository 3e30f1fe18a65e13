"""`rollcall site`: the pages of all experiments."""

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.progress import track

from rollcall.benchmark.cli.shared import err, say
from rollcall.benchmark.config.errors import SettingError
from rollcall.benchmark.config.experiment import Experiment, names
from rollcall.benchmark.config.metric import COSTS
from rollcall.benchmark.config.text import command, counted
from rollcall.leaderboard import runs as finished
from rollcall.leaderboard.cli.papers import FOLDER, RESULTS
from rollcall.leaderboard.ranking import axes, only
from rollcall.leaderboard.site.build import build, collect


def site(
    folder: Annotated[Path, typer.Argument(help="Folder of the pages.", metavar="DIR")],
    experiments: Annotated[
        list[str] | None, typer.Argument(help="By default all of the suite.", metavar="EXPERIMENT")
    ] = None,
    store: Annotated[Path | None, typer.Option(help="Add your own runs in this folder.")] = None,
) -> None:
    """Write static pages: home, claims, experiments, methods, participation models, comparison.

    They are made from the kept results, and with --store from your own runs too. Open DIR/index.html in a browser; no
    network is needed.
    """
    chosen = {name: Experiment.read(name) for name in experiments or names()}
    own = {"store": store} if store is not None else {}
    say(write_site(folder, chosen, store, command("site", folder, *(experiments or []), **own)))


def write_site(
    folder: Path,
    experiments: Mapping[str, Experiment],
    store: Path | None,
    again: str,
    mine: bool = False,
    conditions: Mapping[str, list[Any]] | None = None,
) -> str:
    """Write the pages of experiments.

    Args:
        folder: of the pages.
        experiments: by name, or by the path of their file.
        store: the user's run folders; None: kept results alone.
        again: the command that writes the same pages.
        mine: leave out kept results.
        conditions: labels to keep by axis.

    Returns:
        the number of pages, and the file to open.

    Raises:
        SettingError: the folder cannot be written.
    """
    archives = [] if mine else [finished.PACKAGE, FOLDER / RESULTS]
    shown = []
    for name, one in track(
        experiments.items(), "experiments", console=err, transient=True, disable=not err.is_terminal
    ):
        metrics = [*one.metrics, *COSTS] if one.source else None  # a ranking may need any of them
        own = finished.own(store, one.home, metrics) if store is not None else []
        if conditions and one.source:
            one = one.only(conditions)
        elif conditions:
            own = only(own, axes(one), conditions)
        shown.append(collect(one, name, own, *archives))
    try:
        pages = build(folder, shown, again)
    except OSError as error:
        raise SettingError(f"{folder}: the pages cannot be written ({error.strerror}); choose another folder") from None
    return f"{counted(pages, 'page')}: {folder / 'index.html'}"
