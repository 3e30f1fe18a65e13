"""Seeds against those of NumPy."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from rollcall.tasks.streams import seeds

WORD = st.integers(0, 2**32 - 1)


@given(st.lists(st.tuples(WORD, WORD, WORD, WORD), min_size=1, max_size=5))
def test_generators_draw_what_numpys_draw(keys):
    for key, seed in zip(keys, seeds(np.array(keys, dtype=np.uint32)), strict=True):
        generator = seed.generator()
        expected = np.random.default_rng(list(key))
        assert generator.bit_generator.state == expected.bit_generator.state
        assert generator.permutation(20).tolist() == expected.permutation(20).tolist()
