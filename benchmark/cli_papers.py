"""`rollcall leaderboard` of a paper's experiment, `rollcall archive` and `rollcall report`."""

from enum import StrEnum
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.progress import track

from benchmark.errors import SettingError
from benchmark.experiment import Experiment, names


class Form(StrEnum):
    terminal = "terminal"
    md = "md"
    csv = "csv"
    latex = "latex"


Store = Annotated[Path, typer.Option(envvar="ROLLCALL_STORE", help="Where run folders lie.")]
STORE = Path("runs")
out = Console()
err = Console(stderr=True)


def show(experiment: Experiment, store: Path, folder: Path, form: Form) -> None:
    """Print a paper's table, measured beside printed, and its claims; write both, and the figure, into a folder.

    Raises:
        SettingError: nothing of it was run.
    """
    from leaderboard import figures, sheet
    from leaderboard.cells import cells
    from leaderboard.claims import rule
    from leaderboard.printed import printed
    from leaderboard.reproduction import ruled

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
    from benchmark.tracking import client
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
    from leaderboard import figures, unarchive
    from leaderboard.cells import cells
    from leaderboard.reproduction import FIGURES, FILE, reproduction

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
        from benchmark.tracking import client

        runs += load(client(store), experiment.home, experiment.metrics)
    return runs
