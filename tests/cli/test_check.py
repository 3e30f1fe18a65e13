"""`rollcall check` and `rollcall enter`, and a board with a method of the user's own."""

import pytest
from command import rollcall

from rollcall.benchmark import conformance
from rollcall.benchmark.search import entry as entries
from rollcall.leaderboard.runs import PACKAGE

OWN = 'from rollcall.algorithms import ALGORITHMS\n\nclass Own(ALGORITHMS["fedavg"]):\n    pass\n'


def kept(**changes) -> entries.Entry:
    return entries.Entry.read(PACKAGE / "standard" / "digits" / f"fedavg{entries.ENDING}").model_copy(update=changes)


def test_what_a_part_does_not_state_has_a_dash_and_no_tick(capsys, monkeypatch):
    outcomes = [conformance.Outcome("first", True), conformance.Outcome("second", True, seen="probability unknown")]
    monkeypatch.setattr(conformance, "conform", lambda choice: outcomes)
    code, out, _ = rollcall(capsys, "check", "full", "--kind", "participation")
    assert code == 0
    assert [line.split()[:2] for line in out.splitlines()[1:]] == [["✓", "first"], ["-", "second"]]


@pytest.mark.parametrize(("text", "source"), [("fedavg", {}), ("own.py:Own", {"own.py": OWN})])
def test_the_lines_after_enter_say_trust_and_against_for_code_of_the_user(
    text, source, store, tmp_path, capsys, monkeypatch
):
    (tmp_path / "own.py").write_text(OWN)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("rollcall.cli.check._conform", lambda *_: None)
    monkeypatch.setattr(
        entries,
        "enter",
        lambda board, methods, *_, **__: [kept(method=methods[0].label, algorithm=text, source=source)],
    )
    code, out, _ = rollcall(capsys, "enter", text)
    assert code == 0
    assert ("--trust" in out) == ("--against" in out) == bool(source)


def test_a_board_counts_its_own_methods(store, capsys):
    kept(method="own").write(store / "standard" / "digits")
    code, out, err = rollcall(capsys, "leaderboard", "standard/digits", "--store", str(store))
    assert code == 0
    assert " own " in out
    assert "Measured with 19 of 19 methods" in " ".join((out + err).split())
    out = rollcall(capsys, "leaderboard", "standard/digits", "--against", "mifa", "--store", str(store))[1]
    assert "minus MIFA" in out
