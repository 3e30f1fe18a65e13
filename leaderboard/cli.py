"""`rollcall leaderboard`, `rollcall archive` and `rollcall report`; the command line finds them by entry points."""

from enum import StrEnum
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.progress import track

from benchmark.cli.options import STORE, Json, Name, Store, err, need_mlflow, out
from benchmark.config.base import validated
from benchmark.config.errors import SettingError
from benchmark.config.experiment import Experiment, names
from benchmark.config.nested import parse
from benchmark.config.report import Report


class Form(StrEnum):
    terminal = "terminal"
    md = "md"
    csv = "csv"
    latex = "latex"


def leaderboard(
    experiment: Name,
    metric: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME=max|min", help="Columns, the first one ranking; by default the experiment's."),
    ] = None,
    form: Annotated[Form, typer.Option("--format", help="Of what is printed.")] = Form.terminal,
    to: Annotated[Path | None, typer.Option(help="Folder of the files; the experiment's by default.")] = None,
    store: Store = STORE,
    as_json: Json = False,
) -> None:
    """Print an experiment's table and write it as files: a ranking, or for a paper's the paper's own table and claims.

    Of a paper's experiment, runs that the suite keeps stand in for those that the store has not.
    """
    chosen = Experiment.read(experiment)
    if metric:
        report = chosen.report.model_copy(update={"metrics": dict(_metric(given) for given in metric)})
        chosen = chosen.model_copy(update={"report": validated(Report, report.model_dump())})
    folder = to or store / chosen.name
    if chosen.source:
        show(chosen, store, folder, form)
        return
    need_mlflow()
    from benchmark.sweep.mlflow_mirror import client
    from leaderboard import load, tabulate
    from leaderboard.plots import curves as figures
    from leaderboard.ranking import pages
    from leaderboard.results import has

    runs = [run for run in load(client(store), chosen.home) if all(has(run, name) for name in chosen.report.metrics)]
    if not runs:
        raise SettingError(
            f"experiment: {experiment!r} has no finished run in MLflow with {', '.join(chosen.report.metrics)}; "
            f"first: rollcall run {experiment}"
        )
    table = tabulate(runs, chosen.report.metrics, chosen.report.last_rounds)
    if form is not Form.terminal:
        print({Form.md: pages.markdown, Form.csv: pages.comma_separated, Form.latex: pages.latex}[form](table), end="")
        return
    figure = figures.curves(table)
    folder.mkdir(parents=True, exist_ok=True)
    figure.savefig(folder / "leaderboard.png", dpi=150)
    written = {
        "leaderboard.md": f"# {chosen.title}\n\n{pages.markdown(table)}",
        "leaderboard.csv": pages.comma_separated(table),
        "leaderboard.html": pages.html(table, chosen.title, chosen.about, figures.svg(figure)),
    }
    for name, text in written.items():
        (folder / name).write_text(text, encoding="utf-8")
    if as_json:
        print(pages.as_json(table))
        return
    out.print(pages.terminal(table, chosen.title))
    out.print(f"{folder}/leaderboard.md  .csv  .html  .png", highlight=False, soft_wrap=True)


def _metric(given: str) -> tuple[str, Any]:
    name, (end, *_) = parse(given)
    return name, end


def show(experiment: Experiment, store: Path, folder: Path, form: Form) -> None:
    """Print a paper's table, measured beside printed, and its claims; write both, and the figure, into a folder.

    Raises:
        SettingError: nothing of it was run.
    """
    from leaderboard.paper import table as sheet
    from leaderboard.paper.cells import cells
    from leaderboard.paper.claims import rule
    from leaderboard.paper.reported import printed
    from leaderboard.paper.reproduction import ruled
    from leaderboard.plots import curves as figures

    found = cells(experiment, _runs(experiment, store))
    if not any(cell.runs for cell in found):
        raise SettingError(
            f"experiment: {experiment.name!r} has no finished run; first: rollcall run {experiment.name}"
        )
    table = sheet.paper_table(experiment, found, printed(experiment))
    rulings = [
        ruled(rule(claim, experiment.report, found), next(iter(experiment.report.metrics)))
        for claim in experiment.claims
    ]
    claims = "\n".join(rulings)
    folder.mkdir(parents=True, exist_ok=True)
    figure = figures.paper_figure(experiment, found)
    for end in ("png", "pdf"):
        figure.savefig(folder / f"figure.{end}", dpi=150)
    texts = {
        "md": f"# {experiment.title}\n\n{sheet.markdown(table)}\n{claims}\n",
        "csv": sheet.comma_separated(table),
        "tex": sheet.latex(table),
    }
    for end, text in texts.items():
        (folder / f"leaderboard.{end}").write_text(text, encoding="utf-8")
    if form is not Form.terminal:
        print(texts["tex" if form is Form.latex else form.value], end="")
        return
    out.print(sheet.terminal(table, f"{experiment.title} ({experiment.source})"))
    out.print(claims, markup=False, highlight=False)
    out.print(f"{folder}/leaderboard.md  .csv  .tex, figure.png  .pdf", highlight=False, soft_wrap=True)


def archive(
    experiments: Annotated[
        list[str] | None, typer.Argument(help="By default all of the papers'.", metavar="EXPERIMENT")
    ] = None,
    store: Store = STORE,
) -> None:
    """Keep the store's finished runs of the papers' experiments as small files in leaderboard/results."""
    from benchmark.sweep.mlflow_mirror import client
    from leaderboard.results import archive, load

    chosen = papers(experiments)
    everyone = [*chosen, *papers()]
    for home in dict.fromkeys(experiment.home for experiment in chosen):
        # Experiments that share a home share its runs, and each speaks of other metrics.
        metrics = {metric: None for one in everyone if one.home == home for metric in one.metrics}
        runs = load(client(store), home, list(metrics))
        if runs:
            file = archive(runs, home, list(metrics))
            out.print(f"{home}: {len(runs)} runs in {file}", highlight=False, soft_wrap=True)


def report() -> None:
    """Write leaderboard/REPRODUCTION.md and its figures from the kept results: every claim, and what came of it."""
    from leaderboard import unarchive
    from leaderboard.paper.cells import cells
    from leaderboard.paper.reproduction import FIGURES, FILE, reproduction
    from leaderboard.plots import curves as figures

    experiments = papers()
    FILE.write_text(reproduction(experiments), encoding="utf-8")
    for experiment in track(experiments, "figures", console=err, transient=True, disable=not err.is_terminal):
        found = cells(experiment, unarchive(experiment.home))
        if any(cell.runs for cell in found):
            picture = FIGURES / f"{experiment.name}.png"
            picture.parent.mkdir(parents=True, exist_ok=True)
            figures.paper_figure(experiment, found).savefig(picture, dpi=90)
    out.print(str(FILE), highlight=False, soft_wrap=True)


def papers(chosen: list[str] | None = None) -> list[Experiment]:
    """Experiments by name, or all that are of a paper."""
    found = [Experiment.read(name) for name in chosen or names()]
    return [experiment for experiment in found if experiment.source]


def _runs(experiment: Experiment, store: Path) -> list[Any]:
    """What is kept, and what the store has, which counts where both have a trial."""
    from leaderboard.results import load, unarchive

    runs = unarchive(experiment.home)
    if find_spec("mlflow"):
        from benchmark.sweep.mlflow_mirror import client

        runs += load(client(store), experiment.home, experiment.metrics)
    return runs
