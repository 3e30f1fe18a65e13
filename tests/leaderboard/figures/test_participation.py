"""Figures of participation models show the rounds, probabilities and correlations that they were given."""

import numpy as np
import pytest

from rollcall.leaderboard.figures import uplinks

MASK = np.array([[1, 0, 0], [1, 0, 1], [0, 1, 0], [1, 1, 0]], dtype=bool)


def data(chart):
    """The rows of the blocks, of the probabilities and of the rounds."""
    on, p, counts = (view.data for view in chart.concat)
    return on, p, counts


def test_active_rounds_from_the_most_available_client_to_the_rarest():
    chart = uplinks(MASK, None)
    on, p, counts = data(chart)
    blocks = [(row.client, row.start, row.end) for row in on.itertuples()]
    assert blocks == [("0", 0, 2), ("0", 3, 4), ("1", 2, 4), ("2", 1, 2)]
    assert list(zip(p["client"], p["value"], strict=True)) == [("0", 0.75), ("1", 0.5), ("2", 0.25)]
    assert list(counts["active"]) == [1, 2, 1, 2]
    assert "All 3 clients" in chart.description
    roll, _, below = chart.to_dict()["concat"]
    assert roll["layer"][0]["encoding"]["y"]["scale"]["domain"] == ["0", "1", "2"]
    assert len(below["layer"]) == 1  # no curve of an expectation that is not known
    ends = [view["layer"][0]["encoding"]["x"]["scale"]["domain"] for view in (roll, below)]
    assert ends == [[0, 4], [0, 4]]
    assert roll["width"] == below["width"]  # one axis of rounds for both


def test_probabilities_decide_the_order_and_are_shown_with_their_range():
    p = np.array([[0.1, 0.2, 0.9]] * 4) + np.array([[0.0], [0.1], [0.0], [0.05]])
    _, shown, counts = data(uplinks(MASK, p))
    assert list(shown["client"]) == ["2", "1", "0"]
    assert shown.iloc[1, 1:].to_list() == pytest.approx([0.2375, 0.2, 0.3])
    assert list(counts["expected"]) == pytest.approx([1.2, 1.5, 1.2, 1.35])
