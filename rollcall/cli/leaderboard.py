"""`rollcall leaderboard` and `rollcall compare`: tables of results."""

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from rollcall.benchmark.config.errors import SettingError, listed, near
from rollcall.benchmark.config.experiment import LIBRARY, names
from rollcall.benchmark.config.metric import COSTS
from rollcall.benchmark.config.text import command, parse_all, strict_json
from rollcall.benchmark.sweep.run import RECORD, file_of_runs
from rollcall.cli import options as opt
from rollcall.cli.options import METRIC, STORE, err, out, say, there
from rollcall.leaderboard.paper.experiment import PaperExperiment

if TYPE_CHECKING:
    from rollcall.benchmark.config.metric import Metric
    from rollcall.leaderboard.cells import Cell
    from rollcall.leaderboard.paper.reproduction import Judged
    from rollcall.leaderboard.runs import Run

X = Literal["round", "gradients", "floats", "seconds"]
Form = Literal["terminal", "md", "csv", "latex"]


def leaderboard(
    experiment: opt.Name,
    variant: opt.Variant = "",
    metric: Annotated[
        list[str] | None, typer.Option(metavar=METRIC, help="A column; the first ranks. Default: the experiment's.")
    ] = None,
    only: opt.Only = None,
    mine: opt.Mine = False,
    against: Annotated[
        str, typer.Option(metavar="METHOD", help="Show differences to this method, paired by seed.")
    ] = "",
    overall: Annotated[
        bool, typer.Option("--overall", help="Rank methods over all conditions by their mean rank.")
    ] = False,
    why: Annotated[bool, typer.Option("--why", help="Print the evidence of verdicts; of a board all tables.")] = False,
    last_rounds: Annotated[
        int | None, typer.Option(min=1, metavar="N", help="Average this many last rounds. Default: the experiment's.")
    ] = None,
    x: Annotated[X | None, typer.Option(help="The x axis of the figure. Default: the experiment's.")] = None,
    form: Annotated[Form | None, typer.Option("--format", help="Format of the table. Default: terminal.")] = None,
    to: Annotated[Path | None, typer.Option(metavar="DIR", help="Folder of files. Default: STORE/EXPERIMENT.")] = None,
    html: Annotated[
        Path | None, typer.Option(metavar="DIR", help="Write pages for a browser into this folder, as `site` does.")
    ] = None,
    store: opt.Store = STORE,
    mlflow: Annotated[
        str, typer.Option(metavar="URI", help="Read your runs from this MLflow server or database.")
    ] = "",
    as_json: opt.Json = False,
) -> None:
    """Print an experiment's table, and write it with a figure.

    With --json nothing is written but the pages of --html.

    For a paper's experiment it is the paper's table, printed numbers beside measured ones, and the paper's claims. Your
    own runs, from the run folders in the store or an MLflow server, replace kept results of the same cell if they have
    as many rounds and seeds. For other experiments it is a ranking of your own runs, or else of the kept ones; with
    --against or --overall the kept runs of other cells count too, under the same conditions and after as many rounds.
    """
    if as_json and form is not None:
        raise SettingError("--format is not allowed with --json; leave one of them out")
    from rollcall.leaderboard import leaderboards, render
    from rollcall.leaderboard.paper.reproduction import Judged
    from rollcall.leaderboard.paper.sentences import claims_list
    from rollcall.leaderboard.ranking import axes
    from rollcall.leaderboard.ranking import only as selected
    from rollcall.leaderboard.runs import finished

    chosen = PaperExperiment.read(experiment)
    if chosen.is_board:
        other: dict[str, Any] = {"--variant": variant, "--metric": metric, "--only": only, "--overall": overall}
        other |= {"--last-rounds": last_rounds, "--x": x, "--mlflow": mlflow, "--format csv": form == "csv"}
        if given := [option for option, value in other.items() if value]:
            raise SettingError(
                f"{given[0]} is not allowed for a board; {experiment} takes --against, --why, --format md or latex, "
                "--to, --html, --mine, --store and --json"
            )
        _board(experiment, against, why, form, to, store, mine, as_json)
        if html is not None:
            _pages(html, chosen, [], experiment, store, mine=mine)
        return
    stated = chosen.as_(variant) if variant else chosen
    chosen = leaderboards.with_report(stated, metric or [], last_rounds)
    conditions = parse_all("only", only or [])
    is_paper = bool(chosen.source) and not (against or overall)
    if stated.judged and not stated.source:
        say(f"{chosen.name}: its claims are judged only if it has a source, such as `source: ours`", err)
    # A ranking may need any of them, and what a misspelt one could be.
    columns = [*chosen.metrics, *COSTS] if is_paper and not metric else None
    beside = bool(chosen.source or against or overall)
    runs = finished(chosen.home, store, mine or not beside, columns, mlflow)
    if not (runs or mine or mlflow):
        runs = finished(chosen.home, None)
    whole = Judged(stated, runs) if stated.source and (metric or last_rounds or only) else None
    try:
        if is_paper:
            shown = leaderboards.paper_leaderboard(*leaderboards.in_view(chosen, runs, conditions), store, x, whole)
        else:
            shown = leaderboards.ranking_leaderboard(chosen, store, runs, conditions, x, against, overall)
    except leaderboards.NoRuns as error:
        if mlflow:
            from rollcall.benchmark.sweep.mlflow_copy import shown as address

            raise SettingError(f"experiment: {chosen.name!r} has no finished run in {address(mlflow)}") from None
        first = command("run", experiment, *(["--variant", variant] if variant else []), store=store)
        raise SettingError(f"{error}; first: {first}") from None
    if html is not None:
        if chosen.source:
            view = leaderboards.in_view(chosen, runs, conditions)
        else:
            view = (chosen, selected(leaderboards.in_ranking(chosen, runs), axes(chosen, runs), conditions))
        _pages(html, *view, experiment, store, whole)
    if as_json:
        print(json.dumps(shown.data, indent=1))
        return
    texts = shown.texts(why)
    if form not in (None, "terminal"):
        print(texts["tex" if form == "latex" else form], end="")
    else:
        out.print(render.terminal(shown.table, shown.title, out.width))
        told = "\n".join(claims_list(shown.claims, why))
        out.print(told.replace("**", "").replace("`", ""), highlight=False)
        if shown.claims and not why:
            say("--why prints the evidence and the causes.")
    if not (to or mlflow or _is_known(store)):
        return
    folder = to or store / chosen.name
    files = leaderboards.written(folder, shown.stem, texts, shown.figure())
    if form in (None, "terminal"):
        say(f"In {folder}: {files}")


def _is_known(store: Path) -> bool:
    """Whether it is a folder, or the default store, which may be new. Otherwise a line says that nothing is written."""
    known = store.is_dir() or store == STORE
    if not known:
        say(f"{store}: there is no such folder. These are kept results; no file is written without --to DIR", err)
    return known


def _pages(
    folder: Path,
    chosen: PaperExperiment,
    runs: "list[Run]",
    name: str,
    store: Path,
    whole: "Judged | None" = None,
    mine: bool = False,
) -> None:
    """Write the pages of one experiment."""
    from rollcall.leaderboard.site.build import build, collect

    shown = collect(chosen, name, runs, store, whole, kept=not mine)
    say(build(folder, [shown], command("leaderboard", name, "--html", folder)), err)


def _board(
    name: str, against: str, why: bool, form: Form | None, to: Path | None, store: Path, mine: bool, as_json: bool
) -> None:
    """Print a board, and write its tables and its picture. `--why` and files have all tables."""
    from rollcall.benchmark.search.board import Board
    from rollcall.leaderboard import render, standing
    from rollcall.leaderboard.figures import board_chart
    from rollcall.leaderboard.leaderboards import written
    from rollcall.leaderboard.names import method_name

    try:
        shown = standing.standing(Board.read(name), store, kept=not mine)
    except standing.NoEntries as error:
        raise SettingError(f"{error}; first: {command('enter', 'METHOD', '--board', name, store=store)}") from None
    if as_json:
        print(strict_json(standing.as_data(shown)))
        return
    tables = standing.tables(shown, against or next(iter(shown.entries)))
    if why or form in ("md", "latex"):
        tables["patterns"] = standing.pattern_table(shown.board)
    markdown = "\n".join(f"## {heading}\n\n{render.markdown(table)}" for heading, table in tables.items())
    latex = "\n".join(map(render.latex, tables.values()))
    if form in ("md", "latex"):
        print(markdown if form == "md" else latex, end="")
    else:
        for heading, table in tables.items():
            if why or heading in ("test accuracy", f"minus {method_name(against)}"):
                out.print(render.terminal(table, f"{shown.board.name}: {heading}", out.width))
        for line in standing.expectations(shown):
            say(line)
    if not (to or _is_known(store)):
        return
    folder = to or store / shown.board.name
    files = written(folder, "leaderboard", {"md": markdown, "tex": latex}, board_chart(shown))
    if form in (None, "terminal"):
        say(f"In {folder}: {files}" + ("" if why else "\n--why prints all tables."))


PAPER = "paper"
"""The name of an experiment as its file states it, beside those of its variants."""


def compare(
    a: Annotated[str, typer.Argument(metavar="A", help="A method, or a variant; `paper`: the file without one.")],
    b: Annotated[str, typer.Argument(metavar="B", help="What it is compared with: the difference is A minus B.")],
    experiment: Annotated[
        str, typer.Argument(metavar="EXPERIMENT", help="A name or a YAML file. Default: all that have both.")
    ] = "",
    metric: Annotated[str, typer.Option(metavar=METRIC, help="Default: the first metric of each experiment.")] = "",
    mine: opt.Mine = False,
    store: opt.Store = STORE,
    as_json: opt.Json = False,
) -> None:
    """Compare two methods, or two variants, cell by cell.

    A row has both means, their difference with its 95 % interval, and the number of seeds in which A is better. Two
    cells are compared if their other settings are equal, after equal rounds.
    """
    from rollcall.leaderboard import render
    from rollcall.leaderboard.leaderboards import unmeasured
    from rollcall.leaderboard.ranking import metric_of
    from rollcall.leaderboard.runs import finished
    from rollcall.leaderboard.tables import Comparison, comparison_tables, how, pairs

    a, b = a.rpartition(":")[2], b.rpartition(":")[2]
    if a == b:
        raise SettingError(f"compare: {a!r} twice is not allowed; must be two methods or variants")
    found: dict[str, list[Comparison]] = {}
    seen: list[tuple[set[str], set[str]]] = []
    labels: set[str] = set()
    ended: list[Run] = []
    measured, paired, last_rounds = False, False, 0
    asked = [PaperExperiment.read(experiment)] if experiment else []
    if asked and asked[0].is_board:
        at = command("leaderboard", experiment, "--against", b)
        raise SettingError(f"experiment: {experiment} is a board; its methods are compared by: {at}")
    if mine:
        there(store)
    grids = [] if asked else [*_grids(store)]
    for one in asked or [one for one, own in grids if {a, b} <= own or (store / one.home).is_dir()]:
        last_rounds, shown = one.report.last_rounds, one.report.metrics
        chosen = metric_of("metric", metric, shown) if metric else shown[0]
        runs = finished(one.home, store, mine)
        ended += [run for run in runs if not run.diverged]
        measured |= any(run.has(chosen) for run in runs)
        by_name = _cells(one, a, b, runs, chosen)
        ran = [cell for own in by_name.values() for cell in own if cell.runs]
        labels |= {PAPER, *one.variants, *(label for cell in ran for label in cell.labels.values())}
        for name, own in by_name.items():
            every = [Comparison(*pair, chosen, last_rounds) for pair in pairs(own, a, b)]
            paired |= any(pair.cell.runs.keys() & pair.other.runs.keys() for pair in every)
            new = [pair for pair in every if sum(pair.wins) and (pair.cell.trials, pair.other.trials) not in seen]
            seen += [(pair.cell.trials, pair.other.trials) for pair in new]
            found |= {name: new} if new else {}
    if not found:
        if ended and not measured:
            raise unmeasured(chosen, ended)
        if paired:
            raise SettingError(
                f"compare: runs of {a!r} and {b!r} have no values in their last {last_rounds} rounds in common; run "
                "more rounds"
            )
        where = experiment or (f"{store}" if mine else f"the kept results or in {store}")
        known = labels.union(*(own for _, own in grids)) - {""}
        for name in (a, b):
            if known and name not in known:
                of = (
                    f"must be one of {listed(sorted(known), name)}"
                    if asked
                    else f"see rollcall list{near(known, name)}"
                )
                raise SettingError(f"compare: {name!r} is no method or variant with runs in {where}; {of}")
        raise SettingError(
            f"compare: there are no equal settings with runs of both {a!r} and {b!r} in {where}; see rollcall list"
        )
    among = sum(map(len, found.values()))
    found = {name: [replace(one, among=among) for one in every] for name, every in found.items()}
    tables, data = comparison_tables(found, a, b)
    if as_json:
        print(strict_json({"a": a, "b": b, **data}))
        return
    for title, table in tables.items():
        out.print(render.terminal(table, title, out.width))
    wins = f"wins: seeds in which {a} is better; a diverged run is worse than all others"
    out.print(f"{data['overall']['says']}\n")
    out.print(f"{how(b, [one for every in found.values() for one in every])}; {wins}", style="dim italic")


def _cells(experiment: PaperExperiment, a: str, b: str, runs: "list[Run]", metric: "Metric") -> "dict[str, list[Cell]]":
    """The cells to pair, by the name of the experiment; of two variants those of both, with a label on this axis."""
    from rollcall.leaderboard.cells import cells
    from rollcall.leaderboard.ranking import axes, rank
    from rollcall.leaderboard.tables import by_condition, versions

    variants = {PAPER: experiment} | {name: experiment.as_(name) for name in experiment.variants}
    if not experiment.source and not {a, b} & {*variants}:
        complete = [run for run in runs if run.diverged or run.has(metric)]
        ranking = rank(complete, [metric], experiment.report.last_rounds, axes(experiment, runs)) if complete else None
        return {experiment.name: by_condition(ranking) if ranking else []}
    if a in variants and b in variants:
        return {experiment.name: versions({name: cells(variants[name], runs) for name in (a, b)})}
    suffix = {name: "" if name == PAPER else f" ({name})" for name in variants}
    return {f"{experiment.name}{suffix[name]}": cells(variants[name], runs) for name in variants}


def _grids(store: Path) -> Iterator[tuple[PaperExperiment, set[str]]]:
    """The experiments of the suite and those with own runs, no boards; each with the labels of its grids."""
    records = [*store.glob(f"*/{RECORD}"), *store.glob(f"*/*/{RECORD}")]
    files = [file for record in records if (file := file_of_runs(record.parent))]
    for name in dict.fromkeys([*names(), *(file for file in files if LIBRARY not in Path(file).parents)]):
        try:
            experiment = PaperExperiment.read(name)
        except SettingError as error:  # a file of the user's, which was not asked for
            say(f"left out: {error}", err)
            continue
        grids = [experiment.axes, *(variant.grid for variant in experiment.variants.values())]
        known = {PAPER, *experiment.variants, *(label for grid in grids for axis in grid.values() for label in axis)}
        if not experiment.is_board:
            yield experiment, known
