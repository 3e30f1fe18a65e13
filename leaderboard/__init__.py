"""Results into tables, verdicts, figures and pages. Reads what MLflow holds or the suite keeps, and experiments."""

from leaderboard.results import Run, archive, load, unarchive
from leaderboard.table import Row, Table, Value, tabulate

__all__ = ["Row", "Run", "Table", "Value", "archive", "load", "tabulate", "unarchive"]
