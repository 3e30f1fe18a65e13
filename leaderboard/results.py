"""Finished runs: read from MLflow, and kept as small files in an archive folder."""

import json
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from functools import reduce
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pandas as pd

from rollcall.benchmark.sweep.mlflow_runs import PARENT
from rollcall.leaderboard.run import Run

if TYPE_CHECKING:
    from mlflow import MlflowClient

PACKAGE = Path(__file__).parent / "results"
"""Archive of the papers' experiments that comes with Rollcall."""


def load(
    client: "MlflowClient", experiment: str, metrics: Collection[str] | None = None, without: Collection[str] = ()
) -> list[Run]:
    """The finished and the diverged runs of an experiment, oldest first, with their histories.

    A finished run that is being continued counts with the rounds that it had finished.

    Args:
        client: of the MLflow store.
        experiment: its name there.
        metrics: columns to read; by default all, which is slow if every client was measured.
        without: digests of trials to leave out.
    """
    stored = client.get_experiment_by_name(experiment)
    if stored is None:
        return []
    runs = []
    for entry in _pages(client, stored.experiment_id):
        if PARENT in entry.data.tags or entry.data.tags.get("rollcall.trial") in without:
            continue
        settings = dict(entry.data.params)
        finished = _rounds(entry.data.tags)
        if finished is None and entry.info.status != "FINISHED":
            continue
        if finished is not None and "analysis" not in settings:
            settings["rounds"] = finished
        run = Run(dict(entry.data.tags), settings, _history(client, entry, metrics), "own")
        runs.append(run.until(run.rounds) if "rounds" in settings else run)
    return runs


def _rounds(tags: Mapping[str, str]) -> str | None:
    """Rounds of a finished run; rounds that were asked for of a diverged one; None of any other."""
    diverged, asked = tags.get("rollcall.diverged"), tags.get("rollcall.rounds")
    if diverged is not None and asked is not None and int(diverged) <= int(asked):
        return asked
    return tags.get("rollcall.finished")


def archive(runs: Iterable[Run], experiment: str, metrics: Sequence[str], folder: Path) -> Path:
    """Add runs to an archive. A run replaces an archived run of the same trial that has no more rounds.

    A CSV file holds the evaluations with six digits. A JSON file of the same name holds settings and tags.

    Args:
        runs: finished ones, at least one.
        experiment: name of their experiment.
        metrics: columns to keep.
        folder: of the archive.

    Returns:
        the CSV file.
    """
    by_rounds = sorted(joined(unarchive(experiment, folder), runs), key=lambda run: run.rounds)
    kept = {run.tags["rollcall.trial"]: run for run in by_rounds}  # of a trial the longest run, of equal ones the later
    kept = dict(sorted(kept.items()))
    table = folder / f"{experiment}.csv"
    table.parent.mkdir(parents=True, exist_ok=True)
    rows = []
    for digest, run in kept.items():
        columns = [metric for metric in metrics if metric in run.history]
        rows.append(run.history[columns].dropna(how="all").rename_axis("round").reset_index().assign(trial=digest))
    whole = pd.concat(rows, ignore_index=True)
    whole = whole[["trial", "round", *(metric for metric in metrics if metric in whole)]]
    whole.to_csv(table, index=False, float_format="%.6g", lineterminator="\n")
    table.with_suffix(".json").write_text(json.dumps(_origins(kept), indent=1) + "\n")
    return table


def unarchive(experiment: str, *folders: Path) -> list[Run]:
    """The runs of an experiment in one or more archives, by default the one that comes with Rollcall.

    If several archives have a trial, the run with the most rounds counts; of equal ones that of the later folder.
    """
    distinct = dict.fromkeys(folder.resolve() for folder in folders or (PACKAGE,))
    archives = [runs for folder in distinct if (runs := _read(folder / f"{experiment}.csv"))]
    return reduce(joined, archives) if archives else []


def joined(runs: list[Run], newer: Iterable[Run]) -> list[Run]:
    """Both, with one run for each trial: the newer one unless the other has more rounds."""
    by_identity = {run.identity: run for run in runs}
    for run in newer:
        known = by_identity.get(run.identity)
        if known is None or known.rounds <= run.rounds:
            by_identity[run.identity] = run
    return list(by_identity.values())


def _pages(client: "MlflowClient", experiment_id: str) -> Iterator[Any]:
    token = None
    while True:
        page = client.search_runs([experiment_id], order_by=["start_time"], page_token=token)
        yield from page
        token = page.token
        if not token:
            return


def _history(client: "MlflowClient", entry: Any, metrics: Collection[str] | None) -> pd.DataFrame:
    columns = {}
    for metric in entry.data.metrics:
        if metrics is None or metric in metrics:
            values = client.get_metric_history(entry.info.run_id, metric)
            columns[metric] = pd.Series({value.step: value.value for value in values}, dtype=float)
    return pd.DataFrame(columns).sort_index().rename_axis("round")


def _read(table: Path) -> list[Run]:
    """The runs of an archive's CSV file; none if there is no such file."""
    if not table.exists():
        return []
    origins = json.loads(table.with_suffix(".json").read_text())
    common = origins["common"]
    evaluations = pd.read_csv(table, dtype={"trial": str})  # a digest may look like a number
    histories = evaluations.set_index(["trial", "round"])
    return [
        Run(
            common["tags"] | own["tags"],
            common["settings"] | own["settings"],
            histories[histories.index.get_level_values("trial") == digest]
            .droplevel("trial")
            .dropna(axis="columns", how="all"),
        )
        for digest, own in origins["trials"].items()
    ]


def _origins(runs: Mapping[str, Run]) -> dict[str, Any]:
    """Settings and tags of runs by their digest; what all have in common stands once."""
    origins = {
        digest: {
            "settings": run.settings,
            "tags": {key: value for key, value in run.tags.items() if not key.startswith("mlflow.")},
        }
        for digest, run in runs.items()
    }
    common = {part: _common([origin[part] for origin in origins.values()]) for part in ("settings", "tags")}
    own = {
        digest: {part: dict(sorted(origin[part].items() - common[part].items())) for part in origin}
        for digest, origin in origins.items()
    }
    return {"common": common, "trials": own}


def _common(mappings: Sequence[dict[str, str]]) -> dict[str, str]:
    shared = set.intersection(*(set(mapping.items()) for mapping in mappings))
    return dict(sorted(shared))
