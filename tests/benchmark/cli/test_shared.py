"""What several commands share."""

import json
import math

import pytest
from command import rollcall, write
from matplotlib.figure import Figure

from rollcall.benchmark.cli.shared import draw, strict_json
from rollcall.benchmark.config.errors import SettingError


def test_a_picture_is_written_into_a_new_folder(tmp_path, capsys):
    draw("partition", Figure(figsize=(2, 1)), tmp_path / "new" / "a.PNG")
    written = (tmp_path / "new" / "a.PNG").read_bytes()
    assert written.startswith(b"\x89PNG")
    assert [int.from_bytes(written[i : i + 4]) for i in (16, 20)] == [300, 150]  # pixels, at 150 an inch
    assert capsys.readouterr().err == f"partition: {tmp_path}/new/a.PNG\n"


@pytest.mark.parametrize("name", ["a.docx", "a", "a.png.gz"])
def test_a_format_that_cannot_be_drawn_is_refused(name, tmp_path):
    with pytest.raises(SettingError, match=rf"^plot: '.*{name}' is not allowed; must end in one of .*\.png, .*\.svg"):
        draw("partition", Figure(), tmp_path / "new" / name)
    assert not list(tmp_path.iterdir())


def test_numbers_that_json_does_not_know_are_null():
    value = {"a": math.nan, "b": [math.inf, (-math.inf, 1.5)], "c": {"d": None, "e": "NaN", "f": 3, "g": True}}
    expected = {"a": None, "b": [None, [None, 1.5]], "c": {"d": None, "e": "NaN", "f": 3, "g": True}}
    assert json.loads(strict_json(value)) == expected


def test_a_metric_that_the_last_evaluation_lacks_is_null(store, tmp_path, capsys):
    """The last round measures only the training split. Python's own reader would accept NaN."""
    last = {"rounds": 1, "every": 1, "splits": ["train"]}
    trial = {
        "task": {"name": "digits", "clients": 5},
        "local": {"lr": 0.1, "batch_size": 8},
        "rounds": 2,
        "evaluation": {"every": 1, "last": last},
    }
    file = write(tmp_path, trial=trial, grid={"algorithm": ["fedavg"]}, report={})
    run, show = (
        rollcall(capsys, *command, "--json")[1] for command in (("run", file, "--executor", "inline"), ("show", file))
    )
    for text in (run, show):
        (report,) = json.loads(text, parse_constant=lambda name: name)
        assert report["metrics"]["test/accuracy"] is None
        assert report["metrics"]["train/loss"] > 0
