"""Partitions out of files, each form of file written by hand."""

import numpy as np
import pytest

from rollcall import SettingError, Trial
from rollcall.tasks.partitions import from_file, read_assignment

LABELS = np.array([0, 1, 1, 0, 2, 2])
CLIENTS = [1, 0, -1, 1, 0, 2]


def test_rows_go_to_the_clients_that_the_file_names():
    parts = from_file(LABELS, 3, 0, assignment=np.array(CLIENTS))
    assert [rows.tolist() for rows in parts.rows] == [[1, 4], [0, 3], [5]]  # row 2 is nobody's
    assert parts.classes.tolist() == [[0, 0.5, 0.5], [1, 0, 0], [0, 0, 1]]


def test_files_of_every_form_say_the_same(tmp_path):
    np.save(tmp_path / "a.npy", CLIENTS)
    np.savez(tmp_path / "a.npz", anything=CLIENTS)
    (tmp_path / "a.csv").write_text("client\n1\n0\n-1\n1\n0\n2\n")
    for ending in ("npy", "npz", "csv"):
        assert read_assignment(str(tmp_path / f"a.{ending}")).tolist() == CLIENTS
    assert read_assignment(CLIENTS).tolist() == CLIENTS


def trial(assignment):
    partition = {"name": "from_file", "assignment": assignment}
    task = {"name": "digits", "clients": 3, "partition": partition}
    return Trial.read({"task": task, "algorithm": "fedavg", "rounds": 1})


def test_a_trial_is_known_by_the_files_content(tmp_path):
    file = tmp_path / "a.csv"
    assignment = np.arange(1437) % 3
    file.write_text("client\n" + "\n".join(map(str, assignment)))
    one = trial(str(file))
    _, data = one.task.build(0)
    assert [rows[:2].tolist() for rows in data.parts] == [[0, 3], [1, 4], [2, 5]]
    assert one.digest == trial(assignment.tolist()).digest
    file.write_text("client\n" + "\n".join(map(str, assignment[::-1])))
    assert trial(str(file)).digest != one.digest
    one.save(tmp_path)
    assert Trial.read(tmp_path / "trial.yaml").digest == one.digest


def test_wrong_files_are_refused(tmp_path):
    (tmp_path / "two.csv").write_text("sample,client\n0,1\n")
    np.savez(tmp_path / "two.npz", a=CLIENTS, b=CLIENTS)
    for file, complaint in [
        ("none.csv", r"a .npy, .npz or .csv file that exists"),
        ("two.csv", r"must have the one column client, not sample,client"),
        ("two.npz", r"must hold one array, not 2"),
    ]:
        with pytest.raises(SettingError, match=rf"^task.partition.assignment: .*{file}' is not allowed; .*{complaint}"):
            trial(str(tmp_path / file))


@pytest.mark.parametrize(
    ("assignment", "complaint"),
    [
        ([0, 1, 2], r"partition.assignment: int64 of shape \(3,\) .*must be 6 whole numbers"),
        ([0.0] * 6, r"partition.assignment: float64 of shape \(6,\)"),
        ([0, 1, 2, 3, 0, 0], r"partition.assignment: client 3 of sample 3 .*\[-1, 2\]"),
        ([0, -2, 2, 1, 0, 0], r"partition.assignment: client -2 of sample 1 "),
        ([0, 2, 2, 0, 0, 0], r"partition.assignment: no sample of client 1 "),
    ],
)
def test_wrong_assignments_are_refused(assignment, complaint):
    with pytest.raises(ValueError, match=complaint):
        from_file(LABELS, 3, 0, assignment=np.array(assignment))
