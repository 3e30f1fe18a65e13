"""Summaries from source files, against the live objects."""

import subprocess
import sys
from functools import partial
from inspect import getdoc

import pytest

from rollcall.benchmark.config.choice import KINDS
from rollcall.benchmark.config.summaries import first_sentence, summaries


@pytest.mark.parametrize("kind", KINDS)
def test_the_sources_say_what_the_imported_objects_say(kind):
    live = {}
    for name, choice in KINDS[kind].known.items():
        described = choice.args[0] if isinstance(choice, partial) else choice
        live[name] = getdoc(described)
    read = summaries(KINDS[kind].address)
    assert list(read) == list(live)
    for name, text in live.items():
        assert read[name]
        assert " ".join(text.split()).startswith(read[name])


def test_first_sentence():
    assert first_sentence("As in Fig. 1 of Li et al. (2020). It is\nfast.") == "As in Fig. 1 of Li et al. (2020)"
    assert first_sentence("One\nline\n\nMore. Text.") == "One line"


LISTED = "import sys; sys.argv = ['rollcall', 'list', '--json']; from rollcall.benchmark.cli import main; main()"
PLACES = (
    "from rollcall.benchmark.config.experiment import *; [one.name for one in places(Experiment.read('fedpbc/table1'))]"
)


@pytest.mark.parametrize("code", [LISTED, PLACES])
def test_lists_and_names_of_runs_need_no_heavy_import(code):
    heavy = "[name for name in ('torch', 'lightning', 'pandas', 'scipy') if name in sys.modules]"
    code = f"import atexit, sys; atexit.register(lambda: print({heavy}, file=sys.stderr)); {code}"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stderr.strip() == "[]"
