"""What is known of the runs of an experiment: out of MLflow, or out of the files that the suite keeps of them."""

import json
import math
from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import pandas as pd

from benchmark.config.digest import known_since
from benchmark.config.renamed import current

if TYPE_CHECKING:
    from mlflow import MlflowClient

ARCHIVE = Path(__file__).parent / "results"
"""Results of the papers' experiments, as made with the suite."""


@dataclass(frozen=True)
class Run:
    """One finished trial.

    Attributes:
        tags: experiment, algorithm, participation, task, seed, commit, version, ...
        settings: all of them as text, by dotted name.
        history: [evaluations], indexed by round, a column for each metric.
    """

    tags: dict[str, str]
    settings: dict[str, str]
    history: pd.DataFrame

    @property
    def cell(self) -> tuple[tuple[str, str], ...]:
        """All settings but the seed: what the trials of one cell have in common."""
        return tuple(sorted((key, value) for key, value in known_since(self.settings).items() if key != "seed"))

    @property
    def identity(self) -> tuple[tuple[str, str], ...]:
        """All settings but the rounds, of which a run may have more later."""
        return tuple(sorted((key, value) for key, value in known_since(self.settings).items() if key != "rounds"))

    @property
    def rounds(self) -> int:
        return int(self.settings.get("rounds", 1))

    def until(self, rounds: int) -> "Run":
        """The run as it was after so many rounds, or whole if it has fewer."""
        settings = self.settings | {"rounds": str(min(rounds, self.rounds))}
        return Run(self.tags, settings, self.history[self.history.index <= rounds])


def load(client: "MlflowClient", experiment: str, metrics: Collection[str] | None = None) -> list[Run]:
    """The finished runs of an experiment, oldest first, with their histories.

    A run that was finished and is now being continued counts with the rounds that it had finished.

    Args:
        client: of the MLflow store.
        experiment: its name there.
        metrics: those to read; by default all, which takes long where each client was measured.
    """
    found = client.get_experiment_by_name(experiment)
    if found is None:
        return []
    runs, token = [], None
    while True:
        page = client.search_runs([found.experiment_id], order_by=["start_time"], page_token=token)
        for run in page:
            settings = current(dict(run.data.params))
            finished = run.data.tags.get("rollcall.finished")
            if finished is None and run.info.status != "FINISHED":
                continue
            if finished is not None and "analysis" not in settings:
                settings["rounds"] = finished
            columns = {}
            for metric in run.data.metrics:
                if metrics is not None and metric not in metrics:
                    continue
                values = client.get_metric_history(run.info.run_id, metric)
                columns[metric] = pd.Series({value.step: value.value for value in values}, dtype=float)
            history = pd.DataFrame(columns).sort_index().rename_axis("round")
            one = Run(dict(run.data.tags), settings, history)
            runs.append(one.until(one.rounds) if "rounds" in settings else one)
        token = page.token
        if not token:
            return runs


def archive(runs: list[Run], experiment: str, metrics: list[str], folder: Path = ARCHIVE) -> Path:
    """Keep runs beside those that are kept already, of which the same trial of no more rounds is replaced.

    A CSV file holds the evaluations, six digits of each; a JSON file of the same name the settings and origins.

    Args:
        runs: finished ones.
        experiment: whose.
        metrics: those worth keeping.
        folder: of the archive.

    Returns:
        the CSV file.
    """
    table = folder / f"{experiment}.csv"
    by_identity = {run.identity: run for run in unarchive(experiment, folder)}
    for run in runs:
        known = by_identity.get(run.identity)
        if known is None or known.rounds <= run.rounds:
            by_identity[run.identity] = run
    if not by_identity:
        return table
    kept = {run.tags["rollcall.trial"]: run for run in by_identity.values()}
    table.parent.mkdir(parents=True, exist_ok=True)
    rows = []
    for digest, run in sorted(kept.items()):
        columns = [metric for metric in metrics if metric in run.history]
        rows.append(run.history[columns].dropna(how="all").rename_axis("round").reset_index().assign(trial=digest))
    whole = pd.concat(rows, ignore_index=True)
    whole = whole[["trial", "round", *(metric for metric in metrics if metric in whole)]]
    whole.to_csv(table, index=False, float_format="%.6g", lineterminator="\n")
    origins = {digest: {"settings": run.settings, "tags": _own(run.tags)} for digest, run in sorted(kept.items())}
    common = {part: _common([origin[part] for origin in origins.values()]) for part in ("settings", "tags")}
    own = {
        digest: {part: dict(sorted(origin[part].items() - common[part].items())) for part in origin}
        for digest, origin in origins.items()
    }
    table.with_suffix(".json").write_text(json.dumps({"common": common, "trials": own}, indent=1) + "\n")
    return table


def unarchive(experiment: str, folder: Path = ARCHIVE) -> list[Run]:
    """The runs that are kept of an experiment; none if there are none."""
    table = folder / f"{experiment}.csv"
    if not table.exists():
        return []
    known = json.loads(table.with_suffix(".json").read_text())
    histories = pd.read_csv(table).set_index(["trial", "round"])
    return [
        Run(
            known["common"]["tags"] | own["tags"],
            known["common"]["settings"] | own["settings"],
            histories.loc[digest].dropna(axis="columns", how="all"),
        )
        for digest, own in known["trials"].items()
    ]


def end(run: Run, metric: str, last_rounds: int = 1, at: int | None = None) -> float:
    """What a run came to.

    Args:
        run: finished.
        metric: of its evaluations; `round_of:NAME>=VALUE` is the first round whose evaluation reaches the value,
            infinite if none does.
        last_rounds: the mean over the evaluations after the last so many rounds.
        at: instead, the evaluation after this round; NaN where there is none.
    """
    if metric.startswith("round_of:"):
        name, _, value = metric.removeprefix("round_of:").partition(">=")
        reached = run.history.index[run.history[name] >= float(value)]
        return float(reached[0]) if len(reached) else math.inf
    history = run.history[metric].dropna()
    if at is not None:
        return float(history.get(at, math.nan))
    last = max(int(run.settings.get("rounds", 0)), history.index[-1])  # an analysis names what it runs over
    return float(history[history.index > last - last_rounds].mean())


def has(run: Run, metric: str) -> bool:
    """Whether a run was measured by a metric."""
    return metric.removeprefix("round_of:").partition(">=")[0] in run.history


def _own(tags: dict[str, str]) -> dict[str, str]:
    """Ours, not MLflow's."""
    return {key: value for key, value in tags.items() if not key.startswith("mlflow.")}


def _common(mappings: list[dict[str, str]]) -> dict[str, str]:
    shared = set.intersection(*(set(mapping.items()) for mapping in mappings))
    return dict(sorted(shared))
