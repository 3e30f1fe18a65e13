"""Choices: options from signatures, values of the types that annotations allow."""

from collections.abc import Callable, Mapping
from typing import Annotated

import numpy as np
import pytest
from annotated_types import Gt

from rollcall import SettingError
from rollcall.benchmark.config import choice
from rollcall.benchmark.config.choice import Kind, read
from rollcall.participation.probabilities import constant

Source = Callable[[int], np.ndarray]


def plain(m: int, *, size: Annotated[float, Gt(0)] = 1.0):
    return m * size


def mixed(
    m: int,
    *,
    probability: float | np.ndarray | Source,
    rows: int | np.ndarray | None = None,
    mask: np.ndarray | str = "",
):
    return m, probability, rows, mask


CHOICES: Mapping = {"plain": plain, "mixed": mixed}


@pytest.fixture(autouse=True)
def _kind(monkeypatch):
    monkeypatch.setitem(choice.KINDS, "toy", Kind(f"{choice.__name__}:TOYS", "m"))
    monkeypatch.setattr(choice, "TOYS", CHOICES, raising=False)


@pytest.mark.parametrize(
    ("value", "complaint"),
    [
        ({"name": "plain", "size": True}, "size: true is not allowed; must be a number"),
        ({"name": "plain", "size": "2"}, "size: '2' is not allowed; must be a number"),
        ({"name": "mixed", "probability": True}, "probability: true is not allowed; must be a number"),
        ({"name": "plain", "size": 0}, "size: 0 is not allowed; must be greater than 0"),
        ({"name": "plain", "sise": 0}, "sise: is not an option of plain; allowed: size"),
        ("plane", "name: 'plane' is not allowed; must be one of plain, mixed; or your own as"),
        ({"size": 1}, "name: is missing in {'size': 1}; must be one of plain, mixed; or your own as"),
    ],
)
def test_what_is_no_choice_is_refused(value, complaint):
    with pytest.raises(SettingError) as caught:
        read("toy", value)
    assert str(caught.value).startswith(complaint)


def options(**values):
    return read("toy", {"name": "mixed", "probability": 0.5} | values).options


def test_a_value_is_read_as_the_first_type_that_fits(tmp_path):
    choice = options(probability={"name": "constant", "p": 0.25})["probability"]
    assert (choice.factory, choice.options) == (constant, {"p": 0.25})
    assert options(probability="mixture")["probability"].name == "mixture"
    assert (options(probability=1)["probability"], type(options(probability=1)["probability"])) == (1.0, float)
    assert options(probability=[1, 0.5])["probability"].tolist() == [1, 0.5]
    assert options(rows=None)["rows"] is None
    assert options(rows=3)["rows"] == 3
    np.save(tmp_path / "a.npy", np.eye(2))
    assert options(rows=str(tmp_path / "a.npy"))["rows"].tolist() == [[1, 0], [0, 1]]
    (tmp_path / "a.csv").write_text("round,client\n0,4\n")
    assert options(mask=str(tmp_path / "a.csv"))["mask"]["client"].tolist() == [4]


@pytest.mark.parametrize(
    ("values", "complaint"),
    [
        ({"probability": "halfs"}, "probability: 'halfs' is not allowed; must be numbers, or the path of a .npy file"),
        ({"probability": None}, "probability: null is not allowed; must be numbers, or the path of a .npy file"),
        ({"rows": [[1], [1, 2]]}, r"rows: \[\[1\], \[1, 2\]\] is not allowed; must be numbers in rows of equal length"),
        ({"probability": {"name": "constant", "q": 1}}, "probability.q: is not an option of constant; allowed: p"),
    ],
)
def test_other_values_are_refused(values, complaint):
    with pytest.raises(SettingError, match=complaint):
        options(**values)
