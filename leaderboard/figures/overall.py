"""The figure of methods over many conditions: mean ranks."""

import altair as alt
import pandas as pd

from rollcall.leaderboard.comparison import Overall
from rollcall.leaderboard.figures import theme
from rollcall.leaderboard.names import method_name
from rollcall.leaderboard.paper.quantities import estimate


def overall_chart(over: Overall) -> alt.ConcatChart:
    """A row for each method with its mean rank and its 95 % interval over seeds, the best first."""
    rows = []
    for method in map(str, over.ranks):
        rank = estimate(over.ranks[method].to_numpy())
        low, high = rank.interval()
        rows.append({"row": method_name(method), "value": rank.mean, "low": low, "high": high})
    data = pd.DataFrame(rows)
    x = theme.axis(alt.X, "value", "mean rank, 1 is best", (1, len(rows)))
    marks = theme.intervals(x, theme.rows_axis("row").scale(domain=[*data["row"]]), color=alt.value(theme.BLUE))
    text = f"Mean ranks of methods over {len(over.blocks)} conditions by {over.metric.title}."
    caption = "Lines: 95 %, Student's t over seeds."
    return theme.grid([alt.layer(*marks, width=420, height=alt.Step(18))], text, data=data, caption=caption)
