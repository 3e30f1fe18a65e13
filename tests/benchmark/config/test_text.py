"""Settings as text and YAML files: numbers with an exponent, assignments, paths, hostile documents, times."""

import math

import pytest
import yaml

from rollcall import SettingError
from rollcall.benchmark.config.base import load_yaml
from rollcall.benchmark.config.experiment import Experiment
from rollcall.benchmark.config.grid import grid_points
from rollcall.benchmark.config.text import dumped, parse_all, parsed, read_time, with_line
from rollcall.benchmark.search.space import domain, read_space

NUMBERS = {"1e-2": 0.01, "1E5": 100000.0, "-2e3": -2000.0, "+1.e+2": 100.0, ".5e1": 5.0, "1.5e-3": 0.0015, "3": 3}
NUMBERS |= {"1.5": 1.5, "-.5": -0.5, ".inf": math.inf}
WORDS = [
    "010",
    "1:30",
    "0x10",
    "e5",
    "1e",
    "1e-",
    "12e4f",
    "1.2.3",
    "1e5 x",
    ".",
    ".e5",
    "1:30.5",
    "2026-02-30",
    "2026-01-01",
]


@pytest.mark.parametrize("text", NUMBERS)
def test_a_number_with_an_exponent_is_a_number(text, tmp_path):
    (tmp_path / "a.yaml").write_text(f"local: {{lr: {text}}}\nlist: [{text}]\n")
    assert load_yaml(tmp_path / "a.yaml") == {"local": {"lr": NUMBERS[text]}, "list": [NUMBERS[text]]}
    values = parse_all("set", [f"local.lr={text},{{name: x, lr: {text}}}"])["local.lr"]
    assert values == [NUMBERS[text], {"name": "x", "lr": NUMBERS[text]}]
    (tmp_path / "space.yaml").write_text(f"local.lr: [{text}, 7]\n")
    for space in (tmp_path / "space.yaml", f"local.lr={text},7"):
        assert domain("local.lr", read_space(space)["local.lr"]).values == (NUMBERS[text], 7)


@pytest.mark.parametrize("text", [*NUMBERS, *WORDS, "12e4567890", "true", ""])
def test_what_is_written_is_read_as_it_was(text):
    """A digest such as 12e4567890 is a text."""
    content = {"text": text, "number": 1e-5, "list": [text]}
    assert parsed(dumped(content)) == yaml.safe_load(dumped(content)) == content
    if text in WORDS:
        assert parsed(f"a: {text}") == {"a": text}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("local.lr", r"^set: 'local\.lr' is not allowed; must be SETTING=VALUE or SETTING=VALUE,VALUE$"),
        ("=3", r"^set: '=3' is not allowed; must be SETTING=VALUE"),
        ("local.lr=", r"^set local\.lr: '' is not allowed; must be VALUE or VALUE,VALUE$"),
        ("local.lr=!!int x", r"^set local\.lr: '!!int x' is not allowed; must be VALUE"),
        ("local.lr=" + 5000 * "1", r"^set local\.lr: '1+' is not allowed; must be VALUE"),
        ("local.lr=[1", r"^set local\.lr: '\[1' is not allowed; must be VALUE"),
    ],
)
def test_what_is_no_assignment_is_refused(text, message):
    with pytest.raises(SettingError, match=message):
        parse_all("set", [text])


def test_a_comma_before_an_axis_starts_a_new_assignment():
    assert parse_all("set", ["panel=cifar10,svhn, local.lr=0.1,1e-3", "panel=mnist"]) == {
        "panel": ["cifar10", "svhn", "mnist"],
        "local.lr": [0.1, 1e-3],
    }
    assert parse_all("set", ["algorithm={name: mifa, memory: updates},fedavg"]) == {
        "algorithm": [{"name": "mifa", "memory": "updates"}, "fedavg"]
    }


@pytest.mark.fault
@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("a: &a [1, *a]", "is nested too deeply, or an alias holds itself"),
        ('a: 1\ntitle: "red \\e[31m"', "line 2: the control character '\\x1b' is not allowed"),
        ('"a\\x9b": 1', "line 1: the control character '\\x9b'"),
    ],
)
def test_a_hostile_document_is_refused_in_one_line(text, complaint, tmp_path):
    file = tmp_path / "file.yaml"
    file.write_text(text)
    with pytest.raises(SettingError) as refused:
        load_yaml(file)
    assert str(refused.value).startswith(f"{file}: {complaint}")
    assert "\n" not in str(refused.value)


def test_times_as_people_write_them():
    assert [read_time(text, "every") for text in ("30s", "90m", "2h", "1.5h")] == [30, 5400, 7200, 5400]
    for text in ("2", "h", "2 h", "2d", "-1h", "0h", "1e3s"):
        with pytest.raises(SettingError, match=rf"^every: '{text}' is not allowed; must be a number above 0 with s, m"):
            read_time(text, "every")


def test_files_are_relative_to_the_yaml_file(tmp_path):
    (tmp_path / "a.yaml").write_text(
        "title: Curves of log.txt\nmask: m.npy\nlist: [p.csv, word, 3]\ninner: {file: x.parquet}\n"
    )
    assert load_yaml(tmp_path / "a.yaml") == {
        "title": "Curves of log.txt",
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


FILE = """\
title: T
trial: {rounds: 1, algorithm: fedavg}
panels:
  one:
    trial:
      local: {momentum: 0.9}
      task: {name: digits, clients: 2,
             momentum: 1}
  two:
    trial:
      task: {name: digits, clients: 2}
      local:
        lr: 0
  three:
    trial:
      task: {name: digits, clients: 2}
    grid:
      participation:
        always: full
        often:
          {name: bernoulli, probabilty: 0.5}
  four:
    trial:
      task: {name: digits, clients: 2}
      local: {lr: 0.1}
    grid:
      setup:
        slow: {learning: 0.1}
"""


def test_an_error_has_the_line_of_its_setting(tmp_path):
    """Not that of the first key of this name, also in a panel and below a label of an axis."""
    file = tmp_path / "mine.yaml"
    file.write_text(FILE)
    for point, line in zip(grid_points(Experiment.read(str(file))), (8, 13, 0, 21, 28), strict=True):
        if not line:
            point.trial  # noqa: B018
            continue
        with pytest.raises(SettingError) as refused:
            point.trial  # noqa: B018
        assert str(with_line(refused.value, file)) == f"{file}:{line}: {refused.value}"
    for said in ("lr: is not a setting; allowed: task", "panel four: lr: is not a setting"):  # of `--set`
        assert str(with_line(SettingError(said), file)) == said
    assert str(with_line(SettingError("rounds: 0 is not allowed"), None)) == "rounds: 0 is not allowed"
