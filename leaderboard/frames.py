"""Results as DataFrames, for notebooks and your own figures."""

from collections.abc import Iterable, Iterator
from pathlib import Path

import pandas as pd

from rollcall.benchmark.config.digest import value_of
from rollcall.benchmark.config.experiment import Experiment
from rollcall.leaderboard.ranking import axes
from rollcall.leaderboard.runs import Run, longest, own, unarchive


def runs(stores: Path | str | Iterable[Path | str], experiment: str) -> pd.DataFrame:
    """The runs of an experiment that finished or diverged, a row for each. Of a trial that ran several times it is the
    longest run; of equally long ones your own, and that of the last store.

    Args:
        stores: one or more folders of run folders.
        experiment: a name from `rollcall list`, or a YAML file.

    Returns:
        columns `trial` (its digest), `source` (own or kept), `state`, `seed`, `rounds`; each axis of the grid, with its
        label; each other setting by its dotted name; and each metric, with its last value.

    Raises:
        SettingError: the experiment does not exist.
    """
    rows = []
    for run, ids, labels in _labelled(stores, experiment):
        settings = {name: value_of(text) for name, text in run.settings.items()}
        last = {str(name): run.known(str(name))[1][-1] for name in run.history if len(run.known(str(name))[1])}
        rows.append(ids | {"rounds": run.rounds} | {**settings, **labels} | last)
    return pd.DataFrame(rows)


def history(stores: Path | str | Iterable[Path | str], experiment: str) -> pd.DataFrame:
    """The evaluations of the same runs, as a long table: a row for each run, round and metric.

    Returns:
        columns `trial`, `source`, `state`, each axis of the grid, `seed`, `round`, `metric` and `value`.
    """
    found = list(_labelled(stores, experiment))
    if not found:
        return pd.DataFrame(columns=["round", "metric", "value"])
    rows = pd.concat([run.history for run, *_ in found], keys=range(len(found)), names=["run", "round"]).reset_index()
    long = rows.melt(["run", "round"], var_name="metric").dropna().sort_values("run", kind="stable", ignore_index=True)
    told = pd.DataFrame([{**ids, **labels} for _, ids, labels in found])
    return pd.concat([told.loc[long.pop("run")].reset_index(drop=True), long], axis="columns")


def _labelled(
    stores: Path | str | Iterable[Path | str], experiment: str
) -> Iterator[tuple[Run, dict[str, str], dict[str, str | int | None]]]:
    """The runs of all stores, and the kept ones that no store has, each with what it is, its seed and its labels."""
    chosen = Experiment.read(experiment)
    folders = [stores] if isinstance(stores, str | Path) else stores
    found = [*unarchive(chosen.home), *(run for folder in folders for run in own(Path(folder), chosen.home))]
    runs = [*longest(found).values()]
    grid = [axis for axis in axes(chosen, runs) if {*axis.labels.values()} != {""}]  # no panel of a single one
    for run in runs:
        ids = {"trial": run.digest, "source": run.source, "state": "diverged" if run.diverged else "finished"}
        on = {axis.name: axis.label(run.settings) for axis in grid}
        labels = {name: run.settings.get(name) if label is None else label for name, label in on.items()}
        yield run, ids, labels | {"seed": int(run.tags["seed"])}
