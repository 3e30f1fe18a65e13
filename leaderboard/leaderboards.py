"""The leaderboard of an experiment: its table with claims and figure, as `rollcall leaderboard` shows it."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rollcall.benchmark.config.base import validated
from rollcall.benchmark.config.errors import SettingError
from rollcall.benchmark.config.experiment import Report
from rollcall.benchmark.config.grid import grid_points
from rollcall.benchmark.config.metric import Metric
from rollcall.benchmark.config.text import counted
from rollcall.benchmark.federation.run_folder import replacing
from rollcall.leaderboard import render
from rollcall.leaderboard.cells import cells, key_of, own_methods, planned_rounds, searches, with_own_methods
from rollcall.leaderboard.paper.claims import ClaimResult
from rollcall.leaderboard.paper.experiment import Claim, PaperExperiment, printed
from rollcall.leaderboard.paper.reproduction import Judged
from rollcall.leaderboard.paper.sentences import claims_json, claims_list
from rollcall.leaderboard.ranking import axes, conditions_of, metric_of, rank
from rollcall.leaderboard.ranking import only as selected
from rollcall.leaderboard.render import Table
from rollcall.leaderboard.runs import Run, own
from rollcall.leaderboard.tables import against as differences
from rollcall.leaderboard.tables import long_rows, overall_table, paper_table, ranking_table, versions
from rollcall.leaderboard.tables import overall as over_conditions

if TYPE_CHECKING:
    import altair as alt


@dataclass(frozen=True)
class Leaderboard:
    """A table with its claims (none for a ranking), to be printed and written; `figure` draws its figure.

    `data` has rows, claims (those of variants too) and provenance, as `--json`. `stem` is of the names of the files.
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
        title = render.marked_down(self.experiment.title)
        return {
            "md": f"# {title}\n\n{render.markdown(self.table)}" + (f"\n{told}\n" if self.claims else ""),
            "csv": render.comma_separated(self.data["rows"]),
            "tex": render.latex(self.table),
        }


def written(folder: Path, stem: str, texts: Mapping[str, str], chart: "alt.ConcatChart") -> str:
    """Write texts, by the ending of their files, and a chart. Returns the names of the files in one line.

    Raises SettingError: the folder cannot be written.
    """
    from rollcall.leaderboard.figures import FORMATS, save

    files = {folder / f"{stem}.{end}": text for end, text in texts.items()}
    figures = [folder / f"{stem}{end}" for end in FORMATS]
    names = [*files, *figures]
    try:
        for file in names:
            render.clear(file)
        for file, text in files.items():
            with replacing(file) as scratch:
                scratch.write_text(text, encoding="utf-8")
        save(chart, *figures)
    except OSError as error:
        told = f"the files cannot be written ({error.strerror}); choose a folder with --to DIR"
        raise SettingError(f"{folder}: {told}") from None
    return ", ".join([names[0].name, *(file.suffix for file in names[1:])])


def own_table(experiment: PaperExperiment, store: Path) -> str:
    """The table of the user's own runs in Markdown, which MLflow shows; empty if there is no finished run."""
    try:
        runs = own(store, experiment.home, experiment.metrics if experiment.source else None)
        if experiment.source:
            return paper_leaderboard(experiment, runs, store).texts()["md"]
        return ranking_leaderboard(experiment, store, runs, {}).texts()["md"]
    except SettingError:
        return ""


def with_report(experiment: PaperExperiment, metrics: Sequence[str], last_rounds: int | None) -> PaperExperiment:
    """The experiment with the metrics of `--metric` as its columns, and the window of `--last-rounds`.

    Its claims are about the same metrics as before.
    """
    chosen = [metric_of("metric", text, experiment.report.metrics) for text in metrics]
    changes: dict[str, Any] = {"metrics": {metric.name: metric.direction for metric in chosen}} if chosen else {}
    changes |= {"last_rounds": last_rounds} if last_rounds else {}
    report = validated(Report, experiment.report.model_dump() | changes)

    def stated(claims: Sequence[Claim]) -> dict[str, Any]:
        first = experiment.report.metrics[0]
        return {"claims": tuple(one.model_copy(update={"metric": one.metric or first}) for one in claims)}

    variants = {name: one.model_copy(update=stated(one.claims)) for name, one in experiment.variants.items()}
    return experiment.model_copy(update={"report": report, "variants": variants, **stated(experiment.claims)})


def in_view(
    experiment: PaperExperiment, runs: list[Run], conditions: Mapping[str, list[Any]]
) -> tuple[PaperExperiment, list[Run]]:
    """The part of an experiment that `--only` keeps, and the runs without those of own methods that it leaves out."""
    own = own_methods(experiment, runs)
    part = (experiment.joined("algorithm", own) if own else experiment).only(conditions)
    left = [method for method in own if method not in part.axes["algorithm"].values()]
    return part, [run for run in runs if run.spec.get("algorithm") not in left]


def ranking_leaderboard(
    experiment: PaperExperiment, store: Path, runs: list[Run], conditions: dict[str, list[Any]], x: str | None = None,
    baseline: str = "", overall: bool = False,
) -> Leaderboard:  # fmt: skip
    """The ranking of runs, or of their methods over all conditions. Of kept runs those count that are `in_ranking`.

    Raises SettingError: no run is finished and has all metrics, or they do not allow what is asked for.
    """
    metrics, last_rounds = experiment.report.metrics, experiment.report.last_rounds
    runs = in_ranking(experiment, runs)
    if not runs:
        raise NoRuns(experiment, store)
    grid = axes(experiment, runs)
    runs = selected(runs, grid, conditions)
    complete = [run for run in runs if run.diverged or all(run.has(metric) for metric in metrics)]
    unmeasured = [metric for metric in metrics if not any(run.has(metric) for run in runs)] or metrics
    notes = _notes(runs, store, [] if any(not run.diverged for run in complete) else unmeasured)
    if left := len(runs) - len(complete):
        notes.append(f"{counted(left, 'run')} without these metrics left out")
    runs, searched = complete, _searches(experiment, store, complete)
    ranking = rank(runs, metrics, last_rounds, grid, planned_rounds(experiment), searched)
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
    data = {"rows": rows, "claims": [], "provenance": _provenance(experiment, runs)}

    def figure() -> "alt.ConcatChart":
        from rollcall.leaderboard.figures import overall_chart, ranking_curves

        return overall_chart(over) if overall else ranking_curves(ranking, x or "", experiment.report)

    stem = "overall" if overall else "leaderboard"
    table = replace(table, caption="; ".join([table.caption, *notes]))
    return Leaderboard(experiment, experiment.title, table, [], data, figure, stem)


def in_ranking(experiment: PaperExperiment, runs: list[Run]) -> list[Run]:
    """The runs that count in a ranking: of kept ones those that the table shows.

    Beside the user's own runs of an experiment without a paper these are the kept runs of other cells, under conditions
    and after rounds that the user's runs have. Of a variant its own runs count, without those after `--set`.
    """
    if experiment.variant:
        inside = {key_of(point.spec) for point in grid_points(with_own_methods(experiment, runs))}
        runs = [run for run in runs if key_of(run.spec) in inside]
    users = [run for run in runs if run.source == "own"]
    if len(users) == len(runs):
        return runs
    competing = not experiment.source and bool(users)  # kept runs stand beside the user's, and replace none
    of_table = [run for run in runs if run.source == "kept"] if competing else runs
    shown = [run for cell in cells(experiment, of_table) if not cell.is_analysis for run in cell.runs.values()]
    if competing:
        ran, among = {key_of(run.spec) for run in users}, {conditions_of(run.cell) for run in users}
        shown = [run for run in shown if key_of(run.spec) not in ran and conditions_of(run.cell) in among]
    inside = {key_of(run.spec) for run in shown}
    return [*shown, *(run for run in users if key_of(run.spec) not in inside)]


def _notes(runs: Sequence[Run], store: Path, missing: Sequence[Metric]) -> list[str]:
    """Where the runs are from, and whether all diverged.

    Raises SettingError: they did not, and yet metrics are missing.
    """
    texts = {f"your own, in {run.server or store}" if run.source == "own" else "kept results" for run in runs}
    notes = [f"runs: {' and '.join(sorted(texts, reverse=True))}"]
    if all(run.diverged for run in runs):
        return [*notes, "all runs diverged"]
    if missing:
        raise unmeasured(missing[0], runs)
    return notes


def unmeasured(metric: Metric, runs: Iterable[Run]) -> SettingError:
    """The error of a metric that none of these runs measured."""
    measured = ", ".join(sorted({str(name) for run in runs for name in run.history}))
    return SettingError(f"metric: {metric.column!r} is not allowed; no run measured it. Measured: {measured}")


def _searches(experiment: PaperExperiment, store: Path, runs: Sequence[Run]) -> dict[str, str]:
    """The settings that a search found: of the experiment's file, and of `rollcall tune` in this store."""
    searched, suffix = searches(experiment, runs), f"-{experiment.variant}" if experiment.variant else ""
    names = dict.fromkeys((experiment.home, experiment.name))  # its runs may be those of its base
    for file in filter(Path.is_file, (store / name / f"tuned{suffix}.yaml" for name in names)):
        from rollcall.benchmark.search.answer import Tuned

        with suppress(SettingError):  # a damaged file is no reason to show no table
            searched |= searches(Tuned.read(file).applied(experiment), runs)
    return searched


class NoRuns(SettingError):
    """An experiment has no finished run in a store."""

    def __init__(self, experiment: PaperExperiment, store: Path) -> None:
        super().__init__(f"experiment: {experiment.name!r} has no finished run in {store}")


def _provenance(experiment: PaperExperiment, runs: Sequence[Run]) -> dict[str, Any]:
    tags = {name: sorted({run.tags.get(name, "unknown") for run in runs}) for name in ("version", "commit", "device")}
    return {"experiment": experiment.name, "sources": sorted({run.source for run in runs}), **tags}


def paper_leaderboard(
    experiment: PaperExperiment, runs: list[Run], store: Path, x: str | None = None, whole: Judged | None = None
) -> Leaderboard:
    """The paper's table and claims; the table of its variants, named, if only these were run.

    Own runs that are shorter or fewer than the kept ones are not part of the table; a note counts them. If the table is
    of a part of the experiment or has another report, `whole` has the claims.

    Raises SettingError: no run is finished, or none measured a metric.
    """
    one, metrics, numbers = Judged(experiment, runs), experiment.report.metrics, printed(experiment)
    judged = whole or one
    of_variants = {name: variant.ran for name, variant in one.variants.items() if variant.ran}
    ran = one.ran or versions(of_variants)
    shown_runs = [run for cell in ran for run in cell.runs.values()]
    if not shown_runs:
        raise NoRuns(experiment, store)
    has_none = not any(run.has(metric) for run in shown_runs for metric in metrics)
    notes = _notes(shown_runs, store, metrics if has_none else [])
    own_digests = {run.digest for run in runs if run.source == "own"} & {
        point.digest for point in grid_points(experiment)
    }
    if hidden := len(own_digests - {run.digest for run in shown_runs if run.source == "own"}):
        notes.append(f"{counted(hidden, 'run')} of your own with fewer rounds or seeds not shown: see --mine")
    if not one.ran:
        notes.append(f"no run with the paper's settings; shown: variants {', '.join(of_variants)}")
    elif len(ran) < len(one.cells):
        notes.append(f"{len(ran)} of {counted(len(one.cells), 'cell')} run")
    shown = one if one.ran else one.variants[next(iter(of_variants))]
    table = paper_table(experiment, ran, numbers)
    rows = long_rows(ran, metrics, experiment.report.last_rounds, numbers)

    def figure() -> "alt.ConcatChart":
        from rollcall.leaderboard.figures import paper_curves

        return paper_curves(shown.experiment, shown.ran, x or "")

    return Leaderboard(
        experiment=experiment,
        title=f"{experiment.title} ({experiment.source})",
        table=replace(table, caption="; ".join([table.caption, *notes])),
        claims=judged.claims,
        data={"rows": rows, "claims": claims_json(judged.told), "provenance": _provenance(experiment, shown_runs)},
        figure=figure,
    )
