"""Results into tables, verdicts, figures and pages. Reads what MLflow holds or the suite keeps, and experiments."""

from leaderboard.ranking.table import Row, Table, Value, tabulate
from leaderboard.results import Run, archive, load, unarchive

__all__ = ["Row", "Run", "Table", "Value", "archive", "load", "tabulate", "unarchive"]
