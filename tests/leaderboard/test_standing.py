"""The expectations of the boards, judged by hand from entries whose accuracies are invented."""

import pytest

from rollcall.benchmark.search.board import Board
from rollcall.benchmark.search.entry import ENDING, Entry
from rollcall.leaderboard.runs import PACKAGE
from rollcall.leaderboard.standing import Standing, verdicts

BOARDS = {name: Board.read(f"standard/{name}") for name in ("digits", "fashion")}
SEARCHES = [80.0, 81.0, 82.0, 83.0, 84.0]
NOISE = [0.1, -0.1, 0.1, -0.1, 0.0]
ALL = ("equal", "coupled", "absences", "varying", "cyclic", "together")


def judged(board="fashion", missing=0, noise=1.0, **gains):
    """The verdicts if a method is this many points above FedAvg under a pattern, up to noise; by default under none."""
    kept = Entry.read(PACKAGE / "standard" / "digits" / f"fedavg{ENDING}")
    entries = {}
    for method in list(BOARDS[board].methods)[: len(BOARDS[board].methods) - missing]:
        cells = {}
        for pattern in ALL:
            gain = gains.get(f"{pattern}_{method}", 0.0)
            values = [a + gain + noise * (method != "fedavg") * e for a, e in zip(SEARCHES, NOISE, strict=True)]
            cells[pattern] = [
                one.model_copy(update={"finals": [run.model_copy(update={"value": v / 100}) for run in one.finals]})
                for one, v in zip(kept.cells[pattern], values, strict=True)
            ]
        entries[method] = kept.model_copy(update={"method": method, "cells": cells})
    return {name: verdict for name, (verdict, _) in verdicts(Standing(BOARDS[board], entries)).items()}


def test_each_expectation_from_the_sign_and_the_size_that_decides():
    """Noise of 0.1 in four of five searches makes an interval of 0.12 = 2.776 x 0.1 / sqrt(5)."""
    none = judged()
    assert none == {
        "nothing to correct": "holds",
        "knowledge pays": "contradicted",
        "memory pays with absences": "undecided",
        "no method for all": "contradicted",
    }
    assert judged(equal_mifa=2.5)["nothing to correct"] == "contradicted"
    assert judged(equal_mifa=2.05)["nothing to correct"] == "undecided"
    assert judged(coupled_fedavg_known=2.5)["knowledge pays"] == "holds"
    assert judged(coupled_fedavg_known=1.95)["knowledge pays"] == "undecided"
    assert judged("digits", coupled_fedavg_known=2.5)["knowledge pays"] == "not about this board"
    more = {"absences_mifa": 2.0, "absences_fedvarp": 2.0, "coupled_mifa": 1.0}
    assert judged(noise=0.0, **more)["memory pays with absences"] == "holds"  # 2 less 0.5, in every search
    assert judged(noise=0.0, coupled_mifa=1.0)["memory pays with absences"] == "contradicted"


def test_no_method_is_best_everywhere_if_each_loses_once():
    first, second = list(BOARDS["fashion"].methods)[:2]
    gains = {f"{pattern}_{first if pattern == 'equal' else second}": 1.0 for pattern in ALL}
    assert judged(**gains)["no method for all"] == "holds"


@pytest.mark.parametrize("missing", [1, 3])
def test_what_is_said_of_all_methods_is_open_while_one_is_missing(missing):
    found = judged(missing=missing)
    assert (found["nothing to correct"], found["no method for all"]) == ("open", "open")
    assert found["knowledge pays"] == "contradicted"
    assert judged(missing=missing, equal_fedavg_known=2.5)["nothing to correct"] == "contradicted"  # stays so
