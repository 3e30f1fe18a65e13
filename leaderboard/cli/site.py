"""`rollcall site`: the pages of all experiments."""

from pathlib import Path
from typing import Annotated

import typer
from rich.progress import track

from rollcall.benchmark.cli.shared import err, say
from rollcall.benchmark.config.experiment import Experiment, names
from rollcall.benchmark.config.metric import COSTS
from rollcall.benchmark.config.text import command
from rollcall.leaderboard.runs import finished
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
    shown = []
    chosen = {name: Experiment.read(name) for name in experiments or names()}
    for name, one in track(chosen.items(), "experiments", console=err, transient=True, disable=not err.is_terminal):
        metrics = [*one.metrics, *COSTS] if one.source else None  # a ranking may need any of them
        shown.append(collect(one, name, finished(one.home, store, metrics=metrics)))
    own = {"store": store} if store is not None else {}
    say(build(folder, shown, command("site", folder, *(experiments or []), **own)))
