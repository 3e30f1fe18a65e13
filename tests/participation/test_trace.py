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


def test_clients_replay_chosen_devices():
    mask = np.array([[1, 0, 0, 1], [0, 1, 0, 1]])
    model = Trace(Population(2), mask=mask, devices=np.array([3, 1]))
    assert [model.active(t).tolist() for t in range(2)] == [[0], [0, 1]]
    # Shuffled: each client has one of the devices, none of them twice, and seeds differ.
    drawn = [Trace(Population(3, seed), mask=mask, shuffle=True).mask for seed in range(20)]
    columns = {tuple(column) for column in mask.T}
    assert all({tuple(column) for column in one.T} <= columns and len(set(map(tuple, one.T))) == 3 for one in drawn)
    assert len({one.tobytes() for one in drawn}) > 10
    assert np.array_equal(Trace(Population(3, 4), mask=mask, shuffle=True).mask, drawn[4])
    with pytest.raises(ValueError, match="devices: 4 recorded devices are not allowed; must be at least 5"):
        Trace(Population(5), mask=mask, shuffle=True)
    with pytest.raises(ValueError, match=r"devices: .*must be numbers from 0 to 3"):
        Trace(Population(2), mask=mask, devices=np.array([0, 4]))


def test_a_random_start_shifts_rounds_and_what_an_oracle_knows():
    p = np.array([[0.1, 0.5], [0.2, 0.6], [0.3, 0.7]])
    mask = np.array([[1, 0], [0, 1], [1, 1]])
    starts = set()
    for seed in range(12):
        model = Trace(Population(2, seed), mask=mask, probability=p, random_start=True, wrap=False)
        starts.add(model.start)
        for t in range(4):
            past = t + model.start >= 3
            assert model.active(t).tolist() == ([] if past else np.flatnonzero(mask[t + model.start]).tolist())
            assert np.array_equal(model.probability(t), p[(t + model.start) % 3])
    assert starts == {0, 1, 2}
    told = Trace(Population(2), mask=mask, constant_probability=True)
    assert told.probability(5) == pytest.approx([2 / 3, 2 / 3])


def test_unix_times_start_at_the_midnight_of_their_zone(tmp_path):
    # 2020-01-31 00:30 UTC is 08:30 in Shanghai: round 17 of half hours; in UTC round 1.
    (tmp_path / "calls.csv").write_text("client,start,end\n0,1580430600,1580432400\n")
    for zone, round_ in (("UTC", 1), ("Asia/Shanghai", 17)):
        model = Trace(Population(1), mask=str(tmp_path / "calls.csv"), round_length=1800, time_zone=zone)
        assert np.flatnonzero(model.mask).tolist() == [round_]
    with pytest.raises(ValueError, match="time_zone: 'Mars' is not allowed"):
        Trace(Population(1), mask=str(tmp_path / "calls.csv"), round_length=1800, time_zone="Mars")


def test_the_phones(phones):
    model = Trace(Population(300), mask="phones", round_length=600)
    assert model.mask.shape == (894, 300)  # 6.2 days
    assert (model.stationary == 0).sum() == 4
    assert model.mask.sum() / 894 == pytest.approx(47.2, abs=0.05)
    assert np.median(model.stationary) == pytest.approx(0.124, abs=5e-4)


def test_a_recording_with_a_name_must_be_the_file_of_this_name(tmp_path, monkeypatch):
    monkeypatch.setenv("ROLLCALL_DATA", str(tmp_path))
    file = tmp_path / "traces" / "phones.csv"
    with pytest.raises(ValueError, match=rf"there is no file {file}; docs/howto/recordings.md says how to get phones"):
        load("phones")
    file.parent.mkdir()
    file.write_text("client,start,end\n0,0,700\n")
    with pytest.raises(ValueError, match=r"phones.csv: is not the file of phones; its SHA-256 must be 5cfd"):
        load("phones")
    with pytest.raises(ValueError, match=r"there is no file laptops\. With a name: phones"):
        load("laptops")


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
