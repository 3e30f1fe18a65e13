"""Recordings in every format, replayed; small files, with rounds computed by hand."""

import errno
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from keys import keyed

from rollcall.participation import MODELS, Population, Trace
from rollcall.participation.recording import load, record, write

RECORDED = np.array([[1, 0, 1], [0, 0, 0], [0, 1, 0]])


@pytest.fixture
def replayed(tmp_path):
    """The rounds in which each client is active, of a file with this text, and the notes."""

    def replay(text, clients, name="calls.csv", names=None, **options):
        (tmp_path / name).write_text(text)
        model = Trace(Population(clients, names=names), mask=str(tmp_path / name), **options)
        return [np.flatnonzero(column).tolist() for column in model.mask.T], model.notes

    return replay


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
    p = np.array([[0.5, 0.25], [1.0, 0.125]])
    told = {"probability": p, "stationary": p[0], "correlation": np.array([-1.0, 1.0]), "share": p[1]}
    model = Trace(Population(2), mask=np.ones((2, 2)), **told)
    assert model.probability(1).tolist() == model.probability(3).tolist() == [1.0, 0.125]
    assert [model.stationary.tolist(), model.share.tolist()] == p.tolist()
    assert model.correlation.tolist() == [-1, 1]


@pytest.mark.parametrize(
    ("options", "complaint"),
    [
        ({"mask": np.ones((4, 2))}, r"mask: shape \(4, 2\).*\[rounds, 3\]"),
        ({"mask": np.full((4, 3), 0.5)}, "mask: values other than 0 and 1"),
        ({"mask": np.ones((4, 3)), "round_length": 1.0}, "round_length: 1 is not allowed with a mask"),
        ({"mask": np.ones((4, 2)), "shuffle": True}, "devices: 2 recorded devices are not allowed; must be at least 3"),
        ({"mask": np.ones((4, 3)), "devices": [0, 4, 1]}, "devices: '4' is not allowed; must be recorded .*: 0, 1, 2"),
        (
            {"mask": np.ones((4, 9)), "devices": [7, 2, 7]},
            "^devices: '7' is not allowed twice; must be a device for each client$",
        ),
        ({"mask": np.ones((4, 9)), "devices": [7, 2, 0, 2], "shuffle": True}, "^devices: '2' is not allowed twice"),
        ({"mask": np.ones((4, 3)), "probability": np.ones(2)}, r"probability: shape \(2,\).*\[3\] or \[4, 3\]"),
        ({"mask": np.ones((4, 3)), "probability": np.array([1, 0, 1.0])}, r"probability: 0 \(client 1\)"),
    ],
)
def test_a_trace_that_does_not_fit_is_refused(options, complaint):
    with pytest.raises(ValueError, match=complaint):
        Trace(Population(3), **options)


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
            assert np.array_equal(model.probability(t), [0, 0] if past else p[t + model.start])
    assert starts == {0, 1, 2}
    assert Trace(Population(2), mask=mask, wrap=False).probability(9) is None  # unknown, also after the end
    assert Trace(Population(2), mask=mask, constant_probability=True).probability(5) == pytest.approx([2 / 3, 2 / 3])


@pytest.mark.parametrize("seed", [0, 3])
def test_shuffled_devices_are_drawn_by_the_key(seed):
    mask = np.eye(6)
    order = keyed(seed, "participation", 0, 2).permutation(6)
    assert Trace(Population(4, seed), mask=mask, shuffle=True).mask.tolist() == mask[:, order[:4]].astype(bool).tolist()


ORDER = "client 0 replays device {}, and so on in the order of numbers or names"
LOST = "{} of {} intervals cover no start of a round of 600 s: lost"
OCTOBER = "0,2020-10-25 02:00,2020-10-25 04:00"  # in Berlin 02:00 is 00:00 UTC, and 04:00 is 03:00 UTC


@pytest.mark.parametrize(
    ("text", "options", "on", "notes"),
    [
        ("17,0,600\n523,600,1200\n900001,0,1200", {}, [[0], [1], [0, 1]], [ORDER.format(17)]),
        ("17,0,600\n523,600,900\n9,0,1200", {"devices": [523, 9]}, [[1], [0, 1]], []),
        ("1000000000000000000,0,600\n7,0,1200", {}, [[0], [0, 1]], [ORDER.format(10**18)]),
        ("NA,0,600\nnull,0,1200\n007,600,700", {"devices": ["null", "007", "NA"]}, [[0, 1], [1], [0]], []),
        ("2,0,600\n0,0,1200", {"clients": 3}, [[0, 1], [], [0]], ["1 clients are not in the recording: never active"]),
        ("0,0,600\n1,10,590\n1,610,1190", {"clients": 2}, [[0], []], [LOST.format(2, 3)]),
        # Three intervals of client 0 overlap; its fourth only touches the third.
        ("0,0,10\n0,2,4\n0,3,12\n0,12,700\n1,4,4", {}, [[0, 1], []], [LOST.format(2, 4), "2 intervals overlap an earlier one of their device: merged"]),
        ("0,0,\n1,0,1300", {}, [[0, 1, 2]] * 2, ["1 intervals have no end: until the last time of the recording"]),
        ("a,0,600\noff,600,6000\na,6000,6600\nb,0,1", {"unknown": "off"}, [[0, 1], [0]], [ORDER.format("a"), "9 of 11 rounds are gaps of the logger: left out"]),
        ("0,0,600\n0,6000000,6000600", {}, [[0, 10000]], ["9,999 of 10,001 rounds in a row have no client: if the logger was off, write a device for this time and name it as `unknown`"]),
        ("0,0,600\n0,60000,60600\n0,180000,180600", {}, [[0, 100, 300]], ["199 of 301 rounds in a row have no client: if the logger was off, write a device for this time and name it as `unknown`"]),
        ("0,0,600\n0,90000,90600\n0,180000,180600\n0,240000,240600", {}, [[0, 150, 300, 400]], ["149 of 401 rounds in a row have no client: if the logger was off, write a device for this time and name it as `unknown`"]),
        ("0,1580428800000,1580430000000", {}, [[0, 1]], []),  # 2020-01-31 00:00 UTC in ms
        ("0,1580428800000000000,1580430000000000000", {}, [[0, 1]], []),
        ("0,1580430600,1580431200", {}, [[3]], []),
        ("0,1580430600,1580431200", {"time_zone": "Asia/Shanghai"}, [[51]], []),
        ("0,2020-01-31T20:30:00+00:00,2020-01-31T20:40Z\n1,2020-02-01 05:00+08:00,2020-01-31T21:10Z", {}, [[123], [126]], []),
        ("0,2020-01-31 9:30:00+02:00,2020-01-31 9:39:00+02:00", {"time_zone": "Europe/Berlin"}, [[51]], []),
        ("0,20200131T203000Z,2020-01-31T20:40Z", {"time_zone": "Europe/Berlin"}, [[129]], []),  # 21:30 there
        ("0,20200131T223000+0200,2020-01-31T21Z", {}, [[123, 124, 125]], []),
        ("0,2020-01-31 00:30,2020-01-31 00:40", {"time_zone": "America/Los_Angeles"}, [[3]], []),
        (OCTOBER, {"time_zone": "Europe/Berlin"}, [list(range(12, 30))], []),
        (OCTOBER, {}, [list(range(12, 24))], []),
        # No midnight: the day begins at 01:00.
        ("0,2018-11-04 05:00,2018-11-04 05:10", {"time_zone": "America/Sao_Paulo"}, [[24]], []),
        ("0,0:00:00,0:10:00\n1,0 days,1 days 00:10:00", {}, [[0], list(range(145))], []),
    ],
)  # fmt: skip
def test_intervals(text, options, on, notes, replayed):
    clients = options.pop("clients", len(on))
    assert replayed("client,start,end\n" + text, clients, round_length=600, **options) == (on, notes)
    separated = ("Client;start;end\n" + text).replace(",", ";")
    assert replayed(separated, clients, "calls.tsv", round_length=600, **options)[0] == on


@pytest.mark.parametrize("length", [0.1, 0.3, 1 / 3])
def test_rounds_of_a_length_that_is_not_a_binary_number(length):
    """start <= t * length < end in floating point, where t * length or the next number up or down starts or ends."""
    starts = length * np.arange(1, 120)
    times = np.concatenate([np.nextafter(starts, 0), starts, np.nextafter(starts, np.inf)])
    rows = np.empty(2 * len(times), [("client", np.int64), ("start", float), ("end", float)])
    rows["client"] = np.arange(len(rows))
    rows["start"] = np.concatenate([times, np.zeros(len(times))])
    rows["end"] = np.concatenate([np.full(len(times), 200 * length), times])
    mask = Trace(Population(len(rows)), mask=rows, round_length=length).mask
    at = length * np.arange(len(mask))[:, None]
    assert np.array_equal(mask, (rows["start"] <= at) & (at < rows["end"]))


@pytest.mark.parametrize(
    ("names", "on"),
    [
        (("Ash", "Birch"), [[0], []]),  # Birch is not in the log, and the log has a device without data
        (("2", "Ash"), [[1], [0]]),
        (("Oak", "Elm"), "2 recorded devices .2, Ash. are not allowed, and none has the name .* of the data: Oak, Elm"),
        (("a", "b", "c"), "2 recorded devices .* must be 3 for 3 clients; `devices` or `shuffle` choose"),
    ],
)
def test_clients_of_the_data_are_joined_by_name(names, on, replayed):
    text = "client,start,end\nAsh,0,600\n2,600,1200\n"
    if isinstance(on, str):
        with pytest.raises(ValueError, match=on):
            replayed(text, len(names), names=names, round_length=600)
    else:
        assert replayed(text, len(names), names=names, round_length=600)[0] == on


@pytest.mark.parametrize(
    ("text", "names", "on"),
    [
        ("1,0,1\n0,0,1\n", None, [[0], [], [0, 1]]),
        ("0,1,2\n0,1,0\n", None, [[], [0], []]),
        ("1.0,0.0,1.0\n0.0,0.0,1.0\n", None, [[0], [], [0, 1]]),
        ("1.00e+00,0.00e+00,1.00e+00\n0.00e+00,0.00e+00,1.00e+00\n", None, [[0], [], [0, 1]]),
        ("True,False,True\nFalse,False,True\n", None, [[0], [], [0, 1]]),
        ("round,b,a,c\n0,1,0,0\n1,0,0,1\n2,0,0,0\n", ("a", "b", "c"), [[], [0], [1]]),
        ("b\ta\tc\nTrue\tFalse\tFalse\n", ("a", "b", "c"), [[], [0], []]),
        ("client0\n1\n0\n1\n", ("client0",), [[0, 2]]),
        ("my phone\n1\n0\n", ("my phone",), [[0]]),
        ("1\n0\n1\n", None, [[0, 2]]),
    ],
)
def test_masks_as_text(text, names, on, replayed):
    assert replayed(text, len(on), names=names)[0] == on


@pytest.mark.parametrize(
    ("text", "message"),
    [("0,1\n1,1\n", "the first line, 0,1, may be a round or names"), ("a,b,a\n1,0,1\n", "it has two columns 'a'")],
)
def test_masks_whose_header_is_not_clear_are_refused(text, message, replayed):
    with pytest.raises(ValueError, match=message):
        replayed(text, 2)


@pytest.mark.parametrize("ending", ["npz", "csv", "parquet", "csv.gz", "json"])
def test_a_written_mask_is_replayed(tmp_path, ending):
    model = MODELS["markov"](Population(5, 3), probability=np.array([0.1, 0.2, 0.1, 0.3, 0.0]))
    mask = record(model, 60)
    mask[-2:] = False  # empty rounds at the end must not get lost
    file = tmp_path / f"calls.{ending}"
    if ending in ("npz", "csv", "parquet"):
        write(mask, file)
    else:
        table = pd.DataFrame(mask.astype(int)).rename(columns=str)
        {"csv.gz": table.to_csv, "json": table.to_json}[ending](file)
    for path in (file, str(file)):
        assert np.array_equal(record(Trace(Population(5), mask=path), 120), np.tile(mask, (2, 1)))


def test_a_full_disk_leaves_no_part_of_a_recording(tmp_path, monkeypatch):
    """A part of a table is a shorter recording."""

    def half(self, path, **options):
        Path(path).write_text("round,client\n0,1\n")
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(pd.DataFrame, "to_csv", half)
    with pytest.raises(OSError, match="No space left"):
        write(np.ones((4, 2), dtype=bool), tmp_path / "calls.csv")
    assert not [*tmp_path.iterdir()]


def test_times_of_any_unit_in_parquet(tmp_path):
    for unit in ("s", "us"):
        times = {name: pd.to_timedelta([at], unit="s").as_unit(unit) for name, at in (("start", 0), ("end", 700))}
        pd.DataFrame({"client": ["a"], **times}).to_parquet(tmp_path / "calls.parquet")
        assert load(tmp_path / "calls.parquet").tolist() == [("a", 0.0, 700.0)]


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("round,client\n0,0\n0,3\n", r"2 recorded devices \(0, 3\) are not allowed; must be 3 for 3 clients"),
        ("client,start,end\n0,1,2\n,5,6\n", "client '' .line 3 .*must be a name"),
        ("client,start,end\n0,01.02.2024 10:00,01.02.2024 11:00\n", r"start .*01.02.2024 10:00.*must be"),
        ("client,start,end\n0,1,2\n0,5,4\n", "end '4' .line 3 .*not before it"),
        ("client,start,end\n0,1580428800,1580430000000\n", "end '1580430000000' .line 2 "),
        ("client,start,end\n0,31.01.2020,01.02.2020\n", "start '31.01.2020' .line 2 .*a date such as 2020-01-31"),
        ("client,start,end\n0,2020-01-31 10:00Z,2020-01-31 11:00\n", "end '2020-01-31 11:00' .line 2 .* as its start"),
        ("client,start,end\n0,0,2\n1,0,2\n2,0,2\n", "round_length: None"),
        ("round,client\n", "without any round"),
    ],
)
def test_bad_rows_are_named_by_their_line(tmp_path, text, complaint):
    (tmp_path / "calls.csv").write_text(text)
    with pytest.raises(ValueError, match=complaint):
        Trace(Population(3), mask=str(tmp_path / "calls.csv"))


def test_nobody_in_any_round_and_other_refusals(tmp_path, replayed, monkeypatch):
    with pytest.raises(ValueError, match=r"no client is active in any round \(1 of 1 intervals .* lost\); must be one"):
        replayed("client,start,end\n0,10,50\n", 1, round_length=600)
    with pytest.raises(ValueError, match="time_zone: 'CET' is not allowed; must be left out for times in seconds from"):
        replayed("client,start,end\n0,0,900\n", 1, round_length=600, time_zone="CET")
    for zone in ("Europe/Berlin", "Nowhere/X"):
        with pytest.raises(ValueError, match=f"^time_zone: '{zone}' is not allowed with rounds; must be left out"):
            replayed("round,client\n0,0\n", 1, time_zone=zone)
    for zone in ("Nowhere/X", "Europe", "", "../UTC", "Europe/Berlin "):
        for start in ("1580430600", "2020-01-31 00:30"):
            with pytest.raises(
                ValueError, match=r"^time_zone: .* is not allowed; must be a name such as Europe/Berlin"
            ):
                replayed(f"client,start,end\n0,{start},{start[:-1]}9\n", 1, round_length=600, time_zone=zone)
    with pytest.raises(ValueError, match="round_length: 3000000 rounds of 1000 clients are not allowed"):
        replayed("client,start,end\n0,0,3000000\n", 1000, round_length=1)
    monkeypatch.setenv("ROLLCALL_DATA", str(tmp_path))
    file = tmp_path / "traces" / "phones.csv"
    with pytest.raises(ValueError, match=rf"there is no file {file}; docs/howto/recordings.md says how to get phones"):
        load("phones")
    file.parent.mkdir()
    file.write_text("client,start,end\n0,0,700\n")
    with pytest.raises(ValueError, match=r"phones.csv: is not the file of phones; its SHA-256 must be 5cfd"):
        load("phones")
