"""Digests of the suite's code, in which only statements count, and fingerprints of objects."""

import importlib
import linecache
import sys
from collections import deque
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from threading import Lock
from types import ModuleType

import numpy as np
import pandas as pd
import pytest
import torch

from rollcall import SettingError, Trial
from rollcall.benchmark.config.source import _code_digest, fingerprint, source_of

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


@dataclass(slots=True)
class Slotted:
    x: int


class Point:
    def __init__(self, x):
        self.x = x


def line(slope):
    return lambda t: slope * t


VALUES = [
    None, False, 0, 0.0, "0", [0], (0,), {"a": 0}, {0}, np.zeros(2), np.zeros(2, np.float32), np.zeros((2, 1)),
    torch.zeros(2), torch.zeros(3), Point(0), Point(1), line(1), line(2), partial(pow, 2), partial(pow, exp=2), Point, torch.nn.Linear(1, 1),
    np.float32(1), np.float32(2), np.int64(1), Slotted(1), Slotted(2), range(2), range(3), Path("a"), Path("b"), np.random.default_rng(0),
    np.random.default_rng(1), pd.Series([1, 2]), pd.Series([1, 3]), pd.DataFrame({"a": [1.0]}), pd.DataFrame({"a": [2.0]}),
    deque([1]), deque([2]),
]  # fmt: skip


def test_different_values_differ():
    assert len({fingerprint(value) for value in VALUES}) == len(VALUES)


def test_equal_content_is_equal():
    for one, same in (
        ({"a": 1, "b": 2}, {"b": 2, "a": 1}),
        (Point(np.ones(2)), Point(np.ones(2))),
        (line(3), line(3)),
        (np.arange(6)[::2], np.array([0, 2, 4])),
        (pd.DataFrame({"a": [1.0]}), pd.DataFrame({"a": [1.0]})),
        (Slotted(np.int64(3)), Slotted(np.int64(3))),
        (Point(Lock()), Point(Lock())),  # it has no content
    ):
        assert fingerprint(one) == fingerprint(same)
    inside = Point(0)
    inside.x = inside
    assert fingerprint(inside) == fingerprint(inside)
    one, other = ({8, 0}, {0, 8})
    assert list(one) != list(other)  # in the order in which they were put in
    assert fingerprint(one) == fingerprint(other)


def test_a_path_is_the_content_of_its_file(tmp_path):
    def trial(mask):
        np.save(tmp_path / f"{len(mask)}.npy", mask)
        trace = {"name": "trace", "mask": tmp_path / f"{len(mask)}.npy"}
        task = {"name": "quadratic", "targets": [[0.0], [1.0]]}
        local = {"steps": 1, "lr": 0.1, "batch_size": "full"}
        return Trial.read({"task": task, "participation": trace, "algorithm": "fedavg", "local": local, "rounds": 1})

    one, other = trial(np.ones((1, 2), bool)), trial(np.ones((2, 2), bool))
    assert one.digest != other.digest
    one.save(tmp_path)
    assert Trial.read(tmp_path / "trial.yaml").digest == one.digest


def test_code_that_was_imported_before_its_file_changed_is_refused(tmp_path, monkeypatch):
    """The digest would be of the new text, and the results of the old code."""
    file = tmp_path / "imported_once.py"
    file.write_text("class M:\n    def half(self, x):\n        return x / 2\n")
    monkeypatch.syspath_prepend(tmp_path)
    module = importlib.import_module("imported_once")
    before = source_of(module.M)
    assert before == source_of(module.M)
    file.write_text(before.text.replace("x / 2", "0.50 * x"))  # another size, which a reload sees within a second
    with pytest.raises(SettingError, match=r"imported_once.py: was changed after M was imported; reload it"):
        source_of(module.M)
    old = module.M
    importlib.reload(module)
    assert source_of(module.M).digest != before.digest
    old.half.__code__ = module.M.half.__code__  # as IPython's autoreload does
    assert source_of(old).digest == source_of(module.M).digest


CELL = """from rollcall.algorithms import FedAvg


class Mine(FedAvg):
    def init(self, x, clients):
        return super().init(1 * x, clients)
"""


def test_a_class_of_a_notebook_is_identified_by_its_text(monkeypatch):
    """Before Python 3.13 `inspect` finds no class of `__main__` that is in no file; a cell has a name of its own."""
    main = ModuleType("__main__")
    monkeypatch.setitem(sys.modules, "__main__", main)

    def run(number, text):
        name = f"<cell {number}>"
        monkeypatch.setitem(linecache.cache, name, (len(text), None, text.splitlines(keepends=True), name))
        exec(compile(text, name, "exec"), vars(main))
        return Trial.read({"task": {"name": "quadratic", "targets": [0.0]}, "rounds": 1, "algorithm": main.Mine}).digest

    first = run(1, CELL)
    assert run(2, CELL.replace("1 * x", "2 * x")) != first
    assert run(3, CELL.replace("1 * x", "1  *  x")) == first
    without_methods = CELL.partition("    def")[0]
    values = [run(number, f"{without_methods}    memory = {number}\n") for number in (4, 5)]
    assert len({first, *values, run(6, f"{without_methods}    memory = 4\n")}) == 3
