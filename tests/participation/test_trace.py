"""Recordings in every format, replayed; and the statistics of a recording, by hand."""

import numpy as np
import pytest

from rollcall.participation import MODELS, Population, Trace
from rollcall.participation.recording import load, record, write

RECORDED = np.array([[1, 0, 1], [0, 0, 0], [0, 1, 0]])


def test_a_trace_replays_its_mask_and_wraps():
    model = Trace(Population(3), mask=RECORDED.tolist())
    assert [model.active(t).tolist() for t in range(5)] == [[0, 2], [], [1], [0, 2], []]
    ending = Trace(Population(3), mask=RECORDED, wrap=False)
    assert [ending.active(t).tolist() for t in (2, 3)] == [[1], []]
    assert model.probability(0) is None
    # On once in three rounds: P(on|on) = 0 and P(off|off) = 1/2, so lambda = -1/2.
    assert model.stationary == pytest.approx([1 / 3] * 3)
    assert model.correlation == pytest.approx([-1 / 2] * 3)
    assert model.share == pytest.approx([1 / 6, 1 / 3, 1 / 6])


def test_oracle_knowledge_of_a_trace_may_be_given():
    p = np.array([[0.5, 0.25], [1.0, 0.125]])
    told = {"probability": p, "stationary": p[0], "correlation": np.array([-1.0, 1.0]), "share": p[1]}
    model = Trace(Population(2), mask=np.ones((2, 2)), **told)
    assert model.probability(1).tolist() == model.probability(3).tolist() == [1.0, 0.125]
    assert model.stationary.tolist() == [0.5, 0.25]
    assert model.correlation.tolist() == [-1, 1]
    assert model.share.tolist() == [1, 0.125]


@pytest.mark.parametrize(
    ("options", "complaint"),
    [
        ({"mask": np.ones((4, 2))}, r"mask: shape \(4, 2\).*\[rounds, 3\]"),
        ({"mask": np.ones((0, 3))}, "mask: shape"),
        ({"mask": np.full((4, 3), 0.5)}, "mask: values other than 0 and 1"),
        ({"mask": np.ones((4, 3)), "probability": np.ones(2)}, r"probability: shape \(2,\).*\[3\] or \[4, 3\]"),
        ({"mask": np.ones((4, 3)), "probability": np.array([1, 1, 1.5])}, r"probability: 1.5 .*\[0, 1\]"),
        ({"mask": np.ones((4, 3)), "probability": np.array([1, 0, 1.0])}, r"probability: 0 \(client 1\)"),
        ({"mask": np.ones((4, 3)), "stationary": np.array([1, 1, np.nan])}, "stationary: nan"),
        ({"mask": np.ones((4, 3)), "correlation": np.array([0, 0, -1.5])}, r"correlation: -1.5 .*\[-1, 1\]"),
    ],
)
def test_a_trace_that_does_not_fit_is_refused(options, complaint):
    with pytest.raises(ValueError, match=complaint):
        Trace(Population(3), **options)


@pytest.mark.parametrize("ending", ["npy", "npz", "csv", "parquet"])
def test_a_written_mask_is_replayed(tmp_path, ending):
    model = MODELS["markov"](Population(5, 3), probability=np.array([0.1, 0.2, 0.1, 0.3, 0.0]))
    mask = record(model, 60)
    mask[-2:] = False  # empty rounds at the end must not get lost
    file = tmp_path / f"calls.{ending}"
    write(mask, file)
    for path in (file, str(file)):
        assert np.array_equal(record(Trace(Population(5), mask=path), 120), np.tile(mask, (2, 1)))


def test_intervals_in_seconds(tmp_path):
    file = tmp_path / "calls.csv"
    # Round t starts at 0.1 t. Client 1: [0.05, 0.2) and, overlapping it and written later, [0, 0.15): rounds 0 and 1.
    file.write_text("client,start,end\n1,0.05,0.2\n0,1.1,1.15\n1,0,0.15\n2,-3,0.05\n2,0.31,0.39\n0,0.3,0.3\n")
    mask = record(Trace(Population(3), mask=str(file), round_length=0.1), 12)
    on = {(int(t), int(i)) for t, i in np.argwhere(mask)}
    assert on == {(0, 1), (1, 1), (11, 0), (0, 2)}


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("round,client\n0,1\n1,x\n", "client 'x' .line 3 "),
        ("round,client\n0,1\n\n2,1\n", "round '' .line 3 "),
        ("round,client\n0,1\n-1,1\n", "round '-1' .line 3 "),
        ("round,client\n0,1.5\n", "client '1.5' .line 2 "),
        ("round,client\n0,0\n0,3\n", "client 3 .line 3 "),
        ("client,start,end\n0,1,2\n0,5,4\n", "end '4' .line 3 .*not before its start"),
        ("client,start,end\n0,1,inf\n", "end 'inf' .line 2 "),
        ("client,start,end\n0,1,2\n", "round_length: None"),
        ("who,when\n0,1\n", "columns who,when"),
        ("round,client\n", "without any round"),
    ],
)
def test_bad_rows_are_named_by_their_line(tmp_path, text, complaint):
    (tmp_path / "calls.csv").write_text(text)
    with pytest.raises(ValueError, match=complaint):
        Trace(Population(3), mask=str(tmp_path / "calls.csv"))


def test_a_file_without_an_array(tmp_path):
    file = tmp_path / "mask.npz"
    file.write_text("hello")
    with pytest.raises(ValueError, match=f"^'{file}' is not allowed; must be a .npz file of numbers$"):
        load(file)
