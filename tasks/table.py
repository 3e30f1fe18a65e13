"""A table as a task: a file of rows, one column of which names the client that each row belongs to."""

import warnings
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pandas as pd
from torch.nn.functional import cross_entropy, mse_loss

from rollcall.tasks.base import ClientData, natural_clients, need_least, need_shares
from rollcall.tasks.models import Model, linear
from rollcall.tasks.streams import stream, torch_stream
from rollcall.tasks.supervised import SupervisedTask

SPLITS = ("test", "validation", "train")


def table(
    seed: int,
    *,
    file: str,
    label: str,
    client: str,
    features: Sequence[str] | None = None,
    at_least: int = 10,
    test: float = 0.2,
    validation: float = 0.0,
    model: Model = linear,
) -> tuple[SupervisedTask, ClientData]:
    """Classification or regression on a table whose clients are natural groups: hospitals, schools, regions, speakers.

    Labels that are floating-point numbers make a regression (squared error), all others a classification
    (cross-entropy). Features that are numbers are standardised by mean and standard deviation of the training rows of
    all clients. Other features have a column of 0 and 1 for each value. Of every client's rows the same shares, rounded
    down, are held out for `test` and `validation`; the client trains on the rest.

    Args:
        seed: of the held-out rows and of the initial model.
        file: a `.csv` or `.parquet` file; or `PACKAGE:PATH` for a file that an installed package ships.
        label: the column to predict.
        client: the column that names the client of each row.
        features: columns to predict from. Default: all others.
        at_least: clients with fewer rows are left out, with a warning.
        test: share of each client's rows in the split `test`.
        validation: share of each client's rows in the split `validation`.
        model: the network.

    Raises:
        ValueError: a file or column that does not exist, missing values, or an option out of range.
    """
    need_least(1, at_least=at_least)
    need_shares(validation, test)
    rows = _rows(file, label, client, features, at_least)
    groups = rows.pop(client).astype(str)
    names, owner = np.unique(groups.to_numpy(), return_inverse=True)
    targets = rows.pop(label)
    classes, y = None, targets.to_numpy()
    if not pd.api.types.is_float_dtype(targets):
        values, y = np.unique(y, return_inverse=True)
        classes = len(values)
    parts: dict[str, list[np.ndarray]] = {split: [] for split in SPLITS}
    for i in range(len(names)):
        mine = stream(seed, "table", i).permutation(np.flatnonzero(owner == i))
        bounds = np.cumsum([int(test * len(mine)), int(validation * len(mine))])
        for split, part in zip(SPLITS, np.split(mine, bounds), strict=True):
            parts[split].append(np.sort(part))
    x = _encoded(rows, np.concatenate(parts["train"]))
    y = y.astype(np.float32 if classes is None else np.int64)
    with torch_stream(seed, "init"):
        network = model((x.shape[1],), 1 if classes is None else classes)
    task = SupervisedTask(network, mse_loss if classes is None else cross_entropy, classes)
    return task, natural_clients([x, y], {split: parts[split] for split in reversed(SPLITS)}, classes, seed)


def _rows(file: str, label: str, client: str, features: Sequence[str] | None, at_least: int) -> pd.DataFrame:
    """The columns of the task, without the rows of clients that have too few."""
    path = _path(file)
    try:
        rows = pd.read_parquet(path) if path.suffix == ".parquet" else pd.read_csv(path)
    except (OSError, ValueError, ImportError) as error:
        raise ValueError(f"file: {file!r} is not allowed; must be a readable table: {error}") from None
    columns = [column for column in rows if column not in (label, client)] if features is None else list(features)
    for option, column in (("label", label), ("client", client), *(("features", name) for name in columns)):
        if column not in rows or (option == "features" and column in (label, client)):
            allowed = ", ".join(map(str, rows.columns))
            raise ValueError(f"{option}: {column!r} is not allowed; must be a column of its own of {file}: {allowed}")
    rows = rows[[label, client, *columns]]
    missing = rows.columns[rows.isna().any()]
    if len(missing):
        raise ValueError(f"file: {file!r} has missing values in {', '.join(missing)}; fill them, or leave them out")
    kept = rows[rows.groupby(client)[label].transform("size") >= at_least]
    if kept.empty:
        raise ValueError(f"at_least: {at_least} is not allowed; no client in {file} has as many rows")
    if len(kept) < len(rows):
        gone = f"{len(rows) - len(kept)} rows of {rows[client].nunique() - kept[client].nunique()} clients"
        warnings.warn(f"{file}: left out {gone} with fewer than {at_least} rows", stacklevel=3)
    return kept.reset_index(drop=True)


def _path(file: str) -> Path:
    """A path; that of PACKAGE:PATH lies in an installed package, which is not imported."""
    package, colon, inside = file.partition(":")
    if not colon or Path(file).is_file():
        return Path(file)
    found = find_spec(package) if package.isidentifier() else None
    if found is None or not found.submodule_search_locations:
        raise ValueError(f"file: {file!r} is not allowed; the package {package} is not installed")
    return Path(found.submodule_search_locations[0]) / inside


def _encoded(rows: pd.DataFrame, train: np.ndarray) -> np.ndarray:
    """Features [n, d] in float32: numbers standardised by the training rows, others in columns of 0 and 1."""
    numbers = rows.select_dtypes("number").astype(np.float64)
    deviation = numbers.iloc[train].std(ddof=0)
    columns = [((numbers - numbers.iloc[train].mean()) / deviation.where(deviation > 0, 1)).to_numpy()]
    for name in rows.columns.difference(numbers.columns, sort=False):
        columns.append(pd.get_dummies(rows[name].astype(str)).to_numpy())
    return np.hstack(columns).astype(np.float32)
