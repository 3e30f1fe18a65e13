"""Where a failure is: against the line numbers of this file's own text."""

import inspect
from pathlib import Path

import pytest

from rollcall.algorithms import FedAvg
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


def test_an_error_is_where_it_was_raised():
    with pytest.raises(ZeroDivisionError) as caught:
        Dividing().round(None, None, None, None)
    file, _, line = location(Dividing(), caught.value).rpartition(":")
    assert Path(file).name == "test_failure.py"
    assert int(line) == line_of("return self.helper() / 0")


def test_a_failed_check_is_where_the_round_or_the_class_begins(monkeypatch):
    failure = CheckFailed("1", "2")
    assert str(failure) == "expected 1; seen: 2"
    assert location(Dividing(), failure).endswith(f"test_failure.py:{line_of('def round')}")
    monkeypatch.chdir(Path(__file__).parent)
    assert location(Inheriting(), failure) == f"test_failure.py:{line_of('class Inheriting')}"  # relative


def test_a_class_without_a_file_has_no_place(monkeypatch):
    def unknown(thing):
        raise TypeError

    monkeypatch.setattr(inspect, "getfile", unknown)
    assert location(Inheriting(), CheckFailed("1", "2")) == ""
