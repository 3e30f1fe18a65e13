"""The figure of `rollcall bench` shows the numbers it was given."""

import numpy as np

from rollcall.leaderboard.plots.timing import costs


def row(engine, clients, active, cost, plain, batch=16):
    figures = {"ms_per_client_round": cost, "reference_ms_per_client_round": plain}
    spread = {f"{key}_min": value / 2 for key, value in figures.items()}
    spread |= {f"{key}_max": value * 3 for key, value in figures.items()}
    return {"engine": engine, "clients": clients, "active": active, "steps": 5, "batch": batch} | figures | spread


ROWS = [row("fast", 100, 1, 8.0, 30.0), row("fast", 100, 10, 4.0, 31.0), row("fast", 900, 1, 8.5, 30.5)]
ROWS += [row("fast", 900, 10, 4.5, 31.5), row("slow", 900, 10, 9.0, 33.0), row("slow", 900, 1, 9.5, 32.0)]


def lines(axes):
    return {bars.get_label(): bars.lines[0].get_xydata().tolist() for bars in axes.containers}


def test_both_panels():
    left, right = costs(ROWS).axes
    assert (left.get_title(), left.get_xlabel()) == ("900 clients", "active clients")
    assert lines(left)["fast"] == [[1, 8.5], [10, 4.5]]
    assert lines(left)["slow"] == [[1, 9.5], [10, 9.0]]
    assert (right.get_title(), right.get_xlabel()) == ("10 active clients", "clients")
    assert lines(right)["fast"] == [[100, 4.0], [900, 4.5]]
    assert lines(right)["slow"] == [[900, 9.0]]
    bar = next(bars for bars in right.containers if bars.get_label() == "fast").lines[2][0].get_segments()
    assert np.array_equal(bar, [[[100, 2.0], [100, 12.0]], [[900, 2.25], [900, 13.5]]])


def test_the_plain_loop_is_one_line_whichever_engine_it_ran_beside():
    left, right = costs(ROWS).axes
    assert lines(left)["plain loop"] == [[1, (30.5 + 32.0) / 2], [10, (31.5 + 33.0) / 2]]
    assert lines(right)["plain loop"] == [[100, 31.0], [900, (31.5 + 33.0) / 2]]


def test_batches_are_told_apart():
    left, _ = costs([row("fast", 9, 1, 2.0, 3.0), row("fast", 9, 1, 1.0, 2.0, batch=4)]).axes
    assert lines(left)["fast, batch 16"] == [[1, 2.0]]
    assert lines(left)["fast, batch 4"] == [[1, 1.0]]
