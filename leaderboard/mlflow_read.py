"""Reads runs from MLflow, as `rollcall.benchmark.sweep.mlflow_copy` wrote them: from their files, like run folders."""

from collections.abc import Collection, Iterator
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory

from rollcall.benchmark.config.errors import SettingError
from rollcall.benchmark.federation.run_folder import RunFolder
from rollcall.benchmark.sweep.mlflow_copy import COMPLETE, FILES, STATUS, connect, reason, runs_of, shown
from rollcall.leaderboard.runs import Run, of_folder


def read(uri: str, experiment: str, metrics: Collection[str] | None = None) -> list[Run]:
    """The finished and the diverged runs of an experiment on a server or in a database, oldest first.

    Of the metrics, these columns are read; by default all.
    """
    try:
        return list(_read(uri, experiment, metrics))
    except Exception as error:  # MLflow, SQLAlchemy and the network raise errors of many kinds
        raise SettingError(f"mlflow: {shown(uri)} cannot be read ({reason(error)})") from None


def _read(uri: str, experiment: str, metrics: Collection[str] | None) -> Iterator[Run]:
    client = connect(uri)
    known = client.get_experiment_by_name(experiment)
    for entry in runs_of(client, known.experiment_id) if known is not None else ():
        tags = entry.data.tags
        if COMPLETE not in tags or not {"rollcall.finished", "rollcall.diverged"} & tags.keys():
            continue  # it is none of ours, its copy was cut off, or it has not ended
        with TemporaryDirectory(prefix="rollcall-") as folder:
            for file in (STATUS, *FILES):
                client.download_artifacts(entry.info.run_id, file, folder)
            Path(folder, STATUS).rename(Path(folder, "status.json"))
            run = of_folder(RunFolder(Path(folder)), experiment, metrics)
        if run is not None:
            yield replace(run, server=shown(uri))
