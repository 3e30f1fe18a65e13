"""Markov chains by hand."""

import numpy as np
import pytest

from rollcall.participation.theory import chains as theory


def test_mixing_time():
    # Two states: TV from state x is |lambda|^t (1 - pi_x).
    for on, off in [(0.05, 0.15), (0.02, 0.02), (0.9, 0.8), (0.3, 0.7)]:
        P = np.array([[1 - on, on], [off, 1 - off]])
        worst = max(on, off) / (on + off)
        t = next(t for t in range(1000) if worst * abs(1 - on - off) ** t <= 0.25)
        assert theory.mixing_time(P) == t
    assert theory.mixing_time(np.array([[0.5, 0.5], [0.5, 0.5]])) == 1
    assert theory.mixing_time(np.array([[0.5, 0.5], [0.5, 0.5]]), 0.6) == 0
    for never in ([[0.0, 1.0], [1.0, 0.0]], [[1.0, 0.0], [0.0, 1.0]]):
        with pytest.raises(ValueError, match="never mixes"):
            theory.mixing_time(np.array(never))
    with pytest.raises(ValueError, match="rows that sum to 1"):
        theory.mixing_time(np.array([[0.5, 0.4], [0.5, 0.5]]))
