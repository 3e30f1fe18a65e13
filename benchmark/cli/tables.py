"""The tables of an experiment, for MLflow. What writes them is found by entry points."""

from importlib.metadata import entry_points
from pathlib import Path

from benchmark.config.experiment import Experiment

GROUP = "rollcall.tables"
"""The entry-point group. An entry is a function that writes files into a folder."""


def write_tables(experiment: Experiment, store: Path, folder: Path) -> None:
    """Write the tables of an experiment as files into a folder.

    Args:
        experiment: as the command line changes it.
        store: folder of the run folders.
        folder: that the files go into; it exists.
    """
    for entry in entry_points(group=GROUP):
        entry.load()(experiment, store, folder)
