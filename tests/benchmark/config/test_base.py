"""Settings from plain data and from YAML files."""

import pytest
from pydantic import Field

from benchmark.config.base import Settings, load_yaml, validated
from benchmark.config.errors import SettingError, at


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
    with pytest.raises(SettingError, match=r"b.yaml: cannot be read \(No such file or directory\)"):
        load_yaml(tmp_path / "b.yaml")
