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


def test_nothing_heavy_is_imported():
    code = (
        "import sys; sys.argv = ['rollcall', 'list', '--json']\n"
        "from rollcall.benchmark.cli import main\n"
        "try: main()\n"
        "except SystemExit: pass\n"
        "print([name for name in ('torch', 'lightning', 'pandas', 'scipy') if name in sys.modules], file=sys.stderr)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stderr.strip() == "[]"
