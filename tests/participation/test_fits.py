"""Models fitted to a roll call keep the features that they are fitted by; statistics of a mask by hand."""

import numpy as np
import pytest
from scipy.stats import multivariate_normal, norm

from rollcall.participation import Bernoulli, Population, Trace, fits, matched
from rollcall.participation.fits import FITS, compare
from rollcall.participation.summary import correlations, standard_errors, waits

MASK = np.array([[1, 1, 0, 0], [1, 0, 0, 0], [0, 1, 0, 0], [0, 0, 1, 0], [0, 0, 0, 0]], dtype=bool)


def test_fits_by_hand():
    # Shares 2/5, 2/5, 1/5, 0; arrivals 1, 2, 1, 0 (client 0 and round 0: the last round is off); 10 cells of moving clients are off.
    options = {name: options(MASK) for name, (_, options) in FITS.items()}
    assert options["uniform"] == {"per_round": 1}
    assert FITS["uniform"][1](~MASK) == {"per_round": 3}
    assert options["bernoulli"]["probability"].tolist() == [0.4, 0.4, 0.2, 0]
    assert options["markov"]["off_on"] == pytest.approx(4 / 10)
    assert options["cyclic"]["length"] == 4  # three clients that move, 5 rounds each, 4 arrivals: 3.75
    # P(on|on) + P(off|off) - 1: client 0 1/2 + 2/3 - 1; client 1 0 + 1/3 - 1; client 2 0 + 3/4 - 1.
    assert options["markov_pi_lambda"]["correlation"] == pytest.approx([1 / 6, -2 / 3, -1 / 4, 0])


def test_the_copula_has_the_recorded_covariance_of_pairs():
    rng = np.random.default_rng(0)
    common = rng.standard_normal((4000, 1))
    mask = 0.6 * common + 0.8 * rng.standard_normal((4000, 3)) < [-1.0, 0.2, 0.5]  # rho = 0.36
    options = FITS["copula"][1](mask)
    assert options["rho"] == pytest.approx(0.36, abs=0.05)
    # Another library: the correlations of the three pairs by the bivariate normal distribution.
    pi, normal = options["probability"], multivariate_normal(cov=[[1, options["rho"]], [options["rho"], 1]])
    spread = np.sqrt(pi * (1 - pi))
    expected = sum(
        (normal.cdf(norm.ppf(pi[[i, j]])) - pi[i] * pi[j]) / spread[i] / spread[j] for i, j in ((0, 1), (0, 2), (1, 2))
    )
    assert expected == pytest.approx(np.corrcoef(mask.T)[np.triu_indices(3, 1)].sum(), abs=1e-6)
    assert FITS["copula"][1](MASK)["rho"] == 0.0  # negative correlation


def test_a_matched_model_is_fitted_to_the_devices_of_the_seed():
    def trace(population):
        return Trace(population, mask=MASK, shuffle=True)

    fitted = matched(Population(4, 7), participation=trace, fit="bernoulli")
    assert fitted.probability(3).tolist() == fitted.stationary.tolist() == trace(Population(4, 7)).stationary.tolist()
    same = Bernoulli(Population(4, 7), probability=fitted.stationary)
    assert all(np.array_equal(fitted.active(t), same.active(t)) for t in range(30))
    assert fitted.share == pytest.approx(same.share)
    assert fitted.correlation.tolist() == [0, 0, 0, 0]
    # Of a model that is no trace, the first 2,000 rounds.
    drawn = matched(Population(1), participation=lambda p: Bernoulli(p, probability=0.3))
    assert drawn.stationary[0] == pytest.approx(0.3, abs=0.04)


def test_features_of_a_trace_by_hand(monkeypatch):
    monkeypatch.setattr(fits, "COMPARED", 1500)
    # Two clients in turn, twelve hours each: the number active never changes. A third is on at noon of even days.
    hours = np.arange(24 * 20)
    turn = hours % 24 < 12
    mask = np.stack([turn, ~turn, (hours % 48) == 12], axis=1)
    table = compare(Trace(Population(3), mask=mask))
    assert list(table) == ["trace", *FITS]
    assert "day" not in table["trace"]  # a mask has no length of a round
    rows = np.array([(t * 3600.0, (t + 1) * 3600.0, i) for t, i in np.argwhere(mask)])
    intervals = np.empty(len(rows), dtype=[("client", int), ("start", float), ("end", float)])
    intervals["start"], intervals["end"], intervals["client"] = rows.T
    table = compare(Trace(Population(3), mask=intervals, round_length=3600))
    on = mask.sum(axis=1)[: int(np.flatnonzero(mask.any(axis=1))[-1]) + 1]
    assert table["trace"]["day"] == pytest.approx(np.corrcoef(on[:-24], on[24:])[0, 1])
    assert table["trace"]["week"] == pytest.approx(np.corrcoef(on[:-168], on[168:])[0, 1])
    weekly = compare(Trace(Population(3), mask=intervals[intervals["end"] <= 13 * 86_400], round_length=3600))
    assert np.isnan(weekly["trace"]["week"])  # not two weeks
    assert table["trace"]["shares"] == pytest.approx(1)
    assert table["trace"]["pairs"] == pytest.approx(np.corrcoef(mask[: len(on)].T)[np.triu_indices(3, 1)].mean())
    assert table["bernoulli"]["shares"] == pytest.approx(1, abs=0.01)
    # Client 0 and 1 change once in 12 rounds: 1 - 2/12 without the ends. Client 2: P(on|on) = 0, P(on) = 1/48.
    assert table["markov_pi_lambda"]["lag 1"] == pytest.approx((2 * (1 - 2 / 12) - 1 / 47) / 3, abs=0.02)
    assert table["bernoulli"]["lag 1"] == pytest.approx(0, abs=0.02)


def test_statistics_of_a_mask_by_hand():
    mask = np.array([[1, 0, 0], [1, 1, 0], [0, 0, 0], [0, 1, 0], [1, 0, 0], [0, 0, 0]], dtype=bool)
    intervals, staleness = waits(mask)
    assert intervals.tolist() == [1, 3, 2]
    assert staleness.tolist() == [0, 0, 0, 1, 1, 2, 0, 0, 1, 1, 2]  # round by round
    autocorrelation, between = correlations(mask)
    # Client 0, centred: + + - - + - halves: products + - + - -, over 5 pairs.
    assert autocorrelation[0] == pytest.approx(-1 / 5)
    np.testing.assert_allclose(between[:2, :2], np.corrcoef(mask[:, :2].T.astype(float)), atol=1e-14)
    assert np.isnan([autocorrelation[2], *between[2], *between[:, 2]]).all()
    # Client 0: variance 3/10 in each of 6 rounds. Client 2, never on: the error of the stated value counts.
    assert standard_errors(mask, np.array([0.3, 1 / 3, 0.0])) == pytest.approx(0.2 / 0.05**0.5)
    assert standard_errors(mask, np.array([0.5, 1 / 3, 0.5])) == pytest.approx(0.5 / (0.25 / 6) ** 0.5)
    assert standard_errors(mask, np.array([0.5, 1 / 3, 1.0])) == np.inf
    # The first of 21 rounds is left out of the error. A distance of up to one round in T is not infinite.
    later = np.array([1, *[0, 1] * 10], dtype=bool)[:, None]
    error = np.std([0, 1] * 10, ddof=1) / np.sqrt(20)
    assert standard_errors(later, np.array([0.5])) == pytest.approx((11 / 21 - 0.5) / error)
    never = np.zeros((21, 1), dtype=bool)
    never[0] = True  # once in 21 rounds, stated as 0
    assert standard_errors(never, np.array([0.0])) == 0.0
