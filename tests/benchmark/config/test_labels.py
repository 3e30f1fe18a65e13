"""Labels of an axis."""

import pytest

from benchmark import SettingError
from benchmark.config.labels import label_of, labelled, selected


def test_values_of_a_list_are_labelled_in_order():
    values = [{"name": "bernoulli", "probability": 0.5}, "full", {"name": "bernoulli"}, 0.1, "my/file.py:Mine"]
    axis = labelled(values)
    assert list(axis) == ["bernoulli", "full", "bernoulli#2", "0.1", "Mine"]
    assert list(axis.values()) == values
    assert labelled({1: "a", "b": 2}) == {"1": "a", "b": 2}
    assert [label_of(value) for value in (None, True, 3)] == ["None", "True", "3"]


def test_a_name_selects_all_values_with_this_name_in_the_order_of_the_axis():
    axis = {"full": 1, "bernoulli": 2, "markov": 3, "bernoulli#2": 4}
    assert selected("participation", axis, ["bernoulli", "full"]) == {"full": 1, "bernoulli": 2, "bernoulli#2": 4}
    assert selected("participation", axis, ["bernoulli#2"]) == {"bernoulli#2": 4}
    with pytest.raises(
        SettingError, match="only participation: 'bern' is not allowed; must be one of full, bernoulli,"
    ):
        selected("participation", axis, ["bern"])
