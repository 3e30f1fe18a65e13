"""A partition from a file."""

from pathlib import Path
from typing import Annotated, Any

import numpy as np
import pandas as pd
from jaxtyping import Num
from pydantic import BeforeValidator

from tasks.partitions.base import Parts, realised

NO_CLIENT = -1


def read(source: Any) -> np.ndarray:
    """Read the client of each sample from a file: .npy, .npz with one array, or .csv with the column `client`.

    Args:
        source: a path, or the numbers themselves.

    Raises:
        ValueError: no such file, or another format.
    """
    if not isinstance(source, str | Path):
        return np.asarray(source)
    path = Path(source)
    if path.suffix not in (".npy", ".npz", ".csv") or not path.is_file():
        raise ValueError("must be whole numbers, or the path of a .npy, .npz or .csv file that exists")
    if path.suffix == ".csv":
        table = pd.read_csv(path, skipinitialspace=True)
        if list(table.columns) != ["client"]:
            raise ValueError(f"must have the one column client, not {','.join(map(str, table.columns))}")
        return table["client"].to_numpy()
    loaded = np.load(path, allow_pickle=False)
    if path.suffix == ".npy":
        return loaded
    with loaded as arrays:
        if len(arrays.files) != 1:
            raise ValueError(f"must hold one array, not {len(arrays.files)}")
        return arrays[arrays.files[0]]


def from_file(
    labels: Num[np.ndarray, "n"],
    clients: int,
    seed: int,
    *,
    assignment: Annotated[np.ndarray, BeforeValidator(read)],
) -> Parts:
    """The client of each training sample is given by a .npy, .npz or .csv file; samples of client -1 are left out.

    Args:
        labels: [n], of the training samples.
        clients: m, the number of clients.
        seed: not used, nothing is drawn.
        assignment: [n], the id of a client or -1, in the order of the training samples.

    Raises:
        ValueError: not a number for each sample, no such client, or a client without samples.
    """
    if assignment.shape != labels.shape or assignment.dtype.kind not in "iu":
        raise ValueError(
            f"partition.assignment: {assignment.dtype} of shape {assignment.shape} is not allowed; must be "
            f"{len(labels)} whole numbers, one for each training sample"
        )
    wrong = np.flatnonzero((assignment < NO_CLIENT) | (assignment >= clients))
    if len(wrong):
        raise ValueError(
            f"partition.assignment: client {assignment[wrong[0]]} of sample {wrong[0]} is not allowed; "
            f"must be in [-1, {clients - 1}]"
        )
    rows = [np.flatnonzero(assignment == client) for client in range(clients)]
    for client, mine in enumerate(rows):
        if len(mine) == 0:
            raise ValueError(f"partition.assignment: no sample of client {client} is not allowed; must be at least one")
    return Parts(rows, realised(labels, rows))
