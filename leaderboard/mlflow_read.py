"""Reads runs from MLflow, as `rollcall.benchmark.sweep.mlflow_copy` wrote them."""

import json
from collections.abc import Collection, Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import pandas as pd

from rollcall.benchmark.config.digest import nested
from rollcall.benchmark.config.errors import SettingError
from rollcall.benchmark.sweep.mlflow_copy import CLIENTS, COMPLETE, OF_CLIENT, RENAMED, connect, reason, runs_of, shown
from rollcall.leaderboard.runs import Run, ended

INFINITE = {1.7976931348623157e308: float("inf"), -1.7976931348623157e308: float("-inf")}
"""What a database of MLflow has for infinite values."""


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
        tags = {name: tag for name, tag in entry.data.tags.items() if not name.startswith("mlflow.")}
        if tags.pop(COMPLETE, None) is None:  # its copy was cut off, or it is none of ours
            continue
        names, of_clients = json.loads(tags.pop(RENAMED)), int(tags.pop(CLIENTS))
        columns = {}
        for name in entry.data.metrics:
            column = names.get(name, name)
            if metrics is None or column in metrics:
                points = client.get_metric_history(entry.info.run_id, name)
                columns[column] = pd.Series(
                    {one.step: INFINITE.get(one.value, one.value) for one in points}, dtype=float
                )
        history = pd.DataFrame(columns)
        if of_clients and (metrics is None or any(OF_CLIENT.search(metric) for metric in metrics)):
            with TemporaryDirectory() as folder:
                file = client.download_artifacts(entry.info.run_id, CLIENTS, folder)
                table = pd.DataFrame(json.loads(Path(file).read_text())).set_index("round")
            history = history.join(table if metrics is None else table.filter([*metrics]), how="outer")
        spec = nested({names.get(name, name): text for name, text in entry.data.params.items()})
        run = ended(tags, spec, history.sort_index().rename_axis("round"), shown(uri))
        if run is not None:
            yield run
