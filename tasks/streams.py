"""Keyed randomness of data and models: each draw depends only on its key (seed, purpose, ...).

The rule is that of `participation.streams`. The two packages are independent, and use different purposes.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from zlib import crc32

import numpy as np
import torch


def stream(seed: int, purpose: str, *key: int) -> np.random.Generator:
    """The generator for one key. The same key always gives the same numbers.

    NumPy pads a shorter key with zeros, so all keys of a purpose should have the same length.

    Args:
        seed: the trial's seed.
        purpose: what the numbers are for.
        key: client, epoch and so on.
    """
    return np.random.default_rng([seed, crc32(purpose.encode()), *key])


@contextmanager
def torch_stream(seed: int, purpose: str, *key: int) -> Iterator[None]:
    """A context in which torch's global generator is seeded by the key, for layers of torch.nn. Restored afterwards."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(int(stream(seed, purpose, *key).integers(2**63)))
        yield
