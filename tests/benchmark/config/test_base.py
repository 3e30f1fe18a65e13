"""Settings from plain data and from YAML files."""

import pytest

from rollcall.benchmark.config.base import load_yaml
from rollcall.benchmark.config.errors import SettingError


def test_files_are_relative_to_the_yaml_file(tmp_path):
    (tmp_path / "a.yaml").write_text("mask: m.npy\nlist: [p.csv, word, 3]\ninner: {file: x.parquet}\n")
    assert load_yaml(tmp_path / "a.yaml") == {
        "mask": str(tmp_path / "m.npy"),
        "list": [str(tmp_path / "p.csv"), "word", 3],
        "inner": {"file": str(tmp_path / "x.parquet")},
    }


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
