"""Keyed randomness: each draw depends only on its key (seed, purpose, round, ...)."""

from zlib import crc32

import numpy as np


def stream(seed: int, purpose: str, *key: int) -> np.random.Generator:
    """The generator for one key: the trial's seed, the purpose of the numbers, and numbers such as the round.

    NumPy pads a shorter key with zeros, so all keys of a purpose should have the same length.
    """
    return np.random.default_rng([seed, crc32(purpose.encode()), *key])
