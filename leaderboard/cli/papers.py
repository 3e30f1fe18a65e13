"""`rollcall archive` and `rollcall report`: keep results of the papers' experiments, and report what reproduced."""

from collections.abc import Iterable
from pathlib import Path
from typing import Annotated

import typer
from rich.progress import track

from rollcall.benchmark.cli.shared import STORE, Store, err, say
from rollcall.benchmark.config.errors import SettingError
from rollcall.benchmark.config.experiment import Experiment, Place, names, places
from rollcall.benchmark.config.text import counted
from rollcall.leaderboard import runs as finished

FOLDER = Path("leaderboard")
"""In the working directory: the results that `archive` keeps, and the report with its figures."""

RESULTS = "results"
"""The archive, a folder in `FOLDER`."""

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
    chosen = papers(experiments)
    kept = 0
    for home in dict.fromkeys(experiment.home for experiment in chosen):
        # Experiments that share their runs may read different metrics of them.
        sharing = [experiment for experiment in (*chosen, *papers()) if experiment.home == home]
        metrics = list(dict.fromkeys(metric for experiment in sharing for metric in experiment.metrics))
        own = finished.own(store, home, metrics)
        digests = planned(sharing) if own else {}
        methods = {of[0].settings.get("algorithm") for of in digests.values()}
        runs = [
            run for run in own if run.tags["rollcall.trial"] in digests or run.settings.get("algorithm") not in methods
        ]
        if len(runs) < len(own):
            left = f"{counted(len(own) - len(runs), 'run')} of other settings than the experiment's left out"
            say(f"{home}: {left}", err)
        if runs:
            file = finished.archive(runs, home, metrics, to / RESULTS)
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

    quiet = not err.is_terminal
    all_judged = [
        Judged(experiment, finished.unarchive(experiment.home, finished.PACKAGE, to / RESULTS))
        for experiment in track(papers(), "claims", console=err, transient=True, disable=quiet)
    ]
    pages = reproduction(all_judged) | {findings.NAME: findings.page(all_judged)}
    for path, text in pages.items():
        (to / path).parent.mkdir(parents=True, exist_ok=True)
        (to / path).write_text(text, encoding="utf-8")
    for one in track(all_judged, "figures", console=err, transient=True, disable=quiet):
        if one.ran:
            paper_figure(one.experiment, one.ran).save(to / "figures" / f"{one.experiment.name}.svg")
        if one.apart:
            apart = {name: variant.ran for name, variant in one.apart.items()}
            variants_figure(one.experiment, apart).save(to / "figures" / f"{one.experiment.name}.variants.svg")
    compared = printed_figure([result for one in all_judged for result in one.claims if result.claim.tag == "paper"])
    if compared is not None:
        compared.save(to / PICTURE)
    say(f"{to / NAME}, {to / 'reproduction'} and {to / 'figures'}")


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
