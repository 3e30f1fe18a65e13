"""Nested settings."""

import pytest

from benchmark import SettingError
from benchmark.config.nested import merged, parse, parse_all, put


def test_merged_keeps_what_is_not_named_and_replaces_another_choice_whole():
    base = {"local": {"steps": 2, "lr": 0.1}, "task": {"name": "digits", "clients": 3}, "algorithm": "mifa"}
    assert merged(base, {"local": {"lr": 0.5}}) == base | {"local": {"steps": 2, "lr": 0.5}}
    assert merged(base, {"task": {"clients": 5}})["task"] == {"name": "digits", "clients": 5}
    assert merged(base, {"task": {"name": "mnist", "labels": [1]}})["task"] == {"name": "mnist", "labels": [1]}
    assert merged(base, {"algorithm": {"memory": "updates"}})["algorithm"] == {"name": "mifa", "memory": "updates"}
    assert merged(base, {"algorithm": {"name": "fedavg"}})["algorithm"] == {"name": "fedavg"}
    assert base["local"] == {"steps": 2, "lr": 0.1}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("local.lr", r"^set: 'local\.lr' is not allowed; must be SETTING=VALUE or SETTING=VALUE,VALUE$"),
        ("=3", r"^set: '=3' is not allowed; must be SETTING=VALUE"),
        ("local.lr=", r"^set local\.lr: '' is not allowed; must be VALUE or VALUE,VALUE$"),
        ("local.lr=[1", r"^set local\.lr: '\[1' is not allowed; must be VALUE"),
    ],
)
def test_what_is_no_assignment_is_refused(text, message):
    with pytest.raises(SettingError, match=message):
        parse("set", text)


def test_put():
    spec = {"a": "name", "b": {"c": 1}}
    assert put(spec, "a.x", 2) == {"a": {"name": "name", "x": 2}, "b": {"c": 1}}
    assert put(spec, "b.d.e", 2) == {"a": "name", "b": {"c": 1, "d": {"e": 2}}}
    assert spec == {"a": "name", "b": {"c": 1}}
    with pytest.raises(SettingError, match=r"c\.d: cannot be set; c is 1"):
        put(spec, "b.c.d", 2)


def test_parse():
    assert parse("set", "local.lr=0.1,1e-3") == ("local.lr", [0.1, 1e-3])
    assert parse("set", "algorithm={name: mifa, memory: updates},fedavg") == (
        "algorithm",
        [{"name": "mifa", "memory": "updates"}, "fedavg"],
    )
    assert parse("set", "algorithm=my.py:Mine") == ("algorithm", ["my.py:Mine"])


def test_a_comma_before_an_axis_starts_a_new_assignment():
    assert parse_all("set", ["panel=cifar10,svhn, local.lr=0.1,1e-3", "panel=mnist"]) == {
        "panel": ["cifar10", "svhn", "mnist"],
        "local.lr": [0.1, 1e-3],
    }
    assert parse_all("set", ["algorithm={name: mifa, memory: updates},fedavg"]) == {
        "algorithm": [{"name": "mifa", "memory": "updates"}, "fedavg"]
    }
