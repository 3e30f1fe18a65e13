"""Tables of intervals: small files, with rounds computed by hand."""

import numpy as np
import pandas as pd
import pytest

from rollcall.participation import Population, Trace
from rollcall.participation.recording import left_out, load


def rounds(path, clients, **options):
    """The rounds in which each client is active."""
    mask = Trace(Population(clients), mask=str(path), **options).mask
    return [np.flatnonzero(column).tolist() for column in mask.T]


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
    assert left_out(load(file)) == [
        "2 devices without an interval: never active",
        "2 intervals overlap an earlier one of their device: merged",
    ]
