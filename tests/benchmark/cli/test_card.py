"""What `rollcall show` prints of an experiment file; see also test_commands.py."""

import numpy as np
from command import TINY, rollcall, write

from rollcall.benchmark.cli.show import shortened


def test_long_vectors_are_shortened():
    assert shortened({"a": list(range(6)), "b": {"c": [[0.5, 1.0]] * 4}}) == {
        "a": [0, 1, 2, 3, 4, 5],
        "b": {"c": "4 x 2 numbers from 0.5 to 1"},
    }
    assert shortened(np.arange(7.0)) == "7 numbers from 0 to 6"
    assert shortened([{"p": list(range(9))}, "word"]) == [{"p": "9 numbers from 0 to 8"}, "word"]


def test_rounds_with_an_exponent_are_shown_as_a_number(tmp_path, store, capsys):
    file = write(tmp_path, trial=TINY["trial"] | {"rounds": 2e3})
    assert "4 trials of 2,000 rounds" in rollcall(capsys, "show", file)[1]
