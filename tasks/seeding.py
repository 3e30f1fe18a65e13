"""The seeds of many keyed generators at once, equal to those that NumPy computes one by one.

`numpy.random.SeedSequence` hashes a key to the state of a generator, which takes several times as long as the draw that
follows. Here the same hash runs on arrays of keys (O'Neill's `seed_seq_fe`, as in NumPy's `bit_generator.pyx`).
"""

import numpy as np
from jaxtyping import UInt32, UInt64
from numpy.random.bit_generator import ISeedSequence

POOL = 4
INIT_A, MULT_A = 0x43B0D7E5, 0x931E8875
INIT_B, MULT_B = 0x8B51F9DD, 0x58F38DED
MIX_L, MIX_R = np.uint32(0xCA01F9DD), np.uint32(0x4973F715)
SHIFT = np.uint32(16)


class Seed(ISeedSequence):
    """A seed that is computed already.

    Args:
        words: of the state of a PCG64.
    """

    def __init__(self, words: UInt64[np.ndarray, "4"]) -> None:
        self.words = words

    def generator(self) -> np.random.Generator:
        """The generator with this seed."""
        return np.random.Generator(np.random.PCG64(self))  # type: ignore[arg-type]  # NumPy's stubs lack ISeedSequence

    def generate_state(self, n_words: int, dtype: object = np.uint32) -> np.ndarray:
        """The state that PCG64 asks for: four words of 64 bits."""
        return self.words


class Hash:
    """The multiplicative hash, whose constant changes with each use."""

    def __init__(self, constant: int, factor: int) -> None:
        self.constant = constant
        self.factor = factor

    def __call__(self, words: UInt32[np.ndarray, "n"]) -> UInt32[np.ndarray, "n"]:
        """Hashed words."""
        words = words ^ np.uint32(self.constant)
        self.constant = self.constant * self.factor & 0xFFFFFFFF
        words *= np.uint32(self.constant)
        words ^= words >> SHIFT
        return words


def seeds(keys: UInt32[np.ndarray, "n 4"]) -> list[Seed]:
    """What `numpy.random.SeedSequence(key)` gives to PCG64, for keys of four words each."""
    entropy, hashed = np.ascontiguousarray(keys.T), Hash(INIT_A, MULT_A)
    pool = [hashed(words) for words in entropy]
    for source in range(POOL):
        for target in range(POOL):
            if source != target:
                mixed = MIX_L * pool[target]
                mixed -= MIX_R * hashed(pool[source])
                mixed ^= mixed >> SHIFT
                pool[target] = mixed
    hashed = Hash(INIT_B, MULT_B)
    state = np.stack([hashed(pool[word % POOL]) for word in range(8)], axis=1)
    return [Seed(words) for words in state.astype("<u4", copy=False).view("<u8").astype(np.uint64, copy=False)]
