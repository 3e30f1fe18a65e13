"""The commands of the leaderboard; `benchmark/cli/app.py` names them."""
