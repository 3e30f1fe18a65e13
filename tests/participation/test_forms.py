"""Recordings of other suites: a small file of each form, with rounds computed by hand."""

import json
import os
import pickle

import numpy as np
import pandas as pd
import pytest

from rollcall.participation import Population, Trace
from rollcall.participation.recording import load


def rounds(path, clients, **options):
    """The rounds in which each client is active."""
    mask = Trace(Population(clients), mask=str(path), **options).mask
    return [np.flatnonzero(column).tolist() for column in mask.T]


def left_out(path):
    lines = []
    load(path, lines.append)
    return lines


def test_fedscale(tmp_path):
    devices = {
        17: {"duration": 9, "active": [0, 250], "inactive": [100, 310], "finish_time": 400, "model": "a"},
        # Repeats after 200 s, until the longest finish_time is over: [30, 130), [150, 200), [230, 330), [350, 400).
        5: {"duration": 9, "active": [30, 150], "inactive": [130, 240], "finish_time": 200, "model": "b"},
        # One pair ends before it starts, one start has no end.
        8: {"duration": 9, "active": [90, 120, 300], "inactive": [50, 160], "finish_time": 400.0, "model": "c"},
        2: {"duration": 9, "active": [], "inactive": [], "finish_time": float("inf"), "model": "d"},
    }
    file = tmp_path / "behave.pkl"
    file.write_bytes(pickle.dumps(devices))
    # Rounds start at 0, 50, 100, ...
    assert rounds(file, 4, round_length=50) == [[0, 1, 5, 6], [1, 2, 3, 5, 6, 7], [3], []]
    assert left_out(file) == [
        "2 intervals without an end, or that end before they start: left out",
        "1 devices without an interval: never active",
    ]


@pytest.mark.parametrize("content", [os.system, np.float64(3), {1: {"active": [1]}}, [3]])
def test_a_pickle_that_is_no_plain_trace_is_refused(tmp_path, content):
    file = tmp_path / "bad.pkl"
    file.write_bytes(pickle.dumps(content))
    with pytest.raises(ValueError, match=r"bad.pkl' is not allowed; must be FedScale's"):
        load(file)


@pytest.mark.fault
def test_a_pickle_runs_nothing(tmp_path):
    class Attack:
        def __reduce__(self):
            return (os.mkdir, (str(tmp_path / "made"),))

    file = tmp_path / "attack.pkl"
    file.write_bytes(pickle.dumps({1: Attack()}))
    with pytest.raises(ValueError, match=r"holds posix.mkdir; must hold dictionaries"):
        load(file)
    assert not (tmp_path / "made").exists()


def test_flash(tmp_path):
    def messages(*lines):
        return {"guid": "x", "model": "m", "messages": "\n".join(f"2020-01-31 {one}" for one in lines) + "\n"}

    devices = {
        # Charging from 01:00, Wi-Fi from 02:00 to 04:30; the screen and the level do not matter.
        "a": messages(
            "01:00:00\tbattery_charged_on", "02:00:00\tWifi", "02:30:00\tscreen_on", "03:00:00\t55.0%", "04:30:00\t4G"
        ),
        # Wi-Fi throughout, charging in two intervals, the second without an end; one line has no state.
        "b": messages(
            "00:10:00\tWIFI",
            "00:50:00\tbattery_charged_on",
            "01:10:00\tbattery_charged_off",
            "03:00:00",
            "05:00:00\tbattery_charged_on",
        ),
        "c": messages("01:00:00\tbattery_charged_on", "02:00:00\tunknown"),
    }
    file = tmp_path / "state_traces.json"
    file.write_text(json.dumps(devices))
    # Rounds of an hour from midnight.
    assert rounds(file, 3, round_length=3600) == [[2, 3, 4], [1], []]
    assert left_out(file) == [
        "1 messages without a time and a state: left out",
        "1 intervals without an end: left out",
        "1 devices without an interval: never active",
    ]
    file.write_text('{"a": [1]}')
    with pytest.raises(ValueError, match="must be FLASH's"):
        load(file)


def test_pings_of_flgo(tmp_path):
    file = tmp_path / "pings.csv"
    # 1530000000 is 08:00 UTC: round 1920 of 15 s. A device is available for 15 s after its ping.
    file.write_text("id,timestamp\n900,1530000000\n41,1530000015\n900,1530000030\n")
    assert rounds(file, 2, round_length=15) == [[1920, 1922], [1921]]


@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_intervals_with_dates(tmp_path, ending):
    # 20:30 UTC is 04:30 of the next day in Shanghai.
    table = pd.DataFrame(
        {
            "client": [0, 1],
            "start": ["2020-01-31T20:30:00+00:00", "2020-02-01T06:00:00+08:00"],
            "end": ["2020-01-31T21:30:00Z", "2020-01-31T23:00:00Z"],
        }
    )
    file = tmp_path / f"calls.{ending}"
    if ending == "csv":
        table.to_csv(file, index=False)
    else:
        dates = {name: pd.to_datetime(table[name], utc=True, format="ISO8601") for name in ("start", "end")}
        table.assign(**dates).to_parquet(file)
    assert rounds(file, 2, round_length=3600) == [[21], [22]]
    assert rounds(file, 2, round_length=3600, time_zone="Asia/Shanghai") == [[5], [6]]


def test_what_intervals_lose_is_said(tmp_path):
    file = tmp_path / "calls.csv"
    file.write_text("client,start,end\n3,5,9\n0,0,10\n0,2,4\n0,3,12\n0,12,13\n2,4,4\n")
    assert left_out(file) == [
        "2 devices without an interval: never active",
        "2 intervals overlap an earlier one of their device: merged",
    ]
