"""`rollcall show` counts the runs that the suite keeps, not only those in the store."""

import pytest

from tests.support.command import rollcall


@pytest.mark.parametrize(
    ("arguments", "kept"),
    [
        (["sun/fig2"], "440 in the kept results"),
        (["sun/table1"], "0 in the kept results, 9 with fewer rounds"),
        (["quickstart"], None),
    ],
)
def test_kept_results_are_counted(arguments, kept, tmp_path, capsys):
    out = rollcall(capsys, "show", *arguments, "--store", str(tmp_path))[1]
    (line,) = [line for line in out.splitlines() if "finished in" in line]
    assert line.endswith(f"0 finished in {tmp_path / arguments[0]}" + (f"; {kept}" if kept else ""))
