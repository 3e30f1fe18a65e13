"""Digests of the suite's code, in which only statements count, and fingerprints of objects."""

from functools import partial

import numpy as np
import pytest
import torch

from rollcall.benchmark.config.source import _code_digest, fingerprint

CODE = """'''A module.'''

def half(x):
    '''Half of x.'''
    return x / 2
"""


@pytest.mark.parametrize(
    ("change", "same"),
    [
        (("Half of x.", "x / 2."), True),
        (("A module.", "Another."), True),
        (("    return x / 2", "    # a comment\n\n    return (x/2)"), True),
        (("x / 2\n", "x / 3\n"), False),
        (("def half", "def halved"), False),
    ],
)
def test_only_statements_count(change, same, tmp_path):
    (tmp_path / "before.py").write_text(CODE)
    (tmp_path / "after.py").write_text(CODE.replace(*change))
    assert CODE.replace(*change) != CODE
    digests = {_code_digest(str(tmp_path / f"{name}.py")) for name in ("before", "after")}
    assert len(digests) == (1 if same else 2)


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


def test_equal_content_is_equal():
    for one, same in (
        ({"a": 1, "b": 2}, {"b": 2, "a": 1}),
        (Point(np.ones(2)), Point(np.ones(2))),
        (line(3), line(3)),
        (np.arange(6)[::2], np.array([0, 2, 4])),
    ):
        assert fingerprint(one) == fingerprint(same)
    inside = Point(0)
    inside.x = inside
    assert fingerprint(inside) == fingerprint(inside)
    one, other = ({8, 0}, {0, 8})
    assert list(one) != list(other)  # in the order in which they were put in
    assert fingerprint(one) == fingerprint(other)
