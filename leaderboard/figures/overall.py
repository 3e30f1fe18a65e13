"""The figure of methods over many conditions: mean ranks."""

from typing import Any

import altair as alt
import numpy as np
import pandas as pd

from rollcall.leaderboard.comparison import Overall
from rollcall.leaderboard.figures import theme
from rollcall.leaderboard.names import method_name


def overall_chart(over: Overall) -> alt.ConcatChart:
    """A row for each method with its mean rank, the best first; bars below, as in Demsar (2006), join methods alike."""
    names, ranks, width = [method_name(method) for method in over.ranks], list(over.ranks.values()), over.test[1]
    points: list[dict[str, Any]] = [
        {"row": f"{name} ({rank:.2f})", "rank": rank} for name, rank in zip(names, ranks, strict=True)
    ]
    joined = [one for one in over.alike if len(one) > 1]
    bars = [{"row": " " * (at + 1), "rank": ranks[one[0]], "end": ranks[one[-1]]} for at, one in enumerate(joined)]
    title = f"mean rank; critical difference {width:.2f}"
    title = title if np.isfinite(width) else "mean rank (so few seeds tell none apart at 5 %)"
    x = theme.axis(alt.X, "rank", title, (np.floor(ranks[0]), np.ceil(ranks[-1])))
    y = theme.rows_axis("row").scale(domain=[one["row"] for one in points + bars])
    layers = [alt.Chart(pd.DataFrame(points)).mark_point().encode(x, y)]
    layers += [alt.Chart(pd.DataFrame(bars)).mark_rule(size=4).encode(x, alt.X2("end"), y)] if bars else []
    view = alt.layer(*layers).properties(width=420, height=alt.Step(18))
    sets = "; ".join(", ".join(names[place] for place in one) for one in over.alike)
    text = f"Mean ranks of methods over {len(over.blocks)} conditions by {over.blocks[0][1].title}. Not told apart: {sets}."
    return theme.grid([view], text, caption="Bars join methods that are not told apart at 5 %.")
