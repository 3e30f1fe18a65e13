"""Methods' own draws, estimates of availability; and rows of those who have taken part, against a dense matrix."""

import numpy as np
import pytest
import torch

from rollcall.algorithms import Round, Rows
from rollcall.algorithms.availability import Watch


def test_a_methods_own_draws_depend_on_the_seed_and_the_round():
    def draw(seed, t):
        call = Round(t, torch.tensor([0]), 0.1, torch.ones(1), seed=seed)
        return tuple(torch.rand(3, generator=call.generator()).tolist())

    draws = {(seed, t): draw(seed, t) for seed in range(3) for t in range(3)}
    assert len(set(draws.values())) == 9
    assert all(draw(*key) == numbers for key, numbers in draws.items())


def test_estimates_by_hand():
    seen = Watch.begin(2, torch.device("cpu"))
    assert seen.stationary.tolist() == [0.5, 0.5]
    assert seen.correlation.tolist() == [0, 0]
    for active in ([0], [0, 1], [], [0]):  # client 0: 1 1 0 1; client 1: 0 1 0 0
        seen = seen.observe(torch.tensor(active, dtype=torch.int64))
    assert seen.stationary.tolist() == pytest.approx([4 / 6, 2 / 6])
    # Client 0: from on twice, stayed once; from off once, stayed never. Client 1: from on once, stayed never; from off
    # twice, stayed once.
    assert seen.correlation.tolist() == pytest.approx([2 / 4 + 1 / 3 - 1, 1 / 3 + 2 / 4 - 1])


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_like_a_dense_matrix(dtype):
    """Uneven rounds, empty ones, one of everybody; what was given before stays as it was."""
    draw = np.random.default_rng(3)
    m, d = 23, 4
    first = draw.normal(size=d)
    kept, dense, seen, past = Rows.begin(torch.tensor(first, dtype=dtype), m), np.tile(first, (m, 1)), set(), []
    for t in range(60):
        active = np.arange(m) if t == 40 else np.flatnonzero(draw.random(m) < draw.choice([0, 0.02, 0.2]))
        news = draw.normal(size=(len(active), d)).astype(np.float32)
        past.append((kept, kept.values.clone(), kept.place.clone()))
        kept = kept.put(torch.from_numpy(active), torch.tensor(news, dtype=dtype))
        dense[active] = news
        seen |= set(active.tolist())
        assert len(kept.values) == 1 + len(seen)
        assert np.flatnonzero(kept.stored.numpy()).tolist() == sorted(seen)
        assert torch.equal(kept.dense(), torch.tensor(dense, dtype=dtype))
        asked = draw.permutation(m)[:5]
        assert torch.equal(kept[torch.from_numpy(asked)], torch.tensor(dense[asked], dtype=dtype))
        assert kept.mean().double().numpy() == pytest.approx(dense.mean(axis=0), abs=1e-6)
        assert kept.mean().dtype == dtype
    assert len({len(values) for _, values, _ in past}) > 5
    for before, values, place in past:
        assert torch.equal(before.values, values)
        assert torch.equal(before.place, place)
