"""Models fitted to a roll call keep the features that they are fitted by."""

import numpy as np
import pytest
from scipy.stats import multivariate_normal, norm

from rollcall.participation import Bernoulli, Matched, Population, Trace
from rollcall.participation.fits import FITS, fitted

MASK = np.array([[1, 1, 0, 0], [1, 0, 0, 0], [0, 1, 0, 0], [0, 0, 1, 0], [0, 0, 0, 0]], dtype=bool)


def test_fits_by_hand():
    # Shares 2/5, 2/5, 1/5, 0; arrivals 1, 2, 1, 0 (client 0 and round 0: the last round is off); 15 cells are off.
    options = {name: options(MASK) for name, (_, options) in FITS.items()}
    assert options["uniform"] == {"per_round": 1}
    assert options["bernoulli"]["probability"].tolist() == [0.4, 0.4, 0.2, 0]
    assert options["markov"]["off_on"] == pytest.approx(4 / 15)
    assert options["cyclic"]["length"] == 4  # three clients that move, 5 rounds each, 4 arrivals: 3.75
    # P(on|on) + P(off|off) - 1: client 0 1/2 + 2/3 - 1; client 1 0 + 1/3 - 1; client 2 0 + 3/4 - 1.
    assert options["markov_pi_lambda"]["correlation"] == pytest.approx([1 / 6, -2 / 3, -1 / 4, 0])


def test_the_copula_has_the_recorded_covariance_of_pairs():
    rng = np.random.default_rng(0)
    common = rng.standard_normal((4000, 1))
    mask = 0.6 * common + 0.8 * rng.standard_normal((4000, 3)) < [-1.0, 0.2, 0.5]  # rho = 0.36
    options = FITS["copula"][1](mask)
    assert options["rho"] == pytest.approx(0.36, abs=0.05)
    # Another library: the covariance of the three pairs by the bivariate normal distribution.
    pi, pairs = options["probability"], [(0, 1), (0, 2), (1, 2)]
    normal = multivariate_normal(cov=[[1, options["rho"]], [options["rho"], 1]])
    expected = sum(normal.cdf(norm.ppf(pi[list(pair)])) - pi[pair[0]] * pi[pair[1]] for pair in pairs)
    assert expected == pytest.approx(
        sum(np.cov(mask[:, pair].T, bias=True)[0, 1] for pair in map(list, pairs)), abs=1e-6
    )
    assert FITS["copula"][1](MASK)["rho"] == 0.0  # negative covariance


@pytest.mark.parametrize("name", FITS)
def test_every_model_can_be_fitted_to_a_roll_call_with_clients_always_or_never_active(name):
    mask = np.hstack([MASK, np.ones((5, 1), dtype=bool)])
    model = fitted(name, Population(5), mask)
    if name not in ("uniform", "cyclic"):
        assert model.stationary.tolist() == [0.4, 0.4, 0.2, 0, 1]
        assert all(3 not in model.active(t) and 4 in model.active(t) for t in range(50))


def test_a_matched_model_is_fitted_to_the_devices_of_the_seed():
    def trace(population):
        return Trace(population, mask=MASK, shuffle=True)

    matched = Matched(Population(4, 7), participation=trace, fit="bernoulli")
    assert matched.probability(3).tolist() == matched.stationary.tolist() == trace(Population(4, 7)).stationary.tolist()
    same = Bernoulli(Population(4, 7), probability=matched.stationary)
    assert all(np.array_equal(matched.active(t), same.active(t)) for t in range(30))
    assert matched.share == pytest.approx(same.share)
    assert matched.correlation.tolist() == [0, 0, 0, 0]
    # Of a model that is no trace, the first 2,000 rounds.
    drawn = Matched(Population(1), participation=lambda p: Bernoulli(p, probability=0.3))
    assert drawn.stationary[0] == pytest.approx(0.3, abs=0.04)
