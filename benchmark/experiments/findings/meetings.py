"""A roll call in which it can be chosen who meets whom, at equal availability."""

import numpy as np


def meetings(t: int, rng: np.random.Generator, *, clients: int = 20, size: int = 2, mixing: float = 1.0) -> np.ndarray:
    """Each client is active in a tenth of the rounds, always with `size` - 1 others.

    They are those of its fixed block, or with probability `mixing` drawn among all. W averages the models of those who
    meet ([PBC] Eq. 4), so W^2 = W. The spectral gap of E[W^2] (1 - rho, [PBC] Lemma 3) is `mixing` (size - 1) s /
    (clients - 1), where s is the share of rounds with a meeting.

    Args:
        t: the round; rounds are independent.
        rng: of the round.
        clients: m.
        size: clients in a meeting, a divisor of m.
        mixing: probability that those of a meeting are drawn among all.
    """
    if rng.random() >= 0.1 * clients / size:
        return np.empty(0, dtype=np.int64)
    if rng.random() < mixing:
        return rng.choice(clients, size, replace=False)
    return np.arange(size) + size * rng.integers(clients // size)
