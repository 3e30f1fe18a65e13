"""Fingerprints: equal for equal content, in another process too, and different for each difference."""

import subprocess
import sys
from functools import partial

import numpy as np
import pytest
import torch

from rollcall.benchmark.config.source import fingerprint


class Point:
    def __init__(self, x):
        self.x = x


def line(slope):
    return lambda t: slope * t


VALUES = [
    None, False, 0, 0.0, "0", [0], (0,), {"a": 0}, {0}, np.zeros(2), np.zeros(2, np.float32), np.zeros((2, 1)),
    torch.zeros(2), torch.zeros(3), Point(0), Point(1), line(1), line(2), partial(pow, 2), partial(pow, exp=2), Point, torch.nn.Linear(1, 1),
]  # fmt: skip


def test_different_values_differ():
    assert len({fingerprint(value) for value in VALUES}) == len(VALUES)


@pytest.mark.parametrize(
    ("one", "same"),
    [
        ({"a": 1, "b": 2}, {"b": 2, "a": 1}),
        ({1, 2, 3}, {3, 2, 1}),
        (Point(np.ones(2)), Point(np.ones(2))),
        (line(3), line(3)),
        (np.arange(6)[::2], np.array([0, 2, 4])),
    ],
)
def test_equal_content_is_equal(one, same):
    assert fingerprint(one) == fingerprint(same)


def test_an_object_that_contains_itself():
    point = Point(0)
    point.x = point
    assert fingerprint(point) == fingerprint(point)


def test_another_process_says_the_same():
    code = "from rollcall.benchmark.config.source import fingerprint; print(fingerprint({'b', 'a', 'c'}))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == fingerprint({"a", "b", "c"})
