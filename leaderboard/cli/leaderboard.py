"""`rollcall leaderboard`."""

from dataclasses import dataclass
from enum import StrEnum
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from benchmark.cli.options import STORE, Json, Name, Store, need_mlflow, out
from benchmark.config.base import validated
from benchmark.config.errors import SettingError
from benchmark.config.experiment import Experiment
from benchmark.config.nested import parse
from benchmark.config.report import Report
from leaderboard.cli.shared import FOLDER, RESULTS

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from leaderboard.run import Run
    from leaderboard.table import Table


class Form(StrEnum):
    terminal = "terminal"
    md = "md"
    csv = "csv"
    latex = "latex"


@dataclass(frozen=True)
class Board:
    """What is printed and written.

    Attributes:
        title: of the table.
        table: of the experiment.
        csv: the table as CSV.
        claims: a list in Markdown; empty for a ranking.
        figure: of the experiment.
        figure_files: their names.
        origin: versions and commits.
    """

    title: str
    table: "Table"
    csv: str
    claims: str
    figure: "Figure"
    figure_files: tuple[str, ...]
    origin: str


def leaderboard(
    experiment: Name,
    metric: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME=max|min", help="A column; the first one ranks. Default: the experiment's."),
    ] = None,
    form: Annotated[Form, typer.Option("--format", help="Format of the printed table.")] = Form.terminal,
    to: Annotated[
        Path | None, typer.Option(metavar="DIR", help="Folder of the files. Default: STORE/EXPERIMENT.")
    ] = None,
    archive: Annotated[Path, typer.Option(metavar="DIR", help="Folder that `rollcall archive` wrote.")] = FOLDER,
    store: Store = STORE,
    as_json: Json = False,
) -> None:
    """Print the table of an experiment and write it, with a figure, as files.

    For a paper's experiment it is the paper's table, printed numbers beside measured ones, and the paper's claims. Runs
    come from the store, from the archive, and from the results that come with Rollcall. For other experiments it is a
    ranking of the runs in the store.
    """
    chosen = _with_metrics(Experiment.read(experiment), metric)
    board = _paper(chosen, store, archive) if chosen.source else _ranking(chosen, store)
    folder = to or store / chosen.name
    texts = _write(board, chosen, folder)
    if as_json:
        from leaderboard.render import as_json as rendered

        print(rendered(board.table))
    elif form is not Form.terminal:
        print(texts["tex" if form is Form.latex else form.value], end="")
    else:
        from leaderboard.render import terminal

        out.print(terminal(board.table, board.title, out.width))
        if board.claims:
            out.print(board.claims, markup=False, highlight=False)
        files = ", ".join([f"leaderboard.{end}" for end in texts] + list(board.figure_files))
        out.print(f"In {folder}: {files}", highlight=False, soft_wrap=True)


def _with_metrics(experiment: Experiment, metrics: list[str] | None) -> Experiment:
    """The experiment with the metrics of `--metric NAME=max` as its columns."""
    if not metrics:
        return experiment
    directions = {name: values[0] for name, values in map(parse, metrics)}
    report = validated(Report, experiment.report.model_dump() | {"metrics": directions})
    return experiment.model_copy(update={"report": report})


def _write(board: Board, experiment: Experiment, folder: Path) -> dict[str, str]:
    """Write the table's files and the figure.

    Returns:
        the text of the files by their ending.
    """
    from leaderboard import render
    from leaderboard.plots.style import svg

    claims = f"\n{board.claims}\n" if board.claims else ""
    texts = {
        "md": f"# {experiment.title}\n\n{render.markdown(board.table)}{claims}",
        "csv": board.csv,
        "tex": render.latex(board.table),
        "html": render.html(board.table, board.title, experiment.about, svg(board.figure), board.origin),
    }
    folder.mkdir(parents=True, exist_ok=True)
    for end, text in texts.items():
        (folder / f"leaderboard.{end}").write_text(text, encoding="utf-8")
    for name in board.figure_files:
        board.figure.savefig(folder / name, dpi=150)
    return texts


def _ranking(experiment: Experiment, store: Path) -> Board:
    """The ranking of the runs in the store.

    Raises:
        SettingError: no run is finished and has all metrics.
    """
    need_mlflow()
    from benchmark.sweep.mlflow_mirror import client
    from leaderboard.plots.curves import ranking_figure
    from leaderboard.ranking.table import rank
    from leaderboard.render import all_digits
    from leaderboard.results import load

    metrics = experiment.report.metrics
    loaded = load(client(store), experiment.home)
    runs = [run for run in loaded if run.diverged or all(run.has(metric) for metric in metrics)]
    if not runs:
        named = ", ".join(metric.name for metric in metrics)
        raise SettingError(
            f"experiment: {experiment.name!r} has no finished run in MLflow with {named}; "
            f"first: rollcall run {experiment.name}"
        )
    ranking = rank(runs, metrics, experiment.report.last_rounds)
    table = ranking.table()
    figure = ranking_figure(ranking)
    return Board(experiment.title, table, all_digits(table), "", figure, ("leaderboard.png",), ranking.origin)


def _paper(experiment: Experiment, store: Path, archive: Path) -> Board:
    """The paper's table and claims.

    Raises:
        SettingError: no run is finished.
    """
    from leaderboard.paper.cells import cells
    from leaderboard.paper.claims import check_claim
    from leaderboard.paper.reported import printed
    from leaderboard.paper.sentences import claim_item
    from leaderboard.paper.table import paper_table
    from leaderboard.plots.curves import paper_figure
    from leaderboard.render import comma_separated

    all_cells = cells(experiment, _runs(experiment, store, archive))
    runs = [run for cell in all_cells for run in cell.runs.values()]
    if not runs:
        raise SettingError(
            f"experiment: {experiment.name!r} has no finished run; first: rollcall run {experiment.name}"
        )
    claims = [claim_item(check_claim(claim, experiment.report, all_cells)) for claim in experiment.claims]
    table = paper_table(experiment, all_cells, printed(experiment))
    versions, commits = (", ".join(sorted({run.tags[tag] for run in runs})) for tag in ("version", "commit"))
    return Board(
        title=f"{experiment.title} ({experiment.source})",
        table=table,
        csv=comma_separated(table),
        claims="\n".join(claims),
        figure=paper_figure(experiment, all_cells),
        figure_files=("figure.png", "figure.pdf"),
        origin=f"Rollcall {versions}, commit {commits}",
    )


def _runs(experiment: Experiment, store: Path, archive: Path) -> "list[Run]":
    """The archived runs and those of the store. Of runs of one trial the longest counts, of equal ones the store's."""
    from leaderboard.results import PACKAGE, load, unarchive

    runs = unarchive(experiment.home, PACKAGE, archive / RESULTS)
    if find_spec("mlflow"):
        from benchmark.sweep.mlflow_mirror import client

        runs += load(client(store), experiment.home, experiment.metrics)
    return runs
