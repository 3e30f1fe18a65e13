"""Two experiment files of one name do not share a folder by accident."""

import json

import pytest

from rollcall import SettingError
from rollcall.benchmark.cli.selection import claim


def test_another_file_with_other_content_is_refused(tmp_path):
    one, two, home = tmp_path / "d1" / "exp.yaml", tmp_path / "d2" / "exp.yaml", tmp_path / "runs" / "exp"
    for file in (one, two):
        file.parent.mkdir()
        file.write_text("title: A")
    claim(home, one)
    claim(home, two)  # a copy
    one.write_text("title: B")
    claim(home, two)  # its own
    with pytest.raises(SettingError, match=r"d1/exp.yaml: .*runs/exp has the runs of .*d2/exp.yaml. Write another"):
        claim(home, one)
    two.unlink()  # it has moved
    claim(home, one)
    one.write_text("title: C")  # it was edited
    claim(home, one)
    assert json.loads((home / "experiment.json").read_text())["file"] == str(one)
