"""Where a failure is: against the line numbers of this file's own text."""

import inspect
from pathlib import Path
from unittest.mock import Mock

import pytest

from rollcall.algorithms import FedAvg
from rollcall.benchmark.config.choice import read
from rollcall.benchmark.conformance.failure import CheckFailed, location


class Dividing(FedAvg):
    def round(self, state, x, call, work):
        return self.helper() / 0, state  # fails here

    def helper(self):
        return 1


class Inheriting(FedAvg):
    """Has no `round` of its own."""


def line_of(text):
    """The number of the line of this file that begins with a text."""
    lines = Path(__file__).read_text().splitlines()
    return next(number for number, line in enumerate(lines, 1) if line.strip().startswith(text))


def test_a_failure_is_at_the_line_that_raised_it_or_where_the_round_or_the_class_begins(monkeypatch):
    with pytest.raises(ZeroDivisionError) as caught:
        Dividing().round(None, None, None, None)
    failure = CheckFailed("1", "2")
    read("algorithm", Dividing)  # makes its file known
    monkeypatch.chdir(Path(__file__).parent)  # places are relative to it
    for part, error, text in (
        (Dividing(), caught.value, "return self.helper() / 0"),
        (Dividing(), failure, "def round"),
        (Inheriting(), failure, "class Inheriting"),
    ):
        assert location(part, error) == f"test_failure.py:{line_of(text)}"
    monkeypatch.setattr(inspect, "getfile", Mock(side_effect=TypeError))  # a class without a file
    assert location(Inheriting(), failure) == ""
