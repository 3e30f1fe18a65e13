"""The board of an experiment: its table with claims and figure, as `rollcall leaderboard` prints and writes it."""

from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rollcall.benchmark.config.base import validated
from rollcall.benchmark.config.errors import SettingError
from rollcall.benchmark.config.experiment import Experiment, Report
from rollcall.benchmark.config.metric import Metric
from rollcall.benchmark.config.text import counted
from rollcall.leaderboard import render
from rollcall.leaderboard.cells import cells, planned_rounds, searches
from rollcall.leaderboard.comparison import against as differences
from rollcall.leaderboard.comparison import overall as over_conditions
from rollcall.leaderboard.comparison import overall_table, versions
from rollcall.leaderboard.paper.claims import ClaimResult
from rollcall.leaderboard.paper.experiment import PaperExperiment
from rollcall.leaderboard.paper.reported import printed
from rollcall.leaderboard.paper.reproduction import Judged
from rollcall.leaderboard.paper.sentences import claims_json, claims_list
from rollcall.leaderboard.ranking import axes, metric_of, rank
from rollcall.leaderboard.ranking import only as selected
from rollcall.leaderboard.render import Table
from rollcall.leaderboard.runs import Run, own
from rollcall.leaderboard.tables import long_rows, paper_table, ranking_table

if TYPE_CHECKING:
    import altair as alt


@dataclass(frozen=True)
class Board:
    """A table with its claims and figure, to be printed and written.

    Attributes:
        experiment: that it shows.
        title, table: of the experiment.
        figure: draws its figure.
        claims: of its experiment; none for a ranking.
        data: rows, claims (those of variants too) and provenance, for `--json`.
        stem: of the names of the files.
    """

    experiment: PaperExperiment
    title: str
    table: Table
    claims: list[ClaimResult]
    data: dict[str, Any]
    figure: "Callable[[], alt.ConcatChart]"
    stem: str = "leaderboard"

    def texts(self, why: bool = False) -> dict[str, str]:
        """The text of the files by their ending; with `why` also the evidence for claims."""
        told = render.marked_down("\n".join(claims_list(self.claims, why)))
        claims = f"\n{told}\n" if self.claims else ""
        return {
            "md": f"# {render.marked_down(self.experiment.title)}\n\n{render.markdown(self.table)}{claims}",
            "csv": render.comma_separated(self.data["rows"]),
            "tex": render.latex(self.table),
        }

    def write(self, folder: Path, texts: dict[str, str]) -> str:
        """Write the texts, by their ending, and the figure. Returns the names of the files in one line."""
        from rollcall.leaderboard.figures import FORMATS, save

        folder.mkdir(parents=True, exist_ok=True)
        files = [folder / f"{self.stem}.{end}" for end in texts]
        figures = [folder / f"{self.stem}{end}" for end in FORMATS]
        for file in (*files, *figures):
            if file.is_symlink():  # it may lead out of the store
                file.unlink()
        for file, text in zip(files, texts.values(), strict=True):
            file.write_text(text, encoding="utf-8")
        save(self.figure(), *figures)
        return ", ".join([files[0].name, *(file.suffix for file in (*files[1:], *figures))])


def own_table(experiment: PaperExperiment, store: Path) -> str:
    """The table of the user's own runs in Markdown, which MLflow shows; empty if there is no finished run."""
    try:
        is_paper = bool(experiment.source)
        runs = own(store, experiment.home, experiment.metrics if is_paper else None)
        board = paper_board(experiment, runs, store) if is_paper else ranking_board(experiment, store, runs, {})
    except SettingError:
        return ""
    return board.texts()["md"]


def is_board(experiment: Experiment) -> bool:
    """Whether methods are entered on it: it has searches with final runs."""
    return experiment.search is not None and experiment.search.finals is not None


def with_report(experiment: PaperExperiment, metrics: Sequence[str], last_rounds: int | None) -> PaperExperiment:
    """The experiment with the metrics of `--metric` as its columns, and the window of `--last-rounds`."""
    chosen = [metric_of("metric", text, experiment.report.metrics) for text in metrics]
    changes: dict[str, Any] = {"metrics": {metric.name: metric.direction for metric in chosen}} if chosen else {}
    changes |= {"last_rounds": last_rounds} if last_rounds else {}
    report = validated(Report, experiment.report.model_dump() | changes)
    return experiment.model_copy(update={"report": report})


def ranking_board(
    experiment: PaperExperiment,
    store: Path,
    runs: list[Run],
    conditions: dict[str, list[Any]],
    x: str | None = None,
    baseline: str = "",
    overall: bool = False,
) -> Board:
    """The ranking of runs, or of their methods over all conditions. Of kept runs those count that the table shows.

    Raises:
        SettingError: no run is finished and has all metrics, or they do not allow what is asked for.
    """
    metrics, last_rounds = experiment.report.metrics, experiment.report.last_rounds
    if any(run.source == "kept" for run in runs):
        made = cells(experiment, runs)
        of_cells = [run for cell in made for of in (cell.runs, cell.shorter_own_runs) for run in of.values()]
        inside = {run.tags["rollcall.trial"] for run in of_cells}
        others = [run for run in runs if run.source == "own" and run.tags["rollcall.trial"] not in inside]
        runs = [*(run for cell in made if not cell.is_analysis for run in cell.runs.values()), *others]
    if not runs:
        raise NoRuns(experiment, store)
    grid = axes(experiment)
    runs = selected(runs, grid, conditions)
    notes = [_sources(runs, store)]
    complete = [run for run in runs if run.diverged or all(run.has(metric) for metric in metrics)]
    if all(run.diverged for run in runs):
        notes.append("all runs diverged")
    elif not any(run.has(metrics[0]) for run in complete):
        raise _not_measured([metric for metric in metrics if not any(run.has(metric) for run in runs)] or metrics, runs)
    if len(complete) < len(runs):
        notes.append(f"{counted(len(runs) - len(complete), 'run')} without these metrics left out")
    runs, searched = complete, _searches(experiment, store, complete)
    ranking = rank(runs, metrics, last_rounds, grid, planned_rounds(experiment), searched)
    stem = "overall" if overall else "leaderboard"
    if overall:
        over = over_conditions(ranking)
        table, rows = overall_table(over, baseline)
    else:
        beside = differences(ranking, baseline) if baseline else None
        table = ranking_table(ranking, baseline, beside)
        rows = long_rows(ranking.cells, metrics, ranking.last_rounds)
        for row, (index, metric) in zip(rows, product(range(len(ranking.cells)), metrics), strict=bool(baseline)):
            one = beside[metric.name][index] if beside else None
            row |= {"against": baseline, **one.row} if one else {}
    table = replace(table, caption="; ".join([table.caption, *notes]))
    data = {"rows": rows, "claims": [], "provenance": _provenance(experiment, runs)}

    def figure() -> "alt.ConcatChart":
        from rollcall.leaderboard.figures import overall_chart, ranking_curves

        return overall_chart(over) if overall else ranking_curves(ranking, x or "")

    return Board(experiment, experiment.title, table, [], data, figure, stem)


def _searches(experiment: PaperExperiment, store: Path, runs: Sequence[Run]) -> dict[str, str]:
    """The settings that a search found: of the experiment's file, and of `rollcall tune` in this store."""
    searched, suffix = searches(experiment, runs), f"-{experiment.variant}" if experiment.variant else ""
    file = store / experiment.home / f"tuned{suffix}.yaml"
    if file.is_file():
        from rollcall.benchmark.search.answer import Tuned

        with suppress(SettingError):  # a damaged file is no reason to show no table
            searched |= searches(Tuned.read(file).applied(experiment), runs)
    return searched


def _sources(runs: Sequence[Run], store: Path) -> str:
    texts = [f"your own, in {run.server or store}" if run.source == "own" else "kept results" for run in runs]
    return f"runs: {' and '.join(sorted({*texts}, reverse=True))}"


class NoRuns(SettingError):
    """An experiment has no finished run in a store."""

    def __init__(self, experiment: PaperExperiment, store: Path) -> None:
        super().__init__(f"experiment: {experiment.name!r} has no finished run in {store}")


def _not_measured(metrics: Sequence[Metric], runs: Sequence[Run]) -> SettingError:
    measured = ", ".join(sorted({str(name) for run in runs for name in run.history}))
    return SettingError(f"metric: {metrics[0].column!r} is not allowed; no run measured it. Measured: {measured}")


def _provenance(experiment: PaperExperiment, runs: Sequence[Run]) -> dict[str, Any]:
    tags = {name: sorted({run.tags.get(name, "unknown") for run in runs}) for name in ("version", "commit", "device")}
    return {"experiment": experiment.name, "sources": sorted({run.source for run in runs}), **tags}


def paper_board(experiment: PaperExperiment, runs: list[Run], store: Path, x: str | None = None) -> Board:
    """The paper's table and claims; the table of its variants, named, if only these were run.

    Own runs that are shorter or fewer than the kept ones are not part of the table; the notes count them.

    Raises:
        SettingError: no run is finished, or none measured a metric.
    """
    one, metrics, numbers = Judged(experiment, runs), experiment.report.metrics, printed(experiment)
    of_variants = {name: variant.ran for name, variant in one.variants.items() if variant.ran}
    ran = one.ran or versions(of_variants)
    runs = [run for cell in ran for run in cell.runs.values()]
    if not runs:
        raise NoRuns(experiment, store)
    all_diverged = all(run.diverged for run in runs)
    if not all_diverged and not any(run.has(metric) for run in runs for metric in metrics):
        raise _not_measured(metrics, runs)
    table = one.table if one.ran else paper_table(experiment, ran, numbers)
    notes = [_sources(runs, store), *(["all runs diverged"] if all_diverged else [])]
    beside = [replace(cell, runs=cell.shorter_own_runs) for cell in one.cells if cell.shorter_own_runs]
    if beside:
        notes.append(f"your own runs of {counted(len(beside), 'cell')} have fewer rounds or seeds: see --mine")
    if not one.ran:
        notes.append(f"no run with the paper's settings; shown: variants {', '.join(of_variants)}")
    elif len(ran) < len(one.cells):
        notes.append(f"{len(ran)} of {counted(len(one.cells), 'cell')} run")
    shown = one if one.ran else one.variants[next(iter(of_variants))]

    def figure() -> "alt.ConcatChart":
        from rollcall.leaderboard.figures import paper_curves

        return paper_curves(shown.experiment, shown.ran, x or "")

    return Board(
        experiment=experiment,
        title=f"{experiment.title} ({experiment.source})",
        table=replace(table, caption="; ".join([table.caption, *notes])),
        claims=one.claims,
        data={
            "rows": long_rows([*ran, *beside], metrics, experiment.report.last_rounds, numbers),
            "claims": claims_json(one.told),
            "provenance": _provenance(experiment, runs),
        },
        figure=figure,
    )
