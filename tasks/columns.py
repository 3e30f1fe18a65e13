"""Samples as columns of tensors, from arrays, tensors or a torch data set."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.utils.data import Dataset, TensorDataset, default_collate

from tasks.base import Samples


def columns(source: Any, name: str) -> Samples:
    """The columns of a split: inputs, and targets last. A data set is read once, so a random transform acts once.

    Args:
        source: a tuple of tensors or arrays of equal length, or a torch data set whose items are such tuples.
        name: of the split, for errors.

    Raises:
        ValueError: another type, columns of different lengths, fewer than two columns, or no sample.
    """
    if isinstance(source, TensorDataset):
        source = source.tensors
    elif isinstance(source, Dataset):
        source = _items(source, name)
    if not isinstance(source, tuple | list) or len(source) < 2:
        raise ValueError(
            f"{name}: {type(source).__name__} is not allowed; must be a tuple (inputs, targets) of tensors or arrays, "
            "or a torch Dataset whose items are such pairs"
        )
    tensors = tuple(_tensor(column, name) for column in source)
    if not tensors[-1].is_floating_point():
        tensors = (*tensors[:-1], tensors[-1].long())
    lengths = [len(column) if column.ndim else 0 for column in tensors]
    if len(set(lengths)) > 1 or not lengths[0]:
        raise ValueError(f"{name}: columns of lengths {lengths} are not allowed; must be equal and at least 1")
    return tensors


def _items(dataset: Dataset[Any], name: str) -> Sequence[Any]:
    if not hasattr(dataset, "__len__"):
        raise ValueError(f"{name}: a data set without length is not allowed; must have __len__ and __getitem__")
    try:
        collated: Sequence[Any] = default_collate([dataset[i] for i in range(len(dataset))])
    except (TypeError, RuntimeError) as error:
        raise ValueError(
            f"{name}: the items of this data set do not fit into tensors ({error}); "
            "a transform must make tensors of equal shape from them"
        ) from error
    return collated


def _tensor(column: Any, name: str) -> Tensor:
    try:
        tensor = column.detach().clone() if isinstance(column, Tensor) else torch.from_numpy(np.array(column))
    except TypeError:
        raise ValueError(f"{name}: a column of {np.array(column).dtype} is not allowed; must be numbers") from None
    return tensor if tensor.is_floating_point() or tensor.dtype == torch.uint8 else tensor.long()
