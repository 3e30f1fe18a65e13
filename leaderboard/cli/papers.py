"""`rollcall archive`, `rollcall report` and `rollcall site`: keep papers' results, and write pages of all of them."""

from collections.abc import Collection, Iterable
from pathlib import Path
from typing import Annotated, TypeVar

import typer
from rich.progress import track

from rollcall.benchmark.cli.shared import STORE, Store, err, say
from rollcall.benchmark.config.errors import SettingError
from rollcall.benchmark.config.experiment import Experiment, Place, names, places
from rollcall.benchmark.config.metric import COSTS
from rollcall.benchmark.config.text import command, counted
from rollcall.leaderboard import runs as stored

FOLDER = Path("leaderboard")
"""In the working directory: the results that `archive` keeps, and the report with its figures."""

RESULTS = "results"
"""The archive, a folder in `FOLDER`."""

Item = TypeVar("Item")

METRIC = "NAME[=max|min|zero]"

Mine = Annotated[bool, typer.Option("--mine", help="Leave out kept results; use your own runs alone.")]


def archive(
    experiments: Annotated[
        list[str] | None, typer.Argument(help="By default all experiments of papers.", metavar="EXPERIMENT")
    ] = None,
    to: Annotated[Path, typer.Option(metavar="DIR", help="Keep the results in DIR/results.")] = FOLDER,
    store: Store = STORE,
) -> None:
    """Keep finished runs of papers' experiments as small files.

    They are added to ./leaderboard/results, where `rollcall leaderboard` and `rollcall report` find them. Runs of
    their methods with other settings, such as of `--set`, are left out; other methods are kept.
    """
    chosen, every = papers(experiments), papers()
    kept = 0
    for home in dict.fromkeys(experiment.home for experiment in chosen):
        # Experiments that share their runs may read different metrics of them.
        sharing = [experiment for experiment in (*chosen, *every) if experiment.home == home]
        metrics = list(dict.fromkeys(metric for experiment in sharing for metric in experiment.metrics))
        own = stored.own(store, home, metrics)
        digests = planned(sharing) if own else {}
        methods = {of[0].settings.get("algorithm") for of in digests.values()}
        runs = [
            run for run in own if run.tags["rollcall.trial"] in digests or run.settings.get("algorithm") not in methods
        ]
        if len(runs) < len(own):
            left = f"{counted(len(own) - len(runs), 'run')} of other settings than the experiment's left out"
            say(f"{home}: {left}", err)
        if runs:
            file = stored.archive(runs, home, metrics, to / RESULTS)
            say(f"{home}: {counted(len(runs), 'run')} in {file}")
            kept += len(runs)
    if not kept:
        say(f"No finished runs of these experiments in {store}.")


def report(
    to: Annotated[
        Path, typer.Option(metavar="DIR", help="Folder of the report; results in DIR/results count too.")
    ] = FOLDER,
) -> None:
    """Write REPRODUCTION.md, FINDINGS.md, a page for each experiment, and figures: claim by claim, what reproduced.

    They are made from the results that come with Rollcall and those that `rollcall archive` kept in ./leaderboard.
    """
    from rollcall.leaderboard.paper import findings
    from rollcall.leaderboard.paper.reproduction import NAME, PICTURE, Judged, reproduction
    from rollcall.leaderboard.plots.curves import paper_figure, variants_figure
    from rollcall.leaderboard.plots.printed import printed_figure

    folders = (stored.PACKAGE, to / RESULTS)
    all_judged = [Judged(one, stored.unarchive(one.home, *folders)) for one in _tracked(papers(), "claims")]
    pages = reproduction(all_judged) | {findings.NAME: findings.page(all_judged)}
    for path, text in pages.items():
        (to / path).parent.mkdir(parents=True, exist_ok=True)
        (to / path).write_text(text, encoding="utf-8")
    for one in _tracked(all_judged, "figures"):
        if one.ran:
            paper_figure(one.experiment, one.ran).save(to / "figures" / f"{one.experiment.name}.svg")
        if one.apart:
            apart = {name: variant.ran for name, variant in one.apart.items()}
            variants_figure(one.experiment, apart).save(to / "figures" / f"{one.experiment.name}.variants.svg")
    compared = printed_figure(all_judged)
    if compared is not None:
        compared.save(to / PICTURE)
    say(f"{to / NAME}, {to / 'reproduction'} and {to / 'figures'}")


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
    from rollcall.leaderboard.site.build import build, collect

    shown = []
    chosen = {name: Experiment.read(name) for name in experiments or names()}
    for name, one in _tracked(chosen.items(), "experiments"):
        metrics = [*one.metrics, *COSTS] if one.source else None  # a ranking may need any of them
        shown.append(collect(one, name, stored.finished(one.home, store, metrics=metrics)))
    own = {"store": store} if store is not None else {}
    say(build(folder, shown, command("site", folder, *(experiments or []), **own)))


def _tracked(items: Collection[Item], what: str) -> Iterable[Item]:
    """The items, with a bar of progress on a terminal."""
    return track(items, what, console=err, transient=True, disable=not err.is_terminal)


def papers(chosen: list[str] | None = None) -> list[Experiment]:
    """Experiments by name; by default all that reproduce a table or figure of a paper.

    Raises:
        SettingError: a chosen one names no paper.
    """
    experiments = [Experiment.read(name) for name in chosen or names()]
    for experiment in experiments if chosen else ():
        if not experiment.source:
            raise SettingError(
                f"experiment: {experiment.name!r} is not allowed; must have `source: PAPER AND FIGURE` in its file"
            )
    return [experiment for experiment in experiments if experiment.source]


def planned(experiments: Iterable[Experiment]) -> dict[str, list[Place]]:
    """The places of experiments and of their variants by the digests of their trials."""
    found: dict[str, list[Place]] = {}
    for one in experiments:
        for variant in ("", *one.variants):
            for place in places(one.as_(variant) if variant else one):
                found.setdefault(place.digest, []).append(place)
    return found
