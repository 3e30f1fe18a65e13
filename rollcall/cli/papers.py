"""`rollcall archive`, `rollcall report` and `rollcall site`: keep papers' results, and write pages of all of them."""

from pathlib import Path
from typing import Annotated

import typer

from rollcall.benchmark.config.experiment import names
from rollcall.benchmark.config.metric import COSTS
from rollcall.benchmark.config.text import command, counted
from rollcall.benchmark.federation.run_folder import replacing
from rollcall.cli.options import STORE, Store, err, say, there, tracked
from rollcall.leaderboard.paper.experiment import PaperExperiment

FOLDER = Path("leaderboard")
"""In the working directory: the results that `archive` keeps, and the report with its figures."""

SHOWN = ("fedpbc/parity",)
"""The experiments whose figures README shows."""

RESULTS = "results"
"""The archive, a folder in `FOLDER`."""


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
    from rollcall.leaderboard import runs as stored
    from rollcall.leaderboard.kept import papers, planned

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
    """Write REPRODUCTION.md, FINDINGS.md and the figures that they and README show.

    They are made from the results that come with Rollcall, those that `rollcall archive` kept in ./leaderboard, and
    those in DIR/results.
    `rollcall site` writes the pages of single experiments, methods and statements.
    """
    from rollcall.leaderboard import runs as stored
    from rollcall.leaderboard.figures import orders_chart, paper_curves, printed_chart, save
    from rollcall.leaderboard.kept import papers
    from rollcall.leaderboard.paper import findings, reproduction

    to.mkdir(parents=True, exist_ok=True)
    archives = (stored.PACKAGE, stored.HERE, to / RESULTS)
    all_judged = [
        reproduction.Judged(one, stored.unarchive(one.home, *archives), archives) for one in tracked(papers(), "claims")
    ]
    of_findings = findings.findings(all_judged, *archives)
    texts = {reproduction.NAME: reproduction.reproduction(all_judged), findings.NAME: of_findings}
    for name, text in texts.items():
        with replacing(to / name) as scratch:
            scratch.write_text(text, encoding="utf-8")
    for one in tracked([one for one in all_judged if one.ran], "figures"):
        if one.experiment.name in SHOWN or f"(pictures/{one.experiment.name}.svg)" in texts[findings.NAME]:
            save(paper_curves(one.experiment, one.ran), to / "pictures" / f"{one.experiment.name}.svg")
    compared = printed_chart(all_judged)
    if compared is not None:
        save(compared, to / reproduction.PICTURE)
    if findings.PICTURE in texts[findings.NAME]:
        save(orders_chart([(order, gaps) for order, _, gaps in findings.orders(*archives)]), to / findings.PICTURE)
    say(f"{to / reproduction.NAME}, {to / findings.NAME} and {to / 'pictures'}")


def site(
    folder: Annotated[Path, typer.Argument(help="Folder of the pages.", metavar="DIR")],
    experiments: Annotated[
        list[str] | None, typer.Argument(help="By default all of the suite.", metavar="EXPERIMENT")
    ] = None,
    store: Annotated[Path | None, typer.Option(help="Add your own runs in this folder.")] = None,
) -> None:
    """Write static pages of claims, experiments, methods and models.

    They are made from the kept results, and with --store from your own runs too. Open DIR/index.html in a browser; no
    network is needed.
    """
    from rollcall.leaderboard import runs as stored
    from rollcall.leaderboard.site.build import build, collect

    if store is not None:
        there(store)
    folder.mkdir(parents=True, exist_ok=True)
    shown = []
    chosen = {name: PaperExperiment.read(name) for name in experiments or names()}
    for name, one in tracked(chosen.items(), "experiments"):
        metrics = [*one.metrics, *COSTS] if one.source else None  # a ranking may need any of them
        shown.append(collect(one, name, stored.finished(one.home, store, metrics=metrics), store))
    own = {"store": store} if store is not None else {}
    say(build(folder, shown, command("site", folder, *(experiments or []), **own)))
