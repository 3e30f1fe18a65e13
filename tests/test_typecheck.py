"""While tests run, functions and dataclasses of the suite refuse arrays whose shape is not the annotated one."""

import pytest
import torch
import typecheck
from jaxtyping import TypeCheckError

from rollcall.algorithms import Rows
from rollcall.algorithms.fedpbc import LocalModels


def test_wrong_shapes_are_refused():
    rows = Rows.begin(torch.zeros(2), 3)
    clients = torch.tensor([0, 2])
    assert rows.put(clients, torch.ones(2, 2)).dense().sum() == 4
    for call in (
        lambda: Rows.begin(torch.zeros(2, 2), 3),  # of a class method
        lambda: rows.put(clients, torch.ones(1, 2)),  # of two arguments that do not fit each other
        lambda: rows[torch.tensor([0.0])],  # the type of the numbers
        lambda: LocalModels(torch.zeros(3)),  # of a dataclass
    ):
        with pytest.raises(TypeCheckError):
            call()


def test_the_first_calls_in_a_test_are_checked():
    rows = Rows.begin(torch.zeros(2), 1)
    for _ in range(typecheck.CHECKED - 1):
        rows.put(torch.tensor([0]), torch.ones(1, 2))
    with pytest.raises(TypeCheckError):
        rows.put(torch.tensor([0.0]), torch.ones(1, 2))
    with pytest.raises(IndexError):  # of torch
        rows.put(torch.tensor([0.0]), torch.ones(1, 2))
