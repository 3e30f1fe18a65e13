"""Printed numbers in our units, and the cells they belong to."""

import math

import pytest

from rollcall.leaderboard.cells import cells
from rollcall.leaderboard.kept import papers
from rollcall.leaderboard.paper.experiment import printed


def test_printed_numbers_in_our_units(numbers):
    assert [(number.labels["participation"], number.labels["algorithm"]) for number in numbers] == [
        ("often", "fedavg"), ("often", "mifa"), ("seldom", "mifa"),
    ]  # fmt: skip
    assert (numbers[2].metric.name, numbers[2].value, numbers[2].sd) == ("test/accuracy", 0.4, None)


def test_one_number_for_two_methods_is_nobodys(numbers):
    """In our copy of Table I the rows of FedAvg with known p and MIFA are one row with one set of numbers."""
    for number in numbers[:2]:
        assert (number.value, number.sd) == (None, None)
        assert number.note == "the copy prints 61.5 ± 0.5 once for fedavg or mifa"
    assert numbers[2].note == ""


def test_what_the_paper_never_reached_is_infinite():
    (made,) = papers(["fedpbc/table2"])
    never = [number for number in printed(made) if number.labels == {"panel": "cifar10", "algorithm": "fedavg_all"}]
    assert [number.value for number in never if number.metric.threshold == 0.6] == [math.inf]
    assert [number.value for number in never if number.metric.threshold == 0.3] == [1500.0]


@pytest.mark.full
def test_printed_numbers_belong_to_cells_of_their_experiment():
    """Each number whose labels the experiment has is that of a cell, and most are."""
    for made in (one for one in papers() if one.reported):
        labels = [cell.labels for cell in cells(made, [])]
        known = {axis: {cell.get(axis) for cell in labels} for axis in labels[0]}
        beside = [[cell for cell in labels if number.of(cell)] for number in printed(made)]
        of_known = [all(label in known[axis] for axis, label in number.labels.items()) for number in printed(made)]
        assert [bool(found) for found in beside] == of_known, made.name
        assert sum(of_known) >= len(of_known) / 2 > 0, made.name
