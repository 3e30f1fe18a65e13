"""Recorded roll calls as files.

- `.npy`, `.npz`: a mask [T, m].
- a table that pandas reads, compressed or not (see `READERS`), with the columns `round,client`, a row for each round in
  which a client was active (a row without a client stands for an empty round); `client,start,end`, a row for each
  interval in which it was available, in seconds, Unix times, dates or durations; or a mask, a row of 0 and 1 for each
  round, whose header may name the clients.
"""

import hashlib
import os
import re
import zlib
from collections.abc import Callable
from lzma import LZMAError
from pathlib import Path
from typing import Any
from zipfile import BadZipFile

import numpy as np
import pandas as pd
from jaxtyping import Bool, Shaped

from rollcall.participation.base import Participation

VISITS, INTERVALS = ("round", "client"), ("client", "start", "end")
"""The columns of a table. Clients are numbers, or texts if one of them is no whole number from 0."""
DECLARED = -1
"""The round of a row that says that a client exists."""
MOST_CELLS = 2 * 10**9
UNIX = 1e8
"""Times from here on, in seconds, are Unix times: the recording starts after March 1973."""
UNITS = {1e17: 1e9, 1e14: 1e6, 1e11: 1e3}
"""Units in a second of Unix times, by the least number that is one after March 1973: ns, us and ms."""
NAMED = {"phones": ("5cfd9388455c42eef04dea9cc67796a99357b729b00a81ab0252efbfe0b78346", 300)}
"""Recordings that have a name, which stands for the content in settings: SHA-256 of the file, number of devices."""
READERS: dict[str, Callable[..., pd.DataFrame]] = {
    ".parquet": pd.read_parquet,
    ".feather": pd.read_feather,
    ".xlsx": pd.read_excel,
    ".json": pd.read_json,
    ".csv": pd.read_csv,
    ".tsv": pd.read_csv,
    ".txt": pd.read_csv,
}
"""Readers of tables by ending. A table of text may be compressed: `.csv.gz`, also bz2, xz, zst and zip."""
COMPRESSED = (".gz", ".bz2", ".xz", ".zst", ".zip")
ZONED = re.compile(r"[T ]\d.*(?:Z|[+-]\d\d(?::?\d\d)?)$", re.IGNORECASE)
"""A date with a time zone."""


def record(model: Participation, rounds: int) -> Bool[np.ndarray, "T m"]:
    """The first rounds of a participation model as a mask [T, m], true where a client is active."""
    mask = np.zeros((rounds, model.clients), dtype=bool)
    for t in range(rounds):
        mask[t, model.active(t)] = True
    return mask


def write(mask: Bool[np.ndarray, "T m"], path: str | Path) -> None:
    """Write a mask, true where a client is active, so that `trace` replays it; the ending of the path is the format."""
    path = Path(path).resolve()
    if path.suffix not in (".npy", ".npz", ".csv", ".parquet"):
        raise ValueError(f"{str(path)!r} is not allowed; must be a .npy, .npz, .csv or .parquet file")
    path.parent.mkdir(parents=True, exist_ok=True)
    scratch = path.with_name(f".{os.getpid()}.{path.name}")  # a full disk would leave a part, which can be read
    try:
        if path.suffix == ".npy":
            np.save(scratch, mask)
        elif path.suffix == ".npz":
            np.savez_compressed(scratch, mask=mask)
        else:
            t, client = np.nonzero(mask)
            empty = np.flatnonzero(~mask.any(axis=1))
            clients = pd.array([*client, *([pd.NA] * len(empty))], dtype="Int64")
            table = pd.DataFrame({"round": np.concatenate([t, empty]), "client": clients})
            table = table.sort_values(["round", "client"], kind="stable")
            (table.to_csv if path.suffix == ".csv" else table.to_parquet)(scratch, index=False)
        scratch.replace(path)
    except OSError as error:  # a full disk names no file
        error.filename = str(path)
        raise
    finally:
        scratch.unlink(missing_ok=True)


def named(name: str | Path) -> Path | None:
    """The place of a recording that has a name, `traces/NAME.csv` in ROLLCALL_DATA; None for any other text."""
    return Path(os.environ.get("ROLLCALL_DATA", "data"), "traces", f"{name}.csv") if str(name) in NAMED else None


def load(path: str | Path) -> np.ndarray:
    """Read a recording from a file, or one by its name.

    Args:
        path: a file in one of the forms above, or one of the names in `NAMED`.

    Returns:
        A mask [T, m], or the rows of a table as an array with the fields `VISITS` or `INTERVALS`. Times are seconds;
        dates without a zone stay dates, and an open end is nan. A `VISITS` row of round `DECLARED` names a client that
        may never be active.

    Raises:
        ValueError: no such file, not the file of this name, another ending, other columns, or a row with a wrong value.
            The error names the row by its line in a file of text (the header is line 1), and by its number from 1 in
            others.
    """
    name, path = str(path), named(path) or Path(path)
    if not path.is_file():
        how = (
            f"; docs/howto/recordings.md says how to get {name}"
            if name in NAMED
            else f". With a name: {', '.join(NAMED)}"
        )
        raise ValueError(f"{name!r} is not allowed; there is no file {path}{how}")
    if path.suffix in (".npy", ".npz"):
        return array(path)
    rows = _rows(path)
    if name in NAMED:
        digest, devices = NAMED[name]
        if hashlib.sha256(path.read_bytes()).hexdigest() != digest:
            raise ValueError(f"{path}: is not the file of {name}; its SHA-256 must be {digest}")
        never = np.setdiff1d(np.arange(devices), rows["client"])
        first = rows["start"].min()
        rows = np.concatenate([rows, np.array([(i, first, first) for i in never], rows.dtype)])
    return rows


def array(path: Path) -> np.ndarray:
    """The array of a .npy file, or the only one of a .npz file; ValueError for another content."""
    if not path.is_file():
        raise ValueError(f"{str(path)!r} is not allowed; there is no file {path.resolve()}")
    try:
        if path.suffix not in (".npy", ".npz"):
            raise ValueError
        content = np.load(path, allow_pickle=False)
        if path.suffix == ".npy":
            return content
        with content as arrays:
            names = arrays.files
            if len(names) == 1:
                return arrays[names[0]]
    except (ValueError, OSError, EOFError, BadZipFile):
        raise ValueError(f"{str(path)!r} is not allowed; must be a .npy or .npz file of numbers") from None
    raise ValueError(f"{str(path)!r} is not allowed; must hold one array, not {len(names)}")


def devices(table: np.ndarray) -> Shaped[np.ndarray, "n"]:
    """The ids that occur in a table that `load` has read, ascending."""
    ids = np.unique(table["client"])
    return ids[ids != _nobody(ids)]


def mask_of(
    table: np.ndarray, ids: Shaped[np.ndarray, "m"], round_length: float | None, time_zone: str = "UTC"
) -> tuple[Bool[np.ndarray, "T m"], list[str]]:
    """The mask of these devices [m] in a table that `load` has read, and notes that count what it loses.

    A client is active in round t if one of its intervals covers the start of the round: start <= t * round_length <
    end. Intervals may overlap and be in any order. An open end is the last time in the table.

    Args:
        table: with the fields `VISITS` or `INTERVALS`.
        ids: the device of each client; one that does not occur is never active.
        round_length: in seconds, for intervals.
        time_zone: of dates without a zone, and of the midnight at which round 0 starts if times are Unix or dates.

    Raises ValueError: a missing or wrong round length or time zone, one that has no effect, or no round at all.
    """
    place = {device: column for column, device in enumerate(ids.tolist())}
    if table.dtype.names == VISITS:
        if round_length is not None:
            raise ValueError(f"round_length: {round_length:g} is not allowed with rounds; must be null")
        if time_zone != "UTC":
            raise ValueError(f"time_zone: {time_zone!r} is not allowed with rounds; must be left out")
        mask = _empty(int(table["round"].max(initial=-1)) + 1, len(ids), "mask")
        seen = table[(table["round"] != DECLARED) & np.isin(table["client"], ids)]
        mask[seen["round"], [place[device] for device in seen["client"].tolist()]] = True
        opening = int(table["round"][table["round"] != DECLARED].min())
        return mask, [f"the first {opening:,} rounds are not in the recording: nobody is active"] if opening else []
    if round_length is None or not 0 < round_length < np.inf:
        raise ValueError(f"round_length: {round_length} is not allowed with intervals; must be seconds above 0")
    start, end = (_universal(table[name], time_zone) for name in ("start", "end"))
    still_on = np.isnan(end)
    end = np.where(still_on, np.fmax(np.nanmax(end, initial=-np.inf), start.max(initial=-np.inf)), end)
    zero = midnight(start, time_zone)
    first, past = (_rounds_before(times - zero, round_length) for times in (start, end))
    mask = _empty(int(past.max(initial=0)), len(ids), "round_length")
    for device, begin, until in zip(table["client"].tolist(), first.tolist(), past.tolist(), strict=True):
        if device in place:
            mask[begin:until, place[device]] = True
    rows = pd.DataFrame({"client": table["client"], "start": start, "end": end, "lost": first == past})
    rows = rows[rows["client"].isin(ids) & (end > start)].sort_values("start", kind="stable")
    latest = rows.groupby("client")["end"].cummax().groupby(rows["client"]).shift()
    numbers = {
        f"of {len(rows):,} intervals cover no start of a round of {round_length:g} s: lost": rows["lost"].sum(),
        "intervals overlap an earlier one of their device: merged": (rows["start"] < latest).sum(),
        "intervals have no end: until the last time of the recording": still_on.sum(),
    }
    return mask, [f"{number:,} {what}" for what, number in numbers.items() if number]


def midnight(start: Shaped[np.ndarray, "n"], time_zone: str) -> float:
    """When round 0 starts, in the seconds of the starts of intervals: 0, or the midnight before Unix times."""
    first = float(start.min(initial=np.inf))
    if not UNIX < first < np.inf:
        if time_zone != "UTC":
            must = "must be left out for times in seconds from the first round"
            raise ValueError(f"time_zone: {time_zone!r} is not allowed; {must}")
        return 0.0
    here = _in_zone(pd.Timestamp(first, unit="s", tz="UTC").tz_convert, time_zone)
    day = here.tz_localize(None).normalize()  # a midnight may be left out, or come twice, where clocks change then
    return float(day.tz_localize(here.tz, ambiguous=True, nonexistent="shift_forward").timestamp())


def _in_zone(convert: Callable[..., Any], time_zone: str, **options: Any) -> Any:
    try:
        return convert(time_zone, **options)
    except (LookupError, ValueError):  # ZoneInfoNotFoundError; an empty name; a path
        raise ValueError(f"time_zone: {time_zone!r} is not allowed; must be a name such as Europe/Berlin") from None


def _universal(times: np.ndarray, time_zone: str) -> np.ndarray:
    """Seconds; of dates without a zone, Unix times by the clocks of this zone, whose double hour is the first."""
    if times.dtype.kind != "M":
        return times
    dates = pd.Series(times)
    zoned = _in_zone(dates.dt.tz_localize, time_zone, ambiguous=np.ones(len(times), bool), nonexistent="shift_forward")
    return _unix(zoned)


def _unix(dates: "pd.Series[Any]") -> np.ndarray:
    """The Unix times of dates with a zone, nan where there is none."""
    times = dates.dt.tz_convert("UTC").dt.tz_localize(None).to_numpy(dtype="datetime64[us]")
    return np.where(np.isnat(times), np.nan, times.astype(np.int64) / 1e6)


def _rounds_before(seconds: np.ndarray, length: float) -> np.ndarray:
    """The number of rounds t >= 0 with t * length < seconds, which is also the first round that starts no earlier."""
    count = np.maximum(np.ceil(seconds / length), 0)
    # Correct the rounding of the division: 1.1 / 0.1 is above 11, although round 11 starts at 1.1.
    count -= (count > 0) & ((count - 1) * length >= seconds)
    count += count * length < seconds
    if (count > MOST_CELLS).any():
        raise ValueError(f"round_length: {length:g} is not allowed; gives {count.max():.0f} rounds, must be longer")
    return count.astype(np.int64)


def _empty(rounds: int, clients: int, option: str) -> Bool[np.ndarray, "T m"]:
    """A mask of nobody, if it has a round and is not too large."""
    if rounds * clients > MOST_CELLS:
        raise ValueError(
            f"{option}: {rounds} rounds of {clients} clients are not allowed; must be at most {MOST_CELLS:,} cells"
        )
    if rounds == 0:
        raise ValueError(f"{option}: a recording without any round is not allowed; must have at least one")
    return np.zeros((rounds, clients), dtype=bool)


def _rows(path: Path) -> np.ndarray:
    """The checked rows of a table in a file."""
    ending = path.with_suffix("").suffix if path.suffix in COMPRESSED else path.suffix
    read, text = READERS.get(ending), READERS.get(ending) is pd.read_csv
    if read is None or (path.suffix in COMPRESSED and not text):
        must = f"must be a .npy or .npz file, or a table: {', '.join(READERS)}, of text also {', '.join(COMPRESSED)}"
        raise ValueError(f"{str(path)!r} is not allowed; {must}")
    try:
        if text:  # as text and with blank lines, so that the line of each row is known
            options = {"dtype": str, "skip_blank_lines": False, "keep_default_na": False, "skipinitialspace": True}
            table = read(path, header=None, **options)
            below = table[0].iloc[min(1, len(table) - 1) :].astype(str).str.strip()  # a name may have blanks
            if table.shape[1] == 1 and below.str.contains(r"[^\w.+-]").any():  # not separated by commas
                table = read(path, header=None, sep=None, engine="python", **options)
            first = table.iloc[0].str.strip()
            bits = not np.isnan(_bits(first.to_frame())).any()  # the first round of a mask
            if first.tolist() in (["0"], ["0", "1"]):
                raise ValueError(f"the first line, {','.join(first)}, may be a round or names; write names such as a,b")
            if not bits and (twice := first[first.duplicated() & (first != "")].tolist()):
                raise ValueError(f"it has two columns {twice[0]!r}")
            table = table if bits else table[1:].set_axis(first, axis=1)
        else:
            table = read(path)
    except (OSError, ValueError, ImportError, IndexError, EOFError, BadZipFile, LZMAError, zlib.error) as error:
        raise ValueError(f"{str(path)!r} is not allowed; must be a readable table: {error}") from None
    names = [str(name).strip() for name in table.columns]
    if {name.lower() for name in names} >= {"client"}:
        names = [name.lower() for name in names]
    table = table.set_axis(names, axis=1).reset_index(drop=True)
    shift, unit = (1 if bits else 2, "line") if text else (1, "row")

    def need(name: str, right: np.ndarray, must: str) -> None:
        if not right.all():
            row = int(np.flatnonzero(~right)[0])
            where = f"{unit} {row + shift} of {str(path)!r}"
            raise ValueError(f"{name} {str(table[name].iloc[row])!r} ({where}) is not allowed; must be {must}")

    fields = next((one for one in (INTERVALS, VISITS) if set(one) <= set(table.columns)), None)
    if fields is None:
        return _visits_of_mask(table.drop(columns=[c for c in ("", "round") if c in table]), path)
    client = _ids(table["client"])
    if fields == VISITS:
        t = pd.to_numeric(table["round"], errors="coerce").to_numpy(dtype=np.float64, na_value=np.nan)
        need("round", (t >= 0) & (t == np.floor(t)) & (t < MOST_CELLS), "a whole number from 0")
        columns = [t.astype(np.int64), client]
    else:
        need("client", client != _nobody(client), "a name or a number")
        start, end = (_times(table[name]) for name in ("start", "end"))
        if start.dtype.kind == "f":
            unit_ = next((size for least, size in UNITS.items() if start.min(initial=np.inf) >= least), 1.0)
            start, end = start / unit_, end / unit_ if end.dtype.kind == "f" else end
        must = "a number of seconds, a date such as 2020-01-31T20:30, or a duration such as 00:10:00"
        open_end = (table["end"].isna() | (table["end"].astype(str).str.strip() == "")).to_numpy()
        if open_end.all():
            end = np.full(len(start), np.nan).astype(start.dtype)
        need("start", (start < min(UNITS)) if start.dtype.kind == "f" else ~np.isnat(start), must)
        must += ", as its start, and not before it"
        need("end", np.full(len(end), start.dtype == end.dtype), must)
        latest = end < (min(UNITS) if end.dtype.kind == "f" else np.datetime64("5000"))
        need("end", open_end | (latest & (end >= start)), must)
        columns = [client, start, end]
    rows = np.empty(len(table), [(name, column.dtype) for name, column in zip(fields, columns, strict=True)])
    for name, column in zip(fields, columns, strict=True):
        rows[name] = column
    return rows


def _ids(column: "pd.Series[Any]") -> np.ndarray:
    """Whole numbers from 0 as numbers, else all ids as texts; see `_nobody` for rows without one."""
    text = column.astype("string").fillna("").str.strip().str.replace(r"^(\d+)\.0$", r"\1", regex=True)
    if text.str.fullmatch(r"|0|[1-9]\d{0,17}").all():
        return text.replace("", "-1").astype(np.int64).to_numpy()
    return text.to_numpy(dtype=str)


def _nobody(ids: np.ndarray) -> Any:
    """The id of rows without a client."""
    return "" if ids.dtype.kind == "U" else -1


def _times(column: "pd.Series[Any]") -> np.ndarray:
    """Seconds, or dates if they have no zone; nan where a value is neither a number, a date nor a duration."""
    if column.dtype.kind == "M":
        zoned = getattr(column.dt, "tz", None) is not None
        dates = column
    elif column.dtype.kind == "m":
        return column.dt.total_seconds().to_numpy()
    else:
        numbers = pd.to_numeric(column, errors="coerce").to_numpy(dtype=np.float64, na_value=np.nan)
        if not np.isnan(numbers).all():
            return numbers
        text = column.astype("string").str.strip()
        zones = text[text != ""].str.contains(ZONED)
        zoned = bool(zones.all())
        dates = pd.to_datetime(text.where(text != ""), utc=True, errors="coerce", format="ISO8601")
        if dates.isna().all():  # 01.02.2024 10:00 is no duration
            text = text.mask(text.str.contains(r"\.\d+\."))
            return pd.to_timedelta(text, errors="coerce").dt.total_seconds().to_numpy()
        if not zoned:  # of mixed ones, those with a zone are wrong
            dates = dates.dt.tz_localize(None).where(~text.str.contains(ZONED).fillna(False))
    if zoned:
        return _unix(dates)
    return dates.to_numpy(dtype="datetime64[us]")


def _bits(table: pd.DataFrame) -> np.ndarray:
    """0 and 1 of a mask, which may be written as numbers or as true and false; nan for anything else."""
    codes, texts = pd.factorize(table.astype(str).to_numpy().ravel())  # few texts, many times
    plain = pd.Series(texts, dtype=str).str.strip().str.lower().replace({"true": "1", "false": "0"})
    numbers = pd.to_numeric(plain, errors="coerce").astype(float)
    return numbers.where(numbers.isin([0, 1])).to_numpy()[codes].reshape(table.shape)


def _visits_of_mask(table: pd.DataFrame, path: Path) -> np.ndarray:
    """The rows of a mask: a column for each client, a row of 0 and 1 for each round."""
    values = _bits(table)
    bits = values == 1
    if not table.shape[1] or np.isnan(values).any():
        columns = ",".join(map(str, table.columns))
        must = "must be round,client or client,start,end, or one for each client with 0 and 1 in every row"
        raise ValueError(f"the columns {columns} of {str(path)!r} are not allowed; {must}")
    ids = _ids(pd.Series(table.columns))
    t, column = np.nonzero(bits)
    rows = np.empty(len(ids) + len(t) + 2, [("round", np.int64), ("client", ids.dtype)])
    rows["round"] = np.concatenate([np.full(len(ids), DECLARED), t, [0, len(bits) - 1]])
    rows["client"] = np.concatenate([ids, ids[column], [_nobody(ids)] * 2])
    return rows
