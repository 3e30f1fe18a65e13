"""The command line: `rollcall`. Each command reads its settings, calls the house that does the work, and prints."""

import json
import re
import sys
from dataclasses import asdict
from enum import StrEnum
from functools import partial
from importlib.util import find_spec
from inspect import getdoc
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
import yaml
from rich.console import Console
from rich.markup import escape
from rich.progress import track
from rich.table import Table as Grid

from benchmark import cli_papers
from benchmark.cli_bench import bench
from benchmark.cli_data import data
from benchmark.cli_papers import Form
from benchmark.cli_plan import how_long, plans_of, within
from benchmark.errors import SettingError, at
from benchmark.experiment import Experiment, Report, names, parse
from benchmark.settings import validated

if TYPE_CHECKING:
    from benchmark.jobs import Job
    from benchmark.progress import View

app = typer.Typer(
    help="Federated learning when not every client answers: run experiments, compare methods, read the tables.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)
app.add_typer(data, name="data")
app.command()(bench)
app.command()(cli_papers.archive)
app.command()(cli_papers.report)
out = Console()
err = Console(stderr=True)


class Executor(StrEnum):
    ray = "ray"
    inline = "inline"


class Picture(StrEnum):
    uplinks = "uplinks"
    probabilities = "probabilities"
    separation = "separation"


Name = Annotated[str, typer.Argument(help="A name that `rollcall list` shows, or a YAML file.", metavar="EXPERIMENT")]
Names = Annotated[
    str,
    typer.Argument(
        help="A name that `rollcall list` shows, a paper for all of its, or a YAML file.", metavar="EXPERIMENT"
    ),
]
Variant = Annotated[str, typer.Option(help="Another reading that the experiment has, such as as_released.")]
Seeds = Annotated[str, typer.Option(metavar="SEED,...", help="Instead of the experiment's.")]
Only = Annotated[
    list[str] | None, typer.Option(metavar="AXIS=VALUE,...", help="Only these values of an axis of the grid.")
]
Set = Annotated[
    list[str] | None,
    typer.Option("--set", metavar="SETTING=VALUE,...", help="Change a setting; try several."),
]
Rounds = Annotated[int | None, typer.Option(help="Instead of the experiment's.")]
Methods = Annotated[
    list[str] | None, typer.Option("--algorithm", metavar="FILE.py:CLASS", help="Add a method of your own.")
]
Store = Annotated[Path, typer.Option(envvar="ROLLCALL_STORE", help="Where run folders lie.")]
Json = Annotated[bool, typer.Option("--json", help="Print JSON instead.")]
STORE = Path("runs")
INTERRUPTED = 130
"""The exit code of a command that Ctrl-C ended, as shells have it."""


@app.command("list")
def list_(as_json: Json = False) -> None:
    """Experiments, and the names that experiment files are made of."""
    from benchmark.choices import KINDS

    experiments = {name: Experiment.read(name) for name in names()}
    found = {"experiment": {name: experiment.title for name, experiment in experiments.items()}}
    for kind, choices in KINDS.items():
        found[kind] = {name: _summary(kind, thing) for name, thing in choices.known.items()}
    if as_json:
        print(json.dumps(found, indent=1))
        return
    for paper in sorted({name.rpartition("/")[0] for name in experiments}):  # the suite's own, of no paper, first
        grid = Grid.grid(padding=(0, 3, 0, 0))
        for name, experiment in experiments.items():
            if name.rpartition("/")[0] == paper:
                grid.add_row(f"  [cyan]{name}[/cyan]", escape(experiment.title), escape(experiment.source))
        out.print(f"[bold]experiment{'s of ' * bool(paper)}{paper}[/bold]", grid, "")
    for kind in KINDS:
        grid = Grid.grid(padding=(0, 3, 0, 0))
        for name, summary in found[kind].items():
            grid.add_row(f"  [cyan]{name}[/cyan]", summary)
        out.print(f"[bold]{kind}[/bold]", grid, "")


@app.command()
def show(
    experiment: Names,
    variant: Variant = "",
    seeds: Seeds = "",
    only: Only = None,
    settings: Set = None,
    rounds: Rounds = None,
    methods: Methods = None,
    partition: Annotated[bool, typer.Option("--partition", help="What the clients of the first trial hold.")] = False,
    plot: Annotated[Path | None, typer.Option(help="Draw that into this file.", metavar="FILE")] = None,
    estimate: Annotated[bool, typer.Option(help="Probe for a few seconds how long it would take here.")] = True,
    store: Store = STORE,
    as_json: Json = False,
) -> None:
    """An experiment's settings, grid and claims, how many trials are done, and how long all would take."""
    plans = plans_of(experiment, variant, seeds, only, settings, rounds, methods)
    if partition or plot is not None:
        _show_partition(plans[0].places[0].trial, plot, as_json)
        return
    if as_json:
        print(json.dumps([_report(job) for plan in plans for job in plan.jobs(store)], indent=1))
        return
    from benchmark.card import card

    for plan in plans:
        jobs = plan.jobs(store)
        out.print(card(plan.experiment, plan.places), "", highlight=False)
        finished = sum(job.finished for job in jobs)
        total = sum(job.trial.rounds for job in jobs)
        where = store / plan.experiment.home
        out.print(
            f"{len(jobs)} trials, {total:,} rounds in all; {finished} finished in {where}",
            highlight=False,
            soft_wrap=True,
        )
        if estimate:
            out.print(how_long(plan.places), "", highlight=False, soft_wrap=True)


@app.command()
def run(
    experiment: Names,
    variant: Variant = "",
    seeds: Seeds = "",
    only: Only = None,
    settings: Set = None,
    rounds: Rounds = None,
    methods: Methods = None,
    budget: Annotated[
        str, typer.Option(metavar="TIME", help="Cut rounds, then seeds, to about 30s, 90m or 2h: an estimate.")
    ] = "",
    executor: Annotated[
        Executor, typer.Option(help="Ray Tune, or one trial at a time in this process.")
    ] = Executor.ray,
    gpus_per_trial: Annotated[float, typer.Option(min=0, help="With ray; 0.25: four trials a GPU, 0: CPU.")] = 0.0,
    store: Store = STORE,
    as_json: Json = False,
) -> None:
    """Run an experiment's trials. Rerunning resumes interrupted trials and skips finished ones."""
    plans = plans_of(experiment, variant, seeds, only, settings, rounds, methods)
    if budget:
        plans = within(plans, budget, store, gpus_per_trial if executor is Executor.ray else None)
    failed = interrupted = False
    for plan in plans:
        try:
            view = _run(plan.experiment, plan.jobs(store), executor, gpus_per_trial, store, as_json)
        except SettingError as error:
            if len(plans) == 1:
                raise
            failed = True
            print(f"failed: {plan.experiment.name}: {error}", file=sys.stderr)
            continue
        failed |= bool(view.failed)
        interrupted = view.stopped
        if interrupted:
            break
    if as_json:
        print(json.dumps([_report(job) for plan in plans for job in plan.jobs(store)], indent=1))
    raise typer.Exit(INTERRUPTED if interrupted else 1 if failed else 0)


@app.command()
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
        cli_papers.show(chosen, store, folder, form)
        return
    _need_mlflow()
    from benchmark.tracking import client
    from leaderboard import figures, load, pages, tabulate
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


@app.command()
def check(
    algorithms: Annotated[
        list[str] | None,
        typer.Argument(help="Names, FILE.py:CLASS, or '{name: mifa, memory: updates}'; by default all the suite has."),
    ] = None,
    as_json: Json = False,
) -> None:
    """Hold algorithms, your own included, to what every method must keep: what is wrong, expected and seen."""
    from benchmark.choices import KINDS, read
    from benchmark.conformance import conform

    choices = [read("algorithm", yaml.safe_load(given)) for given in algorithms or KINDS["algorithm"].known]
    outcomes = {
        choice.name: conform(choice)
        for choice in track(choices, "checking", console=err, transient=True, disable=not err.is_terminal)
    }
    if as_json:
        print(json.dumps({name: [asdict(outcome) for outcome in ends] for name, ends in outcomes.items()}, indent=1))
    else:
        for name, ends in sorted(outcomes.items(), key=lambda item: all(end.passed for end in item[1])):
            out.print(_conformance(name, ends, whole=len(choices) == 1))
    raise typer.Exit(0 if all(end.passed for ends in outcomes.values() for end in ends) else 1)


@app.command()
def participation(
    spec: Annotated[str, typer.Argument(help="A YAML file, or EXPERIMENT:MODEL.", metavar="SPEC")],
    rounds: Annotated[int, typer.Option(min=2, help="How many to look at.")] = 2000,
    plot: Annotated[Path | None, typer.Option(help="Draw a picture into this file.", metavar="FILE")] = None,
    picture: Annotated[Picture, typer.Option(help="Which one.")] = Picture.uplinks,
    record: Annotated[
        Path | None, typer.Option(help="Write the rounds as a trace: .npy, .npz, .csv, .parquet.")
    ] = None,
    as_json: Json = False,
) -> None:
    """A participation model by itself: what its rounds look like, a picture of them, a trace."""
    from benchmark import roll_call
    from leaderboard import roll_calls
    from participation import recording

    model = roll_call.load(spec)
    mask = recording.record(model, rounds)
    summary = roll_call.summarise(model, mask)
    if as_json:
        print(json.dumps(asdict(summary), indent=1))
    else:
        out.print(_roll_call(spec, summary))
    if plot is not None:
        shown = mask[:400]  # four of the longest cycles in the papers
        if picture is Picture.uplinks:
            figure = roll_calls.uplinks(shown, roll_call.probabilities(model, len(shown)))
        elif picture is Picture.probabilities:
            figure = roll_calls.probabilities(mask.mean(axis=0) if model.stationary is None else model.stationary)
        else:
            figure = roll_calls.separation(*roll_call.separation_curves(model))
        plot.parent.mkdir(parents=True, exist_ok=True)
        figure.savefig(plot, dpi=150)
        err.print(f"{picture.value}: {plot}", highlight=False, soft_wrap=True)
    if record is not None:
        try:
            recording.write(mask, record)
        except ValueError as error:
            raise SettingError(f"record: {error}") from None
        err.print(f"{rounds} rounds: {record}", highlight=False, soft_wrap=True)


@app.command()
def sync(
    experiments: Annotated[
        list[str] | None, typer.Argument(help="By default all of the store.", metavar="EXPERIMENT")
    ] = None,
    store: Store = STORE,
) -> None:
    """Bring run folders into MLflow: those of inline runs where it was not installed, or of other machines."""
    _need_mlflow()
    from benchmark.tracking import sync as bring_in

    for name, count in bring_in(store, experiments or []).items():
        out.print(f"{name}: {count} run folders", highlight=False)


def main() -> None:
    """The command's entry point: a setting that cannot be ends it with one line and exit code 2."""
    try:
        app()
    except SettingError as error:
        print(f"error: {error}", file=sys.stderr)
        sys.exit(2)


def _run(
    experiment: Experiment, jobs: list["Job"], executor: Executor, gpus_per_trial: float, store: Path, as_json: bool
) -> "View":
    """Run what is not finished and tell how it went."""
    from benchmark.jobs import Everyone, Watcher, check, run_inline
    from benchmark.progress import View

    todo = [job for job in jobs if not job.finished]
    check(todo)
    with View(jobs, err) as view:
        watchers: list[Watcher] = [view]
        if todo and find_spec("mlflow"):
            from benchmark.tracking import Mirror

            watchers.append(Mirror(store, experiment.home))
        if todo and executor is Executor.ray:
            from benchmark.sweep import run_ray

            run_ray(todo, Everyone(*watchers), gpus_per_trial)
        elif todo:
            run_inline(todo, Everyone(*watchers))
    if not as_json:
        counts = [f"{view.finished} run now", f"{len(jobs) - len(todo)} before", f"{len(view.failed)} failed"]
        if view.stopped:
            counts += [f"{view.interrupted} interrupted", f"{view.waiting} not begun"]
        spent = [sum(job.folder.status.get(f"{of}seconds", 0) for job in todo) for of in ("evaluation_", "")]
        evaluating = f"; {spent[0] / spent[1]:.0%} of the time in evaluations" if spent[0] else ""
        out.print(
            f"{len(jobs)} trials: {', '.join(counts)}; in {store / experiment.home}{evaluating}",
            highlight=False,
            soft_wrap=True,
        )
        if view.stopped:
            out.print(
                "Interrupted. The trials that were running have saved their last round. Rerun the command to resume.",
                soft_wrap=True,
            )
        if not find_spec("mlflow"):
            out.print("MLflow is not installed here; `rollcall sync` brings the run folders into it where it is.")
    for name, reason in view.failed.items():
        print(f"failed: {name}: {reason}", file=sys.stderr)
    return view


def _report(job: Any) -> dict[str, Any]:
    """A trial as `--json` tells of it."""
    history = job.folder.history()
    return {
        "trial": job.trial.name,
        "experiment": job.experiment,
        **{
            kind: getattr(job.trial, kind).label
            for kind in ("algorithm", "participation", "task", "study")
            if hasattr(job.trial, kind)
        },
        "seed": job.trial.seed,
        "state": job.folder.state,
        "folder": str(job.folder.path),
        "metrics": {} if history.empty else history.iloc[-1].to_dict(),
    }


def _conformance(name: str, outcomes: list[Any], whole: bool) -> Grid:
    """What an algorithm failed, then what it passed where that is asked for."""
    failed = [outcome for outcome in outcomes if not outcome.passed]
    verdict = f"[red]fails {len(failed)} of {len(outcomes)} checks[/]" if failed else "[green]passes[/]"
    remarks = "; ".join(outcome.seen for outcome in outcomes if outcome.passed and outcome.seen)
    title = f"[bold]{escape(name)}[/] {verdict}  {escape(remarks)}"
    grid = Grid(title=title, title_justify="left", show_header=False, box=None)
    for outcome in failed:
        told = f"{outcome.check}\n  expected  {outcome.expected}\n  seen      {outcome.seen}"
        grid.add_row("[red]✗[/]", escape(told))
    for outcome in outcomes if whole else ():
        if outcome.passed:
            grid.add_row("[green]✓[/]", escape(outcome.check))
    return grid


def _show_partition(trial: Any, plot: Path | None, as_json: bool) -> None:
    """What the clients of a trial hold: its figures, and a picture where one is asked for."""
    from leaderboard import partitions

    with at("task"):
        _, data = trial.task.build(trial.seed)
    if data.histogram is None:
        raise SettingError(f"partition: {trial.task.name!r} is not allowed; must be a task with classes")
    summary = partitions.summarise(data.histogram)
    if as_json:
        print(json.dumps(asdict(summary), indent=1))
    else:
        title = f"{trial.task.name}, seed {trial.seed}: {summary.clients} clients, {summary.classes} classes"
        grid = Grid("a client's", "least", "median", "largest", title=title, title_justify="left")
        grid.add_row("samples", *(f"{value:,.0f}" for value in summary.samples))
        grid.add_row("classes", *(f"{value:g}" for value in summary.held))
        grid.add_row("largest share of a class", *(f"{value:.1%}" for value in summary.largest))
        out.print(grid)
    if plot is not None:
        plot.parent.mkdir(parents=True, exist_ok=True)
        partitions.bubbles(data.histogram).savefig(plot, dpi=150)
        err.print(f"partition: {plot}", highlight=False, soft_wrap=True)


def _roll_call(spec: str, summary: Any) -> Grid:
    stated = "" if summary.memory[1] is None else f" (stated mean {summary.memory[1]:.3f})"
    off = (
        "no stationary law is stated"
        if summary.stationary is None
        else f"within {summary.stationary:.1f} standard errors"
    )
    rows = {
        "on in a round": "{:.1f} on average, {} to {}".format(*summary.active),
        "empty rounds": f"{summary.empty:.2%}",
        "availability": "{:.3f} to {:.3f}, median {:.3f}; ".format(*(summary.availability[i] for i in (0, 2, 1))) + off,
        "lag-1 autocorrelation": f"{summary.memory[0]:.3f} on average{stated}",
        "correlation of clients": f"{summary.together:.3f} on average",
        "between participations": "{:.0f} rounds in the median, {:.0f} at 95 %".format(*summary.interval),
        "staleness": "{:.0f} rounds in the median, {:.0f} at 95 %".format(*summary.staleness),
        "FedAvg's weights": ", ".join(
            f"{name.replace('_', ' ')} {value:.3f}" for name, value in summary.weights.items()
        )
        + " from uniform",
    }
    grid = Grid(
        title=f"{spec}: {summary.clients} clients, {summary.rounds} rounds", title_justify="left", show_header=False
    )
    for name, value in rows.items():
        grid.add_row(name, value)
    return grid


def _summary(kind: str, choice: Any) -> str:
    """The first sentence said of a choice: of a method, its file's; of a data set's task, the data set's."""
    if isinstance(choice, partial):
        choice = choice.args[0]
    said = getdoc(sys.modules[choice.__module__] if kind == "algorithm" else choice) or ""
    return re.split(r"(?<!Fig)(?<!et al)\.(?:\s|$)", " ".join(said.split("\n\n")[0].split()))[0]


def _metric(given: str) -> tuple[str, Any]:
    name, (end, *_) = parse(given)
    return name, end


def _need_mlflow() -> None:
    if not find_spec("mlflow"):
        raise SettingError("mlflow: is not installed here; must be, for this command: pip install mlflow")


if __name__ == "__main__":
    main()
