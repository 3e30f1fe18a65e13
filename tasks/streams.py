"""Keyed randomness of data and models: each draw depends only on its key (seed, purpose, ...).

The rule is that of `rollcall.participation.streams`. The two packages are independent, and use different purposes.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from zlib import crc32

import numpy as np
import torch
from jaxtyping import Float, Int, UInt32, UInt64
from numpy.random.bit_generator import ISeedSequence
from torch import Tensor

# SplitMix64 (Steele, Lea, Flood 2014): its increment and the two multipliers of its finaliser, as signed numbers.
_GOLDEN = 0x9E3779B97F4A7C15 - 2**64
_FIRST = 0xBF58476D1CE4E5B9 - 2**64
_SECOND = 0x94D049BB133111EB - 2**64

# NumPy's SeedSequence (O'Neill's `seed_seq_fe`, `bit_generator.pyx`): its pool of words and its multipliers.
POOL = 4
INIT_A, MULT_A = 0x43B0D7E5, 0x931E8875
INIT_B, MULT_B = 0x8B51F9DD, 0x58F38DED
MIX_L, MIX_R = np.uint32(0xCA01F9DD), np.uint32(0x4973F715)
SHIFT = np.uint32(16)


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


class Seed(ISeedSequence):
    """A seed that is already computed: the words of the state of a PCG64."""

    def __init__(self, words: UInt64[np.ndarray, "4"]) -> None:
        self.words = words

    def generator(self) -> np.random.Generator:
        """The generator with this seed."""
        return np.random.Generator(np.random.PCG64(self))  # type: ignore[arg-type]  # NumPy's stubs lack ISeedSequence

    def generate_state(self, n_words: int, dtype: object = np.uint32) -> np.ndarray:
        """The state that PCG64 asks for: four words of 64 bits."""
        return self.words


def multiplicative_hash(constant: int, factor: int) -> Callable[[np.ndarray], np.ndarray]:
    """The multiplicative hash of words, whose constant changes with each use."""

    def hashed(words: UInt32[np.ndarray, "n"]) -> UInt32[np.ndarray, "n"]:
        nonlocal constant
        words = words ^ np.uint32(constant)
        constant = constant * factor & 0xFFFFFFFF
        words *= np.uint32(constant)
        words ^= words >> SHIFT
        return words

    return hashed


def seeds(keys: UInt32[np.ndarray, "n 4"]) -> list[Seed]:
    """The seeds that `numpy.random.SeedSequence(key)` gives to PCG64, for keys of four words each.

    NumPy computes one at a time, which takes several times as long as the draw that follows.
    """
    entropy, hashed = np.ascontiguousarray(keys.T), multiplicative_hash(INIT_A, MULT_A)
    pool = [hashed(words) for words in entropy]
    for source in range(POOL):
        for target in range(POOL):
            if source != target:
                mixed = MIX_L * pool[target]
                mixed -= MIX_R * hashed(pool[source])
                mixed ^= mixed >> SHIFT
                pool[target] = mixed
    hashed = multiplicative_hash(INIT_B, MULT_B)
    state = np.stack([hashed(pool[word % POOL]) for word in range(8)], axis=1)
    return [Seed(words) for words in state.astype("<u4", copy=False).view("<u8").astype(np.uint64, copy=False)]
