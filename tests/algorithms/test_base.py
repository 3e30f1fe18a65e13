"""What a method receives in each round."""

import torch

from rollcall.algorithms import Round


def test_a_methods_own_draws_depend_on_the_seed_and_the_round():
    def draw(seed, t):
        call = Round(t, torch.tensor([0]), 0.1, torch.ones(1), seed=seed)
        return tuple(torch.rand(3, generator=call.generator()).tolist())

    draws = {(seed, t): draw(seed, t) for seed in range(3) for t in range(3)}
    assert len(set(draws.values())) == 9
    assert all(draw(*key) == numbers for key, numbers in draws.items())
