"""From the options of a command line to trials."""

import json
from dataclasses import dataclass
from functools import cached_property
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from rollcall.benchmark.config.digest import array_file
from rollcall.benchmark.config.errors import SettingError
from rollcall.benchmark.config.experiment import GridPoint, file_of, names, places, unique_runs
from rollcall.benchmark.config.text import counted, located, parse_all, parse_part, parse_values
from rollcall.benchmark.config.trial import Analysis, Trial
from rollcall.cli.options import err, say
from rollcall.leaderboard.paper.experiment import PaperExperiment

if TYPE_CHECKING:
    from rollcall.benchmark.sweep.jobs import Job


@dataclass(frozen=True)
class Plan:
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
        """Each run once, with the most rounds that a place asks for."""
        return unique_runs(places(self.experiment))

    @property
    def trials(self) -> list[Trial | Analysis]:
        """The runs, validated.

        Raises:
            SettingError: a setting is not allowed; with the line of a file of the user's own.
        """
        try:
            return [place.trial for place in self.runs]
        except SettingError as error:
            raise located(error, self.file) from None

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

    def record(self, store: Path) -> None:
        """Record the experiment file in the folder of its runs, for readers of the folder."""
        if not self.experiment.base:  # else it shares the runs of its base on purpose
            folder, file = store / self.experiment.home, self.file or file_of(self.experiment.name)
            folder.mkdir(parents=True, exist_ok=True)
            (folder / RECORD).write_text(json.dumps({"file": str(file.resolve())}))


RECORD = "experiment.json"
"""In a folder of run folders: which experiment file they belong to."""


def file_of_runs(folder: Path) -> str:
    """The experiment file that the runs in a folder belong to; empty if it is not known."""
    try:
        return str(json.loads((folder / RECORD).read_text())["file"])
    except (OSError, ValueError, KeyError):
        return ""


def plans_of(
    experiments: list[str],
    variant: str = "",
    seeds: str = "",
    only: list[str] | None = None,
    settings: list[str] | None = None,
    rounds: int | None = None,
    methods: list[str] | None = None,
    tuned: Path | None = None,
) -> list[Plan]:
    """The experiments, of a paper all, as the command line changes them.

    Their settings are validated when the jobs of a plan are asked for.

    Raises:
        SettingError: a change does not fit an experiment, or `tuned` is the answer for another one or has its seeds.
    """
    plans = []
    for one in chain.from_iterable(names(of=name) or [name] for name in experiments):
        chosen = PaperExperiment.read(one)
        if variant:
            chosen = chosen.as_(variant)
        if methods:
            chosen = chosen.joined("algorithm", [parse_part("algorithm", text) for text in methods])
        if seeds:
            chosen = chosen.varied({"seed": parse_values("seeds", seeds)})
        answer = None
        if tuned is not None:
            from rollcall.benchmark.search.answer import Tuned as Answer

            answer = Answer.read(tuned)
            chosen = answer.applied(chosen)
        if rounds is not None:
            chosen = chosen.varied({"rounds": [rounds]})
        chosen = chosen.varied(parse_all("set", settings or []))
        chosen = chosen.only(parse_all("only", only or []))
        if answer is not None:
            answer.check_seeds(chosen)
            if without := answer.check_cells(chosen):
                say(f"{tuned} has no settings for {counted(without, 'trial')}; these run as the experiment says", err)
        file = Path(one) if Path(one).is_file() else None
        plans.append(Plan(chosen, not only, file))
    return plans


LARGEST = 100
"""Entries of the largest array that is printed."""


def described(job: "Job") -> dict[str, Any]:
    """A trial or an analysis: its names, seed, settings, state, run folder and last metrics."""
    history = job.folder.history()
    return {
        "trial": job.trial.name,
        "experiment": job.experiment,
        **{
            kind: getattr(job.trial, kind).label
            for kind in ("algorithm", "participation", "task", "analysis")
            if hasattr(job.trial, kind)
        },
        "seed": job.trial.seed,
        "settings": job.trial.complete(_array),
        "state": job.folder.state,
        "folder": str(job.folder.path),
        "metrics": {} if history.empty else history.iloc[-1].to_dict(),
    }


def _array(array: np.ndarray) -> Any:
    """The values of a small array; of a large one the name of its file in the run folder."""
    return array.tolist() if array.size <= LARGEST else array_file(array)
