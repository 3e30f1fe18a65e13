"""Settings from plain data and from YAML files."""

from typing import Literal

import pytest
from pydantic import Field

from rollcall.benchmark.config.base import Settings, load_yaml, validated
from rollcall.benchmark.config.errors import SettingError, at


class Inner(Settings):
    rate: float = Field(gt=0)


class Outer(Settings):
    inner: Inner


@pytest.mark.parametrize(
    ("data", "complaint"),
    [
        ({"inner": {"rate": -1}}, "inner.rate: -1 is not allowed; must be greater than 0"),
        ({"inner": {}}, "inner.rate: is missing; it must be given"),
        ({"inner": {"rate": 1, "rat": 2}}, "inner.rat: is not a setting; allowed: rate"),
        ({"outer": 1}, "outer: is not a setting; allowed: inner"),
    ],
)
def test_errors_name_the_field_and_what_is_allowed(data, complaint):
    with pytest.raises(SettingError) as caught:
        validated(Outer, data)
    assert str(caught.value) == complaint


def test_errors_of_what_is_built_get_the_name_of_the_field():
    with pytest.raises(SettingError, match=r"^task\.clients: 0 is not allowed$"), at("task"):
        raise ValueError("clients: 0 is not allowed")


def test_files_are_relative_to_the_yaml_file(tmp_path):
    (tmp_path / "a.yaml").write_text("mask: m.npy\nlist: [p.csv, word, 3]\ninner: {file: x.parquet}\n")
    assert load_yaml(tmp_path / "a.yaml") == {
        "mask": str(tmp_path / "m.npy"),
        "list": [str(tmp_path / "p.csv"), "word", 3],
        "inner": {"file": str(tmp_path / "x.parquet")},
    }


class Kinds(Settings):
    steps: int | None = None
    rate: float = 0.1
    keep: bool = False
    size: int | Literal["full"] = "full"
    betas: tuple[float, float] = (0.9, 0.9)
    inner: dict[str, bool] | None = None


@pytest.mark.parametrize(
    ("data", "complaint"),
    [
        ({"steps": True}, "steps: true is not allowed; must be a number"),
        ({"steps": "3"}, "steps: '3' is not allowed; must be a number"),
        ({"size": True}, "size: true is not allowed; must be a number"),
        ({"betas": [0.9, True]}, "betas: true is not allowed; must be a number"),
        ({"keep": 1}, "keep: 1 is not allowed; must be true or false"),
        ({"keep": "yes"}, "keep: 'yes' is not allowed; must be true or false"),
    ],
)
def test_numbers_and_truth_values_are_told_apart(data, complaint):
    with pytest.raises(SettingError) as caught:
        validated(Kinds, data)
    assert str(caught.value) == complaint


def test_what_has_the_kind_of_the_field_is_allowed():
    content = {"steps": 1, "rate": 1, "keep": True, "size": "full", "betas": [0, 1.0], "inner": {"a": True}}
    assert validated(Kinds, content).model_dump() == content | {"betas": (0, 1.0)}
    assert validated(Kinds, {"steps": None}).steps is None


@pytest.mark.parametrize(
    ("content", "complaint"),
    [
        (
            b"trial:\n  rounds: 3\n  local: {lr: 1}\n  rounds: 4\n",
            "line 4: 'rounds' is already set in line 2; remove one",
        ),
        (bytes(range(256)), r"is not YAML \('utf-8' codec can't decode"),
        (None, r"cannot be read \(No such file or directory\)"),
    ],
)
def test_a_file_that_cannot_be_read_is_refused(content, complaint, tmp_path):
    if content is not None:
        (tmp_path / "a.yaml").write_bytes(content)
    with pytest.raises(SettingError, match=rf"a.yaml: {complaint}"):
        load_yaml(tmp_path / "a.yaml")


def test_a_merge_may_be_overridden(tmp_path):
    (tmp_path / "a.yaml").write_text("a: &a {x: 1}\nb: {<<: *a, x: 2}\n")
    assert load_yaml(tmp_path / "a.yaml")["b"] == {"x": 2}
