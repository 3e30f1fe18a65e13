"""Keyed randomness of data and models: each draw depends only on its key (seed, purpose, ...).

The rule is that of `rollcall.participation.streams`. The two packages are independent, and use different purposes.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from zlib import crc32

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor

# SplitMix64 (Steele, Lea, Flood 2014): its increment and the two multipliers of its finaliser, as signed numbers.
_GOLDEN = 0x9E3779B97F4A7C15 - 2**64
_FIRST = 0xBF58476D1CE4E5B9 - 2**64
_SECOND = 0x94D049BB133111EB - 2**64


def stream(seed: int, purpose: str, *key: int) -> np.random.Generator:
    """The generator for one key: the trial's seed, the purpose of the numbers, and numbers such as client and epoch.

    NumPy pads a shorter key with zeros, so all keys of a purpose should have the same length.
    """
    return np.random.default_rng([seed, crc32(purpose.encode()), *key])


@contextmanager
def torch_stream(seed: int, purpose: str, *key: int) -> Iterator[None]:
    """A context in which torch's global generator is seeded by the key, for layers of torch.nn. Restored afterwards."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(int(stream(seed, purpose, *key).integers(2**63)))
        yield


def uniforms(seed: int, keys: Int[Tensor, "n k"]) -> Float[Tensor, "n"]:
    """A uniform number in [0, 1) for each key, in float64, independent for different keys and seeds.

    All arithmetic is on integers modulo 2^64, so the result is the same on every device.
    """
    state = torch.full((len(keys),), seed, dtype=torch.int64, device=keys.device)
    for column in keys.unbind(dim=1):
        state = _mix(state + _GOLDEN) ^ column
    return _shift(_mix(state + _GOLDEN), 11).to(torch.float64) * 2.0**-53


def _mix(z: Int[Tensor, "n"]) -> Int[Tensor, "n"]:
    """The finaliser of SplitMix64."""
    z = (z ^ _shift(z, 30)) * _FIRST
    z = (z ^ _shift(z, 27)) * _SECOND
    return z ^ _shift(z, 31)


def _shift(z: Int[Tensor, "n"], bits: int) -> Int[Tensor, "n"]:
    """Logical shift to the right."""
    return (z >> bits) & (2 ** (64 - bits) - 1)
