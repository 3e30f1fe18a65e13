"""Keyed randomness: each draw depends only on its key (seed, purpose, round, ...)."""

from zlib import crc32

import numpy as np


def stream(seed: int, purpose: str, *key: int) -> np.random.Generator:
    """The generator for one key. The same key always gives the same numbers.

    NumPy pads a shorter key with zeros, so all keys of a purpose should have the same length.

    Args:
        seed: the trial's seed.
        purpose: what the numbers are for.
        key: round, client and so on.
    """
    return np.random.default_rng([seed, crc32(purpose.encode()), *key])
