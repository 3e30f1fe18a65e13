"""Options of several commands, what they print with, and the trials that they mean."""

from collections.abc import Collection, Iterable
from contextlib import suppress
from dataclasses import dataclass
from datetime import timedelta
from functools import cached_property
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeVar

import numpy as np
from rich.console import Console
from rich.progress import track
from typer import Argument, Option
from typer.core import TyperCommand

from rollcall.benchmark.config.errors import SettingError
from rollcall.benchmark.config.experiment import file_of, names
from rollcall.benchmark.config.grid import GridPoint, grid_points, set_by, unique_runs
from rollcall.benchmark.config.text import command, counted, parse_all, parse_part, parse_values, read_time, with_line
from rollcall.benchmark.config.trial import Analysis, Trial
from rollcall.benchmark.process import Interrupted
from rollcall.benchmark.sweep.run import Execution, Executor
from rollcall.leaderboard.paper.experiment import PaperExperiment

if TYPE_CHECKING:
    from rollcall.benchmark.sweep.jobs import Job

out = Console(markup=False, emoji=False)  # texts of files and users are printed as they are
err = Console(stderr=True, markup=False, emoji=False)

Item = TypeVar("Item")

INTERRUPTED = 130
"""The exit code of a command that Ctrl-C ended, as in shells."""

METRIC = "NAME[=max|min|zero]"
STORE = Path("runs")

# The experiment, and what is changed in it.
Name = Annotated[str, Argument(help="A name from `rollcall list`, or a YAML file.", metavar="EXPERIMENT")]
Names = Annotated[
    list[str], Argument(help="Names, a paper, a pattern ('*/statements'), or YAML files.", metavar="EXPERIMENT")
]
Variant = Annotated[str, Option(help="A named variant, for example as_released.")]
Seeds = Annotated[str, Option(metavar="SEED,...", help="Seeds to use instead of the experiment's.")]
Only = Annotated[
    list[str] | None,
    Option(metavar="AXIS=VALUE,...", help="Keep only these values of an axis; `rollcall show` lists the axes."),
]
Set = Annotated[
    list[str] | None,
    Option("--set", metavar="[METHOD:]SETTING=VALUE,...", help="Change a setting; several values make an axis."),
]
Rounds = Annotated[int | None, Option(help="Number of rounds to use instead of the experiment's.")]
Methods = Annotated[
    list[str] | None,
    Option("--algorithm", metavar="METHOD", help="Add a method to the grid: a name, or FILE.py:CLASS."),
]
Tuned = Annotated[Path | None, Option(metavar="FILE", help="Use the settings that `rollcall tune` chose.")]

# How trials run.
ExecutorChoice = Annotated[
    Executor | None, Option("--executor", help="Parallel (ray), or one by one (inline). Default: ray if installed.")
]
Gpus = Annotated[str, Option("--gpus-per-trial", metavar="SHARE", help="GPU share of a trial with ray; 0: CPU.")]
Retries = Annotated[int, Option(min=0, help="Restarts of a trial whose process died, with ray.")]
Every = Annotated[
    str, Option("--checkpoint-every", metavar="TIME", help="Time between two checkpoints of a trial: 30s, 5m.")
]
Address = Annotated[
    str,
    Option("--ray-address", metavar="HOST:PORT", help="Ray cluster, or auto. Default: RAY_ADDRESS or this machine."),
]
Storage = Annotated[
    str, Option("--storage", metavar="URL", help="Place for run folders of a cluster without shared disk.")
]

# Results.
Store = Annotated[Path, Option(envvar="ROLLCALL_STORE", help="Folder of the run folders.")]
Mine = Annotated[bool, Option("--mine", help="Leave out kept results; use your own runs alone.")]
Json = Annotated[bool, Option("--json", help="Print JSON instead of text.")]


class Command(TyperCommand):
    """A command whose help shows flags without a type: they take no value. Ctrl-C ends it with a line."""

    def get_params(self, ctx: Any) -> list[Any]:
        params: list[Any] = super().get_params(ctx)
        for flag in (one for one in params if getattr(one, "is_flag", False)):
            flag.metavar = ""
        return params

    def invoke(self, ctx: Any) -> Any:
        try:
            return super().invoke(ctx)
        except KeyboardInterrupt:
            raise Interrupted("Stopped. Rerun the command.") from None


def execution(
    store: Path, executor: Executor | None, gpus: str, retries: int, every: str, storage: str, address: str, **more: Any
) -> Execution:
    """How trials run, from the options of a command.

    Raises SettingError: an option is not allowed.
    """
    share: Any = gpus
    with suppress(ValueError):  # a text is refused below, in one line with its value
        share = float(gpus)
    pause = timedelta(seconds=read_time(every, "checkpoint-every"))
    return Execution(store, executor, share, retries, pause, storage, address, console=err, **more)


def there(folder: Path) -> None:
    """Raise SettingError if there is no such folder."""
    if not folder.is_dir():
        raise SettingError(f"{folder}: there is no such folder")


def say(line: str, console: Console = out) -> None:
    """Print a line as it is, however long, without colours."""
    console.print(line, highlight=False, soft_wrap=True)


def tracked(items: Collection[Item], what: str) -> Iterable[Item]:
    """The items, with a bar of progress on a terminal."""
    return track(items, what, console=err, transient=True, disable=not err.is_terminal)


@dataclass(frozen=True)
class Request:
    """An experiment as the command line changes it, and its trials.

    Args:
        experiment: with all changes.
        whole: whether no `--only` leaves out a part of its grid.
        file: its file, if it is one of the user's own.
    """

    experiment: PaperExperiment
    whole: bool
    file: Path | None = None

    @cached_property
    def runs(self) -> list[GridPoint]:
        """Each run once, with the most rounds that a point asks for."""
        return unique_runs(grid_points(self.experiment))

    @property
    def trials(self) -> list[Trial | Analysis]:
        """The runs, validated.

        Raises SettingError: a setting is not allowed; with the line of a file of the user's own.
        """
        try:
            return [point.trial for point in self.runs]
        except SettingError as error:
            raise with_line(error, self.file) from None

    def jobs(self, store: Path) -> list["Job"]:
        """The trials and analyses to run, each once."""
        from rollcall.benchmark.sweep.jobs import Job

        trials = self.trials  # refuses what is not allowed, with its line
        return [Job(one, self.experiment.home, store, at.labels) for one, at in zip(trials, self.runs, strict=True)]

    def check_metrics(self) -> None:
        """Refuse a metric of the report or of a claim that no trial of the whole grid records."""
        from rollcall.benchmark.sweep.jobs import check_metrics

        metrics = self.experiment.named_metrics()
        if "metrics" not in self.experiment.report.model_fields_set:  # the default fits not every task
            del metrics["report.metrics"]
        if self.whole:
            check_metrics(metrics, self.trials)


def requests_of(
    experiments: list[str],
    variant: str = "",
    seeds: str = "",
    only: list[str] | None = None,
    settings: list[str] | None = None,
    rounds: int | None = None,
    methods: list[str] | None = None,
    tuned: Path | None = None,
) -> list[Request]:
    """The experiments, of a paper all, as the command line changes them.

    Their settings are validated when the jobs of a request are asked for.

    Raises SettingError: a change does not fit an experiment, or `tuned` is the answer for another one or has its seeds.
    """
    requests = []
    for one in chain.from_iterable((names(of=name) if name else []) or [name] for name in experiments):
        chosen = PaperExperiment.read(one)
        if variant:
            chosen = chosen.as_(variant)
        if methods:
            if axis := next(
                (axis for axis, own in set_by(chosen).items() if axis != "algorithm" and "algorithm" in own), ""
            ):
                raise SettingError(
                    f"algorithm: is not allowed with {one}; its axis {axis!r} sets it. Add the method there"
                )
            chosen = chosen.joined("algorithm", [parse_part("algorithm", text) for text in methods])
        if seeds:
            chosen = chosen.varied({"seed": parse_values("seeds", seeds)})
        answer = None
        if tuned is not None:
            from rollcall.benchmark.search.answer import Tuned as Answer

            if not tuned.is_file():
                first = command("tune", one, *(["--variant", variant] if variant else []))
                first += "" if chosen.search else " --space SETTING=DOMAIN"
                raise SettingError(f"{tuned}: there is no such file; first: {first}")
            answer = Answer.read(tuned)
        changes = ({} if rounds is None else {"rounds": [rounds]}) | parse_all("set", settings or [])
        if answer is not None:  # below the changes, some of which may be axes of the search
            axes = {"panel", *chosen.varied(changes).axes}
            chosen = answer.applied(chosen, axes)
            for axis in dict.fromkeys(axis for one in answer.best.values() for axis in one.when if axis not in axes):
                say(f"{tuned} was searched along {axis}, which is no axis here", err)
        chosen = chosen.varied(changes)
        chosen = chosen.only(parse_all("only", only or []))
        if answer is not None:
            answer.check_seeds(chosen)
            if without := answer.check_cells(chosen):
                say(f"{tuned} has no settings for {counted(without, 'trial')}; these run as the experiment says", err)
        file = Path(one) if file_of(one) == Path(one) else None
        requests.append(Request(chosen, not only, file))
    return requests


def described(job: "Job") -> dict[str, Any]:
    """A trial or an analysis: its names, seed, settings, state, run folder and last metrics."""
    history = job.history
    return {
        "trial": job.trial.name,
        "experiment": job.experiment,
        **{
            kind: getattr(job.trial, kind).label
            for kind in ("algorithm", "participation", "task", "analysis")
            if hasattr(job.trial, kind)
        },
        "seed": job.trial.seed,
        "settings": job.trial.complete(np.ndarray.tolist),
        "state": job.folder.state_now,
        "folder": str(job.folder.path),
        "metrics": {} if history.empty else history.iloc[-1].to_dict(),
    }
