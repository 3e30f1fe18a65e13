"""The picture of a participation model shows the rounds and probabilities that it was given."""

import numpy as np
import pytest

from rollcall.leaderboard.plots.participation import uplinks

MASK = np.array([[1, 0, 0], [1, 0, 1], [0, 1, 0], [1, 1, 0]], dtype=bool)


def blocks(figure):
    made = {}
    for row in figure.spec["datasets"]["on"]:
        made.setdefault(row["client"], []).append((row["start"], row["end"]))
    return made


def clients(figure):
    """The clients from above to below."""
    return figure.spec["concat"][0]["layer"][0]["encoding"]["y"]["scale"]["domain"]


def test_active_rounds_from_the_most_available_client_to_the_rarest():
    figure = uplinks(MASK, None)
    assert clients(figure) == ["0", "1", "2"]
    assert blocks(figure) == {"0": [(0, 2), (3, 4)], "1": [(2, 4)], "2": [(1, 2)]}
    assert [row["p"] for row in figure.spec["datasets"]["p"]] == [0.25, 0.5, 0.75]
    assert [row["active"] for row in figure.spec["datasets"]["counts"]] == [1, 2, 1, 2]
    assert "All 3 clients" in figure.alt
    assert len(figure.spec["concat"][2]["layer"]) == 1  # no curve of an expectation that is not known


def test_probabilities_decide_the_order_and_are_shown_with_their_range():
    p = np.array([[0.1, 0.2, 0.9]] * 4) + np.array([[0.0], [0.1], [0.0], [0.05]])
    figure = uplinks(MASK, p)
    assert clients(figure) == ["2", "1", "0"]
    assert figure.spec["datasets"]["p"][1] == {"client": "1", "p": 0.2375, "low": 0.2, "high": 0.3}
    assert [row["expected"] for row in figure.spec["datasets"]["counts"]] == pytest.approx([1.2, 1.5, 1.2, 1.35])


def test_of_many_clients_some_are_shown_over_the_whole_range_and_the_figure_says_so():
    p = np.linspace(0.01, 0.99, 1000)
    figure = uplinks(np.random.default_rng(0).random((20, 1000)) < p, np.broadcast_to(p, (20, 1000)))
    shown = [row["p"] for row in figure.spec["datasets"]["p"]]
    assert (len(shown), shown[0], shown[-1]) == (60, 0.01, 0.99)
    assert np.diff(shown) == pytest.approx(0.98 / 59, abs=1e-3)
    assert "60 of 1,000 clients" in " ".join(figure.spec["title"]["text"])
