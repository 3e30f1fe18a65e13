"""One's own runs: of the run folders in a store, and of the MLflow server that MLFLOW_TRACKING_URI names."""

import os
import sys
from collections.abc import Collection
from importlib.util import find_spec
from pathlib import Path

from yaml import YAMLError

from rollcall.benchmark.config.digest import flatten
from rollcall.benchmark.config.source import Source
from rollcall.benchmark.config.text import counted, parsed
from rollcall.benchmark.federation.run_folder import RunFolder
from rollcall.benchmark.sweep.mlflow_runs import tags
from rollcall.leaderboard.results import load
from rollcall.leaderboard.run import Run


def own(store: Path, experiment: str, metrics: Collection[str] | None = None) -> list[Run]:
    """The finished and the diverged runs of an experiment, oldest first. Of a trial that both have, the folder counts.

    A server that does not answer is left out, with a warning. If settings were run with several versions of the
    user's own files, those of the present version count, or of the last one that was run: no mean mixes versions.

    Args:
        store: folder of the run folders.
        experiment: its name.
        metrics: columns to read; by default all.
    """
    runs = of_folders(store, experiment, metrics)
    if not (os.environ.get("MLFLOW_TRACKING_URI") and find_spec("mlflow")):
        return _of_one_version(runs)
    from rollcall.benchmark.sweep.mlflow_client import client

    here = {run.tags["rollcall.trial"] for run in runs}
    try:
        remote = load(client(store), experiment, metrics, without=here)
    except Exception as error:  # MLflow, SQLAlchemy and the network raise errors of many kinds
        print(f"MLflow: {error}. Only the run folders in {store} are read.", file=sys.stderr)
        return _of_one_version(runs)
    return _of_one_version(remote + runs)


def of_folders(store: Path, experiment: str, metrics: Collection[str] | None = None) -> list[Run]:
    """The finished and the diverged runs in the run folders of an experiment, oldest first.

    A folder that cannot be read is left out, with a warning.
    """
    dated = []
    for file in (store / experiment).glob("*/status.json"):
        folder = RunFolder(file.parent)
        if ".damaged" in folder.path.name:  # set aside by `rollcall doctor`
            continue
        try:
            run = _run(folder, experiment, metrics)
        except (OSError, ValueError, KeyError, YAMLError) as error:
            print(f"left out: {folder.path}: {' '.join(str(error).split())}", file=sys.stderr)
            continue
        if run is not None:
            dated.append((folder.status["updated"], run))
    return [run for _, run in sorted(dated, key=lambda pair: pair[0])]


def _of_one_version(runs: list[Run]) -> list[Run]:
    """The runs of one version of the user's files: the present one if it was run, else the last that was.

    Args:
        runs: oldest first.
    """
    present_last = sorted(runs, key=_is_present)
    version = {run.settings_without("seed", "rounds"): run.tags.get("rollcall.sources", "") for run in present_last}

    def counts(run: Run) -> bool:
        return run.tags.get("rollcall.sources", "") == version[run.settings_without("seed", "rounds")]

    left = [run for run in runs if not counts(run)]
    if left:
        methods = ", ".join(sorted({run.tags["algorithm"] for run in left}))
        runs_of = f"{counted(len(left), 'run')} of another version of your code"
        print(f"left out: {runs_of} ({methods})", file=sys.stderr)
    return [run for run in runs if counts(run)]


def _is_present(run: Run) -> bool:
    """Whether the user's files have the content that they had when it was run."""
    files = {Path(text.rpartition(":")[0]) for text in run.settings.values() if ".py:" in text}
    digests = {file.name: Source(str(file), file.read_bytes().decode()).digest for file in files if file.is_file()}
    recorded = run.tags.get("rollcall.sources", "")
    return bool(files) and all(f"{file.name}={digests.get(file.name, '-')[:10]}" in recorded for file in files)


def _run(folder: RunFolder, experiment: str, metrics: Collection[str] | None) -> Run | None:
    """The run of a folder; None if it neither finished nor diverged."""
    status = folder.status
    diverged, rounds = status.get("diverged"), folder.finished
    if diverged is not None and diverged <= status["rounds"]:
        rounds = status["rounds"]
    if not rounds:
        return None
    settings = flatten(parsed((folder.path / "trial.yaml").read_text(encoding="utf-8")))
    history = folder.history().set_index("round")
    if metrics is not None:
        history = history[[metric for metric in history if metric in metrics]]
    if "analysis" not in settings:
        settings["rounds"] = str(rounds)
    run = Run(_tags(folder, experiment, settings), settings, history.astype(float), "own")
    return run.until(rounds) if "rounds" in settings else run


def _tags(folder: RunFolder, experiment: str, settings: dict[str, str]) -> dict[str, str]:
    """The tags that the run has in MLflow."""
    status = folder.status
    last = {"rounds": status["rounds"], "finished": folder.finished or None, "diverged": status.get("diverged")}
    last |= {"round": status["round"], "seconds": status["seconds"], "state": status["state"]}
    more = {f"rollcall.{name}": str(value) for name, value in last.items() if value is not None}
    return tags(experiment, settings, status) | more
