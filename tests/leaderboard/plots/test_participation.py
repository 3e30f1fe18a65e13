"""Figures of clients show the rounds, probabilities and samples that they were given."""

import io

import numpy as np
import pytest

from rollcall.leaderboard.plots.participation import bubbles, probabilities, uplinks

MASK = np.array([[1, 0, 0], [1, 0, 1], [0, 1, 0], [1, 1, 0]], dtype=bool)


def blocks(axes):
    return [tuple(path.get_extents().intervalx) for path in axes.collections[0].get_paths()]


def test_uplinks_from_the_rarest_client_to_the_most_available():
    figure = uplinks(MASK, None, shown=3)
    assert [axes.get_ylabel() for axes in figure.axes] == ["client 2", "client 1", "client 0"]
    assert [blocks(axes) for axes in figure.axes] == [[(1, 2)], [(2, 4)], [(0, 2), (3, 4)]]
    assert [axes.get_ylabel() for axes in uplinks(MASK, None, shown=2).axes] == ["client 2", "client 0"]
    assert figure.axes[0].get_title() == "uplink on (blocks)"


def test_probabilities_are_steps_and_decide_the_order():
    p = np.array([[0.1, 0.2, 0.9]] * 4) + np.array([[0.0], [0.1], [0.0], [0.05]])
    figure = uplinks(MASK, p, shown=3)
    assert [axes.get_ylabel() for axes in figure.axes] == ["client 0", "client 1", "client 2"]
    assert figure.axes[1].lines[0].get_ydata().tolist() == pytest.approx([0.2, 0.3, 0.2, 0.25, 0.25])


def test_sorted_probabilities():
    left, right = probabilities(np.array([0.9, 0.12, 0.13])).axes
    assert right.lines[0].get_ydata().tolist() == [0.12, 0.13, 0.9]
    assert [bar.get_height() for bar in left.patches if bar.get_height()] == [2, 1]


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
