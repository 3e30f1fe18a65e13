"""The tutorial "Bring your own" works as it stands: all its cells run, and names and objects give the same numbers."""

import json
import re
import subprocess
import sys

import pytest
from pages import blocks

pytestmark = pytest.mark.full

PARTS = ("small", "sorted_by_label", "ramp", "lottery", "Weekdays", "LargestError", "Normalised")

NOTEBOOK = """
import contextlib, io, json, shlex, sys
from pathlib import Path
from rollcall.cli import main
import rollcall.cli.run, rollcall.benchmark.sweep.run
# One trial after another, without MLflow.
rollcall.benchmark.sweep.run.find_spec = rollcall.cli.run.find_spec = lambda name: None
sys.path.insert(0, "")
outputs, variables = [], {}
for cell in json.loads(sys.stdin.read()):
    if cell.startswith("%%writefile "):
        name, _, text = cell.removeprefix("%%writefile ").partition("\\n")
        Path(name).write_text(text)
    elif cell.startswith("!rollcall "):
        stream = io.StringIO()
        for line in cell.strip().splitlines():
            sys.argv = shlex.split(line.removeprefix("!"))
            try:
                with contextlib.redirect_stdout(stream), contextlib.redirect_stderr(stream):
                    main()
            except SystemExit as end:
                assert not end.code, stream.getvalue()
        outputs.append(stream.getvalue())
    elif not cell.startswith("!"):
        *statements, expression = cell.strip().splitlines()
        exec("\\n".join(statements), variables)
        outputs.append(eval(expression, variables))
Path("outputs.json").write_text(json.dumps(outputs))
"""


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """The folder in which the page ran, and the outputs of its commands and Python cells."""
    folder = tmp_path_factory.mktemp("tutorial")
    cells = blocks("docs/tutorial-own.md", language="{code-cell} python")
    done = subprocess.run(
        [sys.executable, "-c", NOTEBOOK], input=json.dumps(cells), cwd=folder, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return folder, json.loads((folder / "outputs.json").read_text())


def test_the_file_has_a_part_of_every_kind_and_the_experiment_uses_them(run):
    folder, (check, *_) = run
    passed = set(re.findall(r"mine.py:(\w+) \(\w+\) passes", check))
    assert passed == set(PARTS) - {"Normalised"}  # there are no checks of server optimizers
    assert all(f"mine.py:{part}" in (folder / "own.yaml").read_text() for part in PARTS)


def test_names_and_objects_give_the_same_numbers(run):
    folder, (_, ran, table, values, equal) = run
    assert "3 trials: 3 run now, 0 before, 0 failed" in ran
    assert "LargestError" in table
    assert equal == {"weekdays": True, "lottery": True, "ramp": True}
    assert all(0.1 < value <= 1 for value in values.values())  # a wrong label of ten was the most probable one
    copies = folder.glob("runs/own/*/source/mine.py")
    assert [copy.read_text() for copy in copies] == [(folder / "mine.py").read_text()] * 3
