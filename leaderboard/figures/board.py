"""The figure of a board."""

from typing import TYPE_CHECKING

import altair as alt
import pandas as pd

from rollcall.leaderboard.figures import theme
from rollcall.leaderboard.names import method_name

if TYPE_CHECKING:  # imports torch, which other figures need not wait for
    from rollcall.leaderboard.standing import Standing


def board_chart(standing: "Standing") -> alt.ConcatChart:
    """A plot for each condition: a row for each method, the best mean rank first, with its accuracy and interval."""
    from rollcall.leaderboard.standing import interval

    views = []
    for name, table in standing.values.items():
        rows = []
        for method in (method for method in standing.order if method in table):
            mean, half = interval(table[method])
            row = {"row": method_name(method), "value": mean, "low": mean - half, "high": mean + half}
            rows.append(row | {"line": "best group" if method in standing.group(name) else "others"})
        data = pd.DataFrame(rows)
        looks = theme.in_turn(["best group", "others"])
        x = theme.axis(alt.X, "value", "test accuracy (%)", theme.room(pd.concat([data["low"], data["high"]])))
        marks = theme.intervals(x, theme.rows_axis("row"), data, color=theme.by_line("color", looks))
        views.append(alt.layer(*marks, width=theme.WIDTH, height=alt.Step(17), title=name))
    told = f"Mean and 95 % interval over {len(standing.board.search.seeds)} independent searches."
    return theme.grid(views, f"{standing.board.experiment.title}. {told}", caption=told)
