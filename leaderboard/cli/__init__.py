"""The commands `rollcall leaderboard`, `rollcall archive` and `rollcall report`. pyproject.toml names them."""

from leaderboard.cli.archive import archive
from leaderboard.cli.leaderboard import leaderboard, write_tables
from leaderboard.cli.report import report

__all__ = ["archive", "leaderboard", "report", "write_tables"]
