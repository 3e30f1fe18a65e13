"""Printed numbers in our units, and the cells they belong to."""

import math

import pandas as pd
import pytest

from rollcall.benchmark.config.metric import Metric
from rollcall.leaderboard.cells import cells
from rollcall.leaderboard.kept import papers
from rollcall.leaderboard.paper.experiment import FOLDER, PaperExperiment, printed, printed_for


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


def test_table_1_has_one_number_for_known_p_and_mifa():
    (table,) = papers(["fedpbc/table1"])
    merged = [number for number in printed(table) if number.labels["algorithm"] in ("fedavg_known", "mifa")]
    assert len(merged) == 6 * 3 * 2 * 2
    assert {number.value for number in merged} == {None}
    assert "the copy prints 60.1 ± 3.5 once for fedavg_known or mifa" in {number.note for number in merged}


def test_what_the_paper_never_reached_is_infinite():
    (made,) = papers(["fedpbc/table2"])
    never = [number for number in printed(made) if number.labels == {"panel": "cifar10", "algorithm": "fedavg_all"}]
    assert [number.value for number in never if number.metric.threshold == 0.6] == [math.inf]
    assert [number.value for number in never if number.metric.threshold == 0.3] == [1500.0]


def test_the_number_of_a_cell(numbers):
    accuracy, often = Metric("test/accuracy"), {"participation": "often", "algorithm": "mifa", "panel": ""}
    assert printed_for(often, accuracy, numbers) is numbers[1]
    assert printed_for(often, Metric("train/accuracy"), numbers) is None
    assert printed_for(often | {"participation": "never"}, accuracy, numbers) is None


@pytest.mark.full
@pytest.mark.parametrize("made", [one for one in papers() if one.reported], ids=lambda made: made.name)
def test_printed_numbers_belong_to_cells_of_the_experiment(made):
    """Each number whose labels the experiment has is that of a cell, and most are."""
    labels = [cell.labels for cell in cells(made, [])]
    known = {axis: {cell.get(axis) for cell in labels} for axis in labels[0]}
    beside = [[cell for cell in labels if number.of(cell)] for number in printed(made)]
    of_known = [all(label in known[axis] for axis, label in number.labels.items()) for number in printed(made)]
    assert [bool(found) for found in beside] == of_known
    assert sum(of_known) >= len(of_known) / 2 > 0


def test_differences_in_the_table_of_ca_feds_readme():
    table = pd.read_csv(FOLDER / "ca_fed_readme.csv").set_index(["dataset", "algorithm"])
    judged = {"time-average": "time_average_percent", "maximum": "maximum_percent"}
    claims = [claim for claim in PaperExperiment.read("ca_fed/released").claims if claim.printed]
    assert [claim.quantity for claim in claims] == list(judged)
    for claim in claims:
        percent = table.loc["synthetic_clustered"][judged[claim.quantity]]
        assert claim.printed == pytest.approx(((percent["ca_fed"] - percent.drop("ca_fed")) / 100).to_dict())
