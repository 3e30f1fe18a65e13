"""The commands `rollcall leaderboard`, `rollcall archive` and `rollcall report`; `benchmark/cli/app.py` names them."""
