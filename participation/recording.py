"""Recorded roll calls as files.

- `.npy`, `.npz`: a mask [T, m].
- `.csv`, `.parquet`: a table with the columns `round,client`, a row for each round in which a client was active (a row
  without a client stands for an empty round); or `client,start,end`, a row for each interval in which it was available,
  in seconds, Unix times or dates.
"""

import hashlib
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any
from zipfile import BadZipFile

import numpy as np
import pandas as pd
from jaxtyping import Bool

from rollcall.participation.base import Participation

VISITS = np.dtype([("round", np.int64), ("client", np.int64)])
INTERVALS = np.dtype([("client", np.int64), ("start", np.float64), ("end", np.float64)])
NO_CLIENT = -1
MOST_CELLS = 10**10
UNIX = 1e8
"""Times from here on, in seconds, are Unix times: the recording starts after March 1973."""
NAMED = {"phones": "5cfd9388455c42eef04dea9cc67796a99357b729b00a81ab0252efbfe0b78346"}
"""Recordings that have a name, with the SHA-256 of their file: the name stands for the content in settings."""


def record(model: Participation, rounds: int) -> Bool[np.ndarray, "T m"]:
    """The first rounds of a participation model as a mask [T, m], true where a client is active."""
    mask = np.zeros((rounds, model.clients), dtype=bool)
    for t in range(rounds):
        mask[t, model.active(t)] = True
    return mask


def write(mask: Bool[np.ndarray, "T m"], path: str | Path) -> None:
    """Write a mask, true where a client is active, so that `trace` replays it; the ending of the path is the format."""
    path = Path(path)
    if path.suffix == ".npy":
        np.save(path, mask)
    elif path.suffix == ".npz":
        np.savez_compressed(path, mask=mask)
    elif path.suffix in (".csv", ".parquet"):
        t, client = np.nonzero(mask)
        empty = np.flatnonzero(~mask.any(axis=1))
        clients = pd.array([*client, *([pd.NA] * len(empty))], dtype="Int64")
        table = pd.DataFrame({"round": np.concatenate([t, empty]), "client": clients})
        table = table.sort_values(["round", "client"], kind="stable")
        (table.to_csv if path.suffix == ".csv" else table.to_parquet)(path, index=False)
    else:
        raise _unknown(path)


def named(name: str | Path) -> Path | None:
    """The place of a recording that has a name, `traces/NAME.csv` in ROLLCALL_DATA; None for any other text."""
    return Path(os.environ.get("ROLLCALL_DATA", "data"), "traces", f"{name}.csv") if str(name) in NAMED else None


def load(path: str | Path) -> np.ndarray:
    """Read a recording from a file, or one by its name.

    Args:
        path: a file in one of the forms above, or one of the names in `NAMED`.

    Returns:
        A mask [T, m], or the rows of a table as an array of dtype `VISITS` or `INTERVALS`.

    Raises:
        ValueError: no such file, not the file of this name, another ending, other columns, or a row with a wrong value.
            The error names the row by its line in a CSV file (the header is line 1), and by its number from 1 in a
            Parquet file.
    """
    name, path = str(path), named(path) or Path(path)
    if not path.is_file():
        how = (
            f"; docs/howto/recordings.md says how to get {name}"
            if name in NAMED
            else f". With a name: {', '.join(NAMED)}"
        )
        raise ValueError(f"{name!r} is not allowed; there is no file {path}{how}")
    if name in NAMED and hashlib.sha256(path.read_bytes()).hexdigest() != NAMED[name]:
        raise ValueError(f"{path}: is not the file of {name}; its SHA-256 must be {NAMED[name]}")
    if path.suffix in (".npy", ".npz"):
        return array(path)
    if path.suffix == ".csv":
        # As text and with blank lines, so that the line of each row is known.
        table = pd.read_csv(path, dtype=str, skip_blank_lines=False, keep_default_na=False, skipinitialspace=True)
        return _rows(table, lambda row: f"line {row + 2}", path)
    if path.suffix == ".parquet":
        return _rows(pd.read_parquet(path), lambda row: f"row {row + 1}", path)
    raise _unknown(path)


def left_out(rows: np.ndarray) -> list[str]:
    """What a mask loses of intervals that `load` has read, a line for each kind."""
    if rows.dtype != INTERVALS or not len(rows):
        return []
    by_client = np.sort(rows[rows["end"] > rows["start"]], order=["client", "start"])
    client, ends = by_client["client"], by_client["end"]
    # A client's intervals come together, so the largest end so far is its own after a shift by client.
    shift = client * (ends.max(initial=0) - by_client["start"].min(initial=0) + 1)
    overlapping = (by_client["start"] + shift)[1:] < np.maximum.accumulate(ends + shift)[:-1]
    numbers = {
        "devices without an interval: never active": len(np.setdiff1d(np.arange(rows["client"].max() + 1), client)),
        "intervals overlap an earlier one of their device: merged": int(overlapping.sum()),
    }
    return [f"{number:,} {what}" for what, number in numbers.items() if number]


def array(path: Path) -> np.ndarray:
    """The array of a .npy file, or the only one of a .npz file; ValueError for another content."""
    try:
        content = np.load(path, allow_pickle=False)
        if path.suffix == ".npy":
            return content
        with content as arrays:
            names = arrays.files
            if len(names) == 1:
                return arrays[names[0]]
    except (ValueError, OSError, EOFError, BadZipFile):
        raise ValueError(f"{str(path)!r} is not allowed; must be a {path.suffix} file of numbers") from None
    raise ValueError(f"{str(path)!r} is not allowed; must hold one array, not {len(names)}")


def mask_of(
    table: np.ndarray, clients: int, round_length: float | None, time_zone: str = "UTC"
) -> Bool[np.ndarray, "T m"]:
    """The mask [T, m] of a table that `load` has read.

    A client is active in round t if one of its intervals covers the start of the round: start <= t * round_length <
    end. Intervals may overlap and be in any order.

    Args:
        table: of dtype `VISITS` or `INTERVALS`.
        clients: m.
        round_length: in seconds, for intervals.
        time_zone: of the midnight at which round 0 starts, for intervals whose times are Unix times.

    Raises:
        ValueError: a client outside the population, a missing or wrong round length, or no round at all.
    """
    high = np.flatnonzero(table["client"] >= clients)
    if len(high):
        raise ValueError(
            f"mask: client {table['client'][high[0]]} (line {high[0] + 2} of a CSV file) is not allowed; "
            f"must be in [0, {clients - 1}]; `devices` or `shuffle` choose among more devices than clients"
        )
    if table.dtype == VISITS:
        if round_length is not None:
            raise ValueError(f"round_length: {round_length:g} is not allowed with rounds; must be null")
        mask = np.zeros((_affordable(int(table["round"].max(initial=-1)) + 1, clients, "mask"), clients), dtype=bool)
        active = table[table["client"] != NO_CLIENT]
        mask[active["round"], active["client"]] = True
        return mask
    if round_length is None or not 0 < round_length < np.inf:
        raise ValueError(f"round_length: {round_length} is not allowed with intervals; must be seconds above 0")
    zero = midnight(table, time_zone)
    first = _rounds_before(table["start"] - zero, round_length)
    past = _rounds_before(table["end"] - zero, round_length)
    T = _affordable(int(past.max(initial=0)), clients, "round_length")
    # The number of starts minus ends up to a round is the number of intervals that cover it.
    change = np.zeros((T + 1, clients), dtype=np.int32)
    np.add.at(change, (first, table["client"]), 1)
    np.add.at(change, (past, table["client"]), -1)
    return np.cumsum(change, axis=0)[:T] > 0


def midnight(table: np.ndarray, time_zone: str) -> float:
    """When round 0 starts, in the seconds of a table of intervals: 0, or the midnight before Unix times."""
    first = float(table["start"].min(initial=np.inf))
    if not UNIX < first < np.inf:
        return 0.0
    try:
        return pd.Timestamp(first, unit="s", tz="UTC").tz_convert(time_zone).normalize().timestamp()
    except KeyError:  # ZoneInfoNotFoundError
        raise ValueError(f"time_zone: {time_zone!r} is not allowed; must be a name such as Europe/Berlin") from None


def _rounds_before(seconds: np.ndarray, length: float) -> np.ndarray:
    """The number of rounds t >= 0 with t * length < seconds, which is also the first round that starts no earlier."""
    count = np.maximum(np.ceil(seconds / length), 0)
    # Correct the rounding of the division: 1.1 / 0.1 is above 11, although round 11 starts at 1.1.
    count -= (count > 0) & ((count - 1) * length >= seconds)
    count += count * length < seconds
    if (count > MOST_CELLS).any():
        raise ValueError(f"round_length: {length:g} is not allowed; gives {count.max():.0f} rounds, must be longer")
    return count.astype(np.int64)


def _affordable(rounds: int, clients: int, option: str) -> int:
    """The number of rounds, if a mask of them is not empty and not too large."""
    if rounds * clients > MOST_CELLS:
        raise ValueError(
            f"{option}: {rounds} rounds of {clients} clients are not allowed; must be at most {MOST_CELLS:,} cells"
        )
    if rounds == 0:
        raise ValueError(f"{option}: a recording without any round is not allowed; must have at least one")
    return rounds


def _rows(table: pd.DataFrame, place: Callable[[int], str], path: Path) -> np.ndarray:
    """The checked rows of a table; `place` names a row for errors."""
    names = tuple(str(column).strip() for column in table.columns)
    if names not in (VISITS.names, INTERVALS.names):
        columns, must = ",".join(map(str, table.columns)), "must be round,client or client,start,end"
        raise ValueError(f"the columns {columns} of {str(path)!r} are not allowed; {must}")
    rows = np.empty(len(table), dtype=VISITS if names == VISITS.names else INTERVALS)
    for name, (_, column) in zip(names, table.items(), strict=True):
        values = _numbers(column)
        if name in ("start", "end") and np.isnan(values).all():
            dates = pd.to_datetime(column, utc=True, errors="coerce", format="ISO8601")
            values = _numbers((dates - pd.Timestamp(0, tz="UTC")).dt.total_seconds())
        right, must = np.isfinite(values), "a number of seconds"
        if name in ("round", "client"):
            right, must = right & (values >= 0) & (values == np.floor(values)), "a whole number from 0"
        if names == VISITS.names and name == "client":
            blank = (column.isna() | (column.astype(str).str.strip() == "")).to_numpy()
            values, right = np.where(blank, NO_CLIENT, values), right | blank
        if name == "end":
            right, must = right & ~(values < rows["start"]), f"{must}, not before its start"
        if not right.all():
            row = int(np.flatnonzero(~right)[0])
            where = f"{place(row)} of {str(path)!r}"
            raise ValueError(f"{name} {str(column.iloc[row])!r} ({where}) is not allowed; must be {must}")
        rows[name] = values
    return rows


def _numbers(column: "pd.Series[Any]") -> np.ndarray:
    """A column as numbers, nan where it has none; dates are no numbers."""
    if column.dtype.kind == "M":
        return np.full(len(column), np.nan)
    return pd.to_numeric(column, errors="coerce").to_numpy(dtype=np.float64, na_value=np.nan)


def _unknown(path: Path) -> ValueError:
    return ValueError(f"{str(path)!r} is not allowed; must be a .npy, .npz, .csv or .parquet file")
