"""Keyed randomness of data and models: each draw depends only on its key (seed, purpose, ...).

The rule is that of `rollcall.participation.stream`. The two packages are independent, and use different purposes.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from zlib import crc32

import numpy as np
import torch
from jaxtyping import Float, Int
from numpy.random.bit_generator import ISeedSequence
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


class Words(ISeedSequence):
    """A seed sequence whose state is known: [4] words of 64 bits, as PCG64 asks for."""

    def __init__(self, words: np.ndarray) -> None:
        self.words = words

    def generate_state(self, n_words: int, dtype: object = None) -> np.ndarray:
        return self.words


def streams(seed: int, purpose: str, keys: Int[np.ndarray, "n 2"]) -> list[np.random.Generator]:
    """`stream(seed, purpose, *key)` of many keys, with the same numbers, in less time.

    It is `numpy.random.SeedSequence`, for all keys at once: the seed, the purpose and the key are mixed in a pool of
    four words of 32 bits, from which the state of each generator is drawn.
    """
    if len(keys) < 4 or not 0 <= seed < 2**32:  # such a seed takes more than a word
        return [stream(seed, purpose, *key) for key in keys.tolist()]
    constant = 0x43B0D7E5

    def hashed(value: np.ndarray, multiplier: int) -> np.ndarray:
        nonlocal constant
        value = value ^ np.uint32(constant)
        constant = constant * multiplier & 0xFFFFFFFF
        value = value * np.uint32(constant)
        return value ^ (value >> np.uint32(16))

    words = np.broadcast_to(np.array([seed, crc32(purpose.encode()), 0, 0], dtype=np.uint32), (len(keys), 4)).copy()
    words[:, 2:] = keys
    pool: list[np.ndarray] = [hashed(word, 0x931E8875) for word in words.T]
    for source in range(4):
        for target in range(4):
            if source != target:
                mixed: np.ndarray = np.uint32(0xCA01F9DD) * pool[target] - np.uint32(0x4973F715) * hashed(
                    pool[source], 0x931E8875
                )
                pool[target] = mixed ^ (mixed >> np.uint32(16))
    constant = 0x8B51F9DD
    states = np.stack([hashed(pool[word % 4], 0x58F38DED) for word in range(8)], axis=1).astype("<u4").view("<u8")
    return [np.random.Generator(np.random.PCG64(Words(state))) for state in states]  # type: ignore[arg-type]  # an ISeedSequence


@contextmanager
def torch_stream(seed: int, purpose: str, *key: int) -> Iterator[None]:
    """A context in which torch's global generators are seeded by the key, for layers of torch.nn. Restored afterwards.

    Those of GPUs are restored if CUDA is in use; else they have no state yet.
    """
    with torch.random.fork_rng(devices=_gpus(), device_type="cuda"):
        torch.manual_seed(int(stream(seed, purpose, *key).integers(2**63)))
        yield


def torch_state() -> list[bytes]:
    """The states of the generators that `torch_stream` seeds."""
    states = [torch.get_rng_state(), *(torch.cuda.get_rng_state(device) for device in _gpus())]
    return [state.numpy().tobytes() for state in states]


def _gpus() -> range:
    """The GPUs, if CUDA is in use. To ask for the state of a generator would start it."""
    in_use = torch.cuda.is_initialized()  # type: ignore[no-untyped-call, unused-ignore]
    return range(torch.cuda.device_count() if in_use else 0)


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
