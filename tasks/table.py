"""A table as a task: a file of rows, one column of which names the client that each row belongs to."""

import warnings
import zlib
from collections.abc import Sequence
from importlib.util import find_spec
from lzma import LZMAError
from pathlib import Path
from typing import Any, Literal
from zipfile import BadZipFile

import numpy as np
import pandas as pd
from torch.nn.functional import cross_entropy, mse_loss

from rollcall.tasks.base import ClientData, EmptyClients, natural_clients, need_least, need_shares
from rollcall.tasks.models import Model, linear
from rollcall.tasks.partitions import rows_of
from rollcall.tasks.streams import stream, torch_stream
from rollcall.tasks.supervised import SupervisedTask

SPLITS = ("test", "validation", "train")
TEXT = (".csv", ".tsv", ".txt")


def table(
    seed: int,
    *,
    file: str,
    label: str,
    client: str,
    features: Sequence[str] | None = None,
    categories: Sequence[str] = (),
    outcome: Literal["classes", "amounts"] | None = None,
    at_least: int = 10,
    empty_clients: EmptyClients = "refuse",
    test: float = 0.2,
    validation: float = 0.0,
    model: Model = linear,
) -> tuple[SupervisedTask, ClientData]:
    """Classification or regression on a table whose clients are natural groups: hospitals, schools, regions, speakers.

    Classes are learned with the cross-entropy, amounts with the squared error. Features that are numbers are
    standardised by mean and standard deviation of the training rows of all clients. Categories have a column of 0 and 1
    for each value. Of every client's rows the same shares, rounded down, are held out for `test` and `validation`; the
    client trains on the rest. In a file of text only an empty field is a missing value; `NA` is a text.

    Args:
        seed: of the held-out rows and of the initial model.
        file: a `.csv`, `.tsv` or `.txt` file, also compressed, or a `.parquet` or `.feather` file; or `PACKAGE:PATH`
            for a file that an installed package ships.
        label: the column to predict.
        client: the column that names the client of each row.
        features: columns to predict from. Default: all others.
        categories: features whose values are categories although they are numbers, or texts that mostly differ.
        outcome: whether the label is one of `classes` or an amount. Default: numbers with fractions are amounts, texts
            and two different whole numbers are classes; other whole numbers must have this option.
        at_least: clients with fewer rows are left out, with a warning.
        empty_clients: `keep` keeps clients with fewer rows in the population; they have no samples and never train.
        test: share of each client's rows in the split `test`.
        validation: share of each client's rows in the split `validation`.
        model: the network.

    Raises:
        ValueError: a file or column that does not exist, missing or infinite values, a column of numbers with a text,
            or an option out of range.
    """
    need_least(1, at_least=at_least)
    need_shares(validation, test)
    rows = _rows(file, label, client, features)
    unknown = [name for name in categories if name not in rows or name in (label, client)]
    if unknown:
        raise ValueError(f"categories: {unknown[0]!r} is not allowed; must be one of the features")
    few = rows.groupby(client)[label].transform("size") < at_least
    if few.all():
        raise ValueError(f"at_least: {at_least} is not allowed; no client in {file} has as many rows")
    if few.any():
        gone = f"{few.sum()} rows of {rows.loc[few, client].nunique()} clients"
        warnings.warn(f"{file}: left out {gone} with fewer than {at_least} rows", stacklevel=2)
    names = np.unique((rows if empty_clients == "keep" else rows[~few])[client].astype(str).to_numpy())
    rows = rows[~few]
    owner = np.searchsorted(names, rows.pop(client).astype(str).to_numpy().astype(names.dtype))
    y, classes = _outcome(rows.pop(label), outcome, file)
    parts: dict[str, list[np.ndarray]] = {split: [] for split in SPLITS}
    for i, own in enumerate(rows_of(owner, len(names))):
        mine = stream(seed, "table", i).permutation(own)
        # 0.7 * 90 is less than 63 in floating point.
        bounds = np.cumsum([int(share * len(mine) + 1e-9) for share in (test, validation)])
        for split, part in zip(SPLITS, np.split(mine, bounds), strict=True):
            parts[split].append(np.sort(part))
    for option, share in (("test", test), ("validation", validation)):
        if share and not any(map(len, parts[option])):
            raise ValueError(f"{option}: {share:g} is not allowed; no client would hold out a row")
    x = _encoded(rows, np.concatenate(parts["train"]), categories, file)
    with torch_stream(seed, "init"):
        network = model((x.shape[1],), 1 if classes is None else classes)
    task = SupervisedTask(network, mse_loss if classes is None else cross_entropy, classes)
    splits = {split: parts[split] for split in reversed(SPLITS)}
    return task, natural_clients([x, y], splits, classes, seed, tuple(names.tolist()), empty_clients)


def _rows(file: str, label: str, client: str, features: Sequence[str] | None) -> pd.DataFrame:
    """The columns of the task; the index is the number of the row, from 1 and without the head."""
    path = _path(file)
    try:
        if any(ending in TEXT for ending in path.suffixes):
            options: dict[str, Any] = {"keep_default_na": False, "na_values": [""], "skipinitialspace": True}
            options["converters"] = {client: str.strip}  # names stay as they are written
            kind: dict[str, Any] = {}
            rows = pd.read_csv(path, **options)
            if rows.shape[1] == 1:  # not separated by commas
                kind = {"sep": None, "engine": "python"}
                rows = pd.read_csv(path, **kind, **options)
            head = pd.read_csv(path, header=None, nrows=1, dtype=str, keep_default_na=False, **kind).iloc[0].str.strip()
            if (twice := head[head.duplicated() & (head != "")].tolist()) and not rows.empty:
                raise ValueError(f"it has two columns {twice[0]!r}")
            if features is None and (head == "").any():
                raise ValueError("it has a column without a name, such as the index of pandas; name the `features`")
        else:
            rows = pd.read_feather(path) if path.suffix == ".feather" else pd.read_parquet(path)
    except (OSError, ValueError, ImportError, EOFError, BadZipFile, LZMAError, zlib.error) as error:
        raise ValueError(f"file: {file!r} is not allowed; must be a readable table: {error}") from None
    rows.index = pd.RangeIndex(1, len(rows) + 1)
    rows.columns = rows.columns.astype(str).str.strip()
    columns = [column for column in rows if column not in (label, client)] if features is None else list(features)
    for option, column in (("label", label), ("client", client), *(("features", name) for name in columns)):
        taken = {"client": (label,), "features": (label, client)}.get(option, ())
        if column not in rows or column in taken:
            allowed = ", ".join(map(str, rows.columns))
            raise ValueError(f"{option}: {column!r} is not allowed; must be a column of its own of {file}: {allowed}")
    if not columns:
        raise ValueError(f"file: {file!r} is not allowed; must have a column to predict {label} from")
    rows = rows[[label, client, *columns]]
    for name, column in rows.select_dtypes(["object", "string"]).items():
        if not column.map(pd.api.types.is_scalar).all():
            raise ValueError(f"file: {file!r}: {name} has lists or other objects; must have numbers or texts")
        rows = rows.assign(**{name: column.map(lambda value: value.strip() if isinstance(value, str) else value)})
    missing = rows.columns[(rows.isna() | (rows == "")).any()]
    if len(missing):
        raise ValueError(f"file: {file!r} has missing values in {', '.join(missing)}; fill them, or leave them out")
    return rows


def _numbers(column: "pd.Series[Any]", file: str, remedy: str) -> "pd.Series[Any] | None":
    """A column of finite numbers in float64; None if its values are no numbers. ValueError for a mixture."""
    if pd.api.types.is_bool_dtype(column) or column.dtype.kind in "mM":  # dates and durations are not guessed
        return None
    numbers = pd.to_numeric(column, errors="coerce")
    wrong = ~np.isfinite(numbers.to_numpy(dtype=np.float64, na_value=np.nan))
    if wrong.all() and not pd.api.types.is_numeric_dtype(column):
        if column.astype(str).str.fullmatch(r"-?[\d.]*\d,\d+").all():
            raise ValueError(f"file: {file!r}: {column.name} has {column.iloc[0]!r}; write numbers as 0.37, {remedy}")
        return None
    if wrong.any():
        row = int(np.flatnonzero(wrong)[0])
        raise ValueError(
            f"file: {file!r}: {column.name} has {(~wrong).sum():,} numbers, and {str(column.iloc[row])!r} in row "
            f"{column.index[row]} of the data; correct it, {remedy}"
        )
    return numbers.astype(np.float64)


def _many(column: "pd.Series[Any]") -> bool:
    """Whether most values of a column are rare, as names or free text are."""
    return column.nunique() > max(10, len(column) / 5)


def _outcome(labels: "pd.Series[Any]", outcome: str | None, file: str) -> tuple[np.ndarray, int | None]:
    """Amounts in float32, or the numbers of classes and how many there are."""
    numbers = None
    if outcome != "classes":
        numbers = _numbers(labels, file, "or set outcome: classes")
    if outcome is None and numbers is not None and (numbers == numbers.round()).all():
        if numbers.nunique() > 2:
            raise ValueError(
                f"outcome: is missing; {labels.name} has {numbers.nunique()} different whole numbers, which may be "
                "classes or amounts; must be classes or amounts"
            )
        numbers = None
    if outcome == "amounts" and numbers is None:
        raise ValueError(f"outcome: 'amounts' is not allowed; {labels.name} has no numbers")
    if numbers is not None:
        return numbers.to_numpy(dtype=np.float32), None
    if outcome is None and _many(labels):
        raise ValueError(
            f"label: {labels.name!r} is not allowed; it has {labels.nunique()} different texts; is it a name?"
        )
    values, y = np.unique(labels.to_numpy(), return_inverse=True)
    if len(values) == 1:
        raise ValueError(f"label: {labels.name!r} is not allowed; it has one value only, {values[0]!r}")
    return y.astype(np.int64), len(values)


def _path(file: str) -> Path:
    """A path; that of PACKAGE:PATH lies in an installed package, which is not imported."""
    package, colon, inside = file.partition(":")
    if not colon or Path(file).is_file():
        return Path(file)
    found = find_spec(package) if package.isidentifier() else None
    if found is None or not found.submodule_search_locations:
        raise ValueError(f"file: {file!r} is not allowed; the package {package} is not installed")
    return Path(found.submodule_search_locations[0]) / inside


def _encoded(rows: pd.DataFrame, train: np.ndarray, categories: Sequence[str], file: str) -> np.ndarray:
    """Features [n, d] in float32: numbers standardised by the training rows, categories in columns of 0 and 1."""
    scaled, binary = [], []
    for name, column in rows.items():
        remedy = f"leave {name} out of `features`, or list it in `categories`"
        numbers = None if name in categories else _numbers(column, file, remedy)
        if numbers is not None:
            own = numbers.iloc[train]
            # Equal numbers have a deviation of 0, also where rounding makes it 1e-17.
            deviation = own.std(ddof=0) if own.min() < own.max() else 1
            scaled.append(((numbers - own.mean()) / deviation).to_numpy()[:, None])
        elif name not in categories and _many(column):
            texts = f"{column.nunique()} different texts in {len(column)} rows"
            raise ValueError(f"file: {file!r}: {name} has {texts}, which would be a feature each; {remedy}")
        else:
            binary.append(pd.get_dummies(column.astype(str)).to_numpy())
    return np.hstack([*scaled, *binary]).astype(np.float32)
