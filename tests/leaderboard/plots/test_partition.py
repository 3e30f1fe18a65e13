"""A partition's picture, against counts that can be read off."""

import io

import numpy as np
import pytest

from rollcall.leaderboard.plots.partition import bubbles

HISTOGRAM = np.array([[4, 0, 0, 0], [10, 0, 10, 20], [1, 1, 1, 0]])


def test_a_bubble_lies_where_a_client_holds_a_class_and_has_the_area_of_its_samples():
    above, below = bubbles(HISTOGRAM).axes
    (drawn,) = below.collections
    area = {tuple(place): size for place, size in zip(drawn.get_offsets().tolist(), drawn.get_sizes(), strict=True)}
    assert {place: round(size / area[1, 3] * 20) for place, size in area.items()} == {
        (client, c): HISTOGRAM[client, c] for client in range(3) for c in range(4) if HISTOGRAM[client, c]
    }
    (steps,) = above.patches
    assert steps.get_data().values.tolist() == [4, 40, 3]
    assert steps.get_data().edges.tolist() == [-0.5, 0.5, 1.5, 2.5]


@pytest.mark.parametrize(("m", "C"), [(1, 1), (20, 10), (100, 10), (2000, 3)])
def test_bubbles_stay_in_their_rows_and_can_be_seen(m, C):
    figure = bubbles(np.full((m, C), 7))
    figure.savefig(io.BytesIO(), format="png")  # lays it out
    below = figure.axes[1]
    row = np.diff(below.transData.transform([[0, 0], [0, 1]])[:, 1])[0] / figure.dpi * 72
    diameter = below.collections[0].get_sizes().max() ** 0.5
    assert 6 <= diameter <= row
