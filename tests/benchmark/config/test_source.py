"""The digest of the suite's code: comments, docstrings and layout do not change it, statements do."""

import pytest

from rollcall.algorithms import FedAvg
from rollcall.benchmark.config.source import _code_digest, suite_code
from rollcall.benchmark.config.trial import Trial
from rollcall.participation import Full
from rollcall.tasks import TASKS

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


def test_a_trial_names_the_modules_of_its_choices_and_their_base_classes(tmp_path):
    (tmp_path / "mine.py").write_text("from rollcall.algorithms import FedAvg\nclass Mine(FedAvg): ...\n")
    task = {"name": "quadratic", "targets": [0.0, 1.0]}
    own = Trial.read({"task": task, "algorithm": f"{tmp_path}/mine.py:Mine", "rounds": 1})
    chosen = (FedAvg, Full, TASKS["quadratic"])
    assert {thing.__module__.removeprefix("rollcall.") for thing in chosen} <= set(own.code)
    assert "algorithms.base" in own.code  # of the base class
    assert set(own.code) == set(Trial.read({"task": task, "algorithm": "fedavg", "rounds": 1}).code)
    assert own.code["algorithms.fedavg"] == suite_code(FedAvg)["algorithms.fedavg"]
