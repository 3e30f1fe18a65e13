"""Every model against the availability and the memory that its paper states, computed here by hand.

The clients of a case are alike in groups, and the estimate is the mean over a group, so that its standard error is
small enough to see a rule that is a tenth off; each case asserts that too.
"""

from itertools import combinations, permutations

import numpy as np
import pytest
from scipy.stats import multivariate_normal, norm
from separation_oracle import brute_separation

from rollcall.participation import MODELS, Population
from rollcall.participation.independent import successive
from rollcall.participation.minimum_separation import product
from rollcall.participation.probabilities import sine, staircase
from rollcall.participation.recording import record


def lag_one(mask):
    x = mask - mask.mean(axis=0)
    return (x[1:] * x[:-1]).mean(axis=0) / x.var(axis=0)


def agree(values, expected, power=True):
    """The mean over independent clients is within 4 standard errors, which are small enough to see a tenth."""
    mean, se = values.mean(), values.std(ddof=1) / np.sqrt(len(values))
    assert abs(mean - expected) < 4 * se + 1e-12, (mean, expected, se)
    if power:
        assert 0.1 * abs(expected) > 4 * se, "the test would not see a tenth"


# name, options, pi, lambda; all clients alike.
ALIKE = [
    ("bernoulli", {"probability": 0.3}, 0.3, 0),
    ("active", {"probability": 0.3}, 0.3, 0),
    # q* = 0.05, q = 0.05 * 0.8 / 0.2 = 0.2, lambda = 0.75.
    ("markov", {"probability": 0.2}, 0.2, 0.75),
    # 0.05 * 0.9 > 0.045 just not: q = 0.05 * 0.95 / 0.05 = 0.95, lambda = 0.
    ("markov", {"probability": 0.05}, 0.05, 0),
    # 0.05 * 0.96 > 0.04: q = 1, q* = 0.04 / 0.96, lambda = -1 / 24.
    ("markov", {"probability": 0.04}, 0.04, -1 / 24),
    # q* = 1, q = 0.4 / 0.6, lambda = -2/3.
    ("markov", {"probability": 0.6, "off_on": 1.0}, 0.6, -2 / 3),
    ("markov_pi_lambda", {"probability": 0.2, "correlation": 0.6}, 0.2, 0.6),
    ("markov_pi_lambda", {"probability": 0.6, "correlation": -0.5}, 0.6, -0.5),
    ("copula", {"probability": 0.3, "rho": 0.0}, 0.3, 0),
    ("cyclic", {"probability": 0.3, "length": 10}, 0.3, None),
    ("cyclic_reset", {"probability": 0.3, "length": 10}, 0.3, None),
    ("cyclic_reset", {"probability": 0.5, "length": 10, "frozen_duty": True}, 0.3, None),
]


@pytest.mark.parametrize(("name", "options", "pi", "eigenvalue"), ALIKE)
def test_availability_and_memory(name, options, pi, eigenvalue):
    m, T = 400, 3000
    model = MODELS[name](Population(m, seed=5), **options)
    mask = record(model, T)
    exact = np.ptp(mask.sum(axis=0)) <= 10  # by the clock: off by less than a cycle
    if exact:
        assert mask.mean() == pytest.approx(pi, abs=10 / T)
    else:
        agree(mask.mean(axis=0), pi)
    assert model.stationary == pytest.approx(np.full(m, pi))
    assert model.probability(3) == pytest.approx(np.full(m, pi))
    if eigenvalue is None:
        assert model.correlation is None
        return
    assert model.correlation == pytest.approx(np.full(m, eigenvalue), abs=1e-12)
    # The estimate of lambda is biased by about -(1 + 4 lambda) / T (Marriott and Pope 1954).
    agree(lag_one(mask) + (1 + 4 * eigenvalue) / T, eigenvalue, power=abs(eigenvalue) > 0.1)
    # The very first rounds obey the same law: the chains start stationary.
    first = record(MODELS[name](Population(40_000, seed=6), **options), 2).astype(float)
    se = np.sqrt(pi * (1 - pi) / 40_000)
    assert (np.abs(first.mean(axis=1) - pi) < 4 * se).all()


@pytest.mark.full
def test_markov_varying_tracks_with_the_lag_of_its_chain():
    m, T, p = 5000, 60, 0.5
    model = MODELS["markov_varying"](Population(m, seed=1), probability=p, off_on=0.3)
    share = record(model, T).mean(axis=1)
    mu = 0.5 * 0.6  # p^0 = p (1 - gamma)
    for t in range(T):
        now = p * (0.6 + 0.4 * np.sin(2 * np.pi * t / 40))
        assert np.allclose(model.probability(t), now, rtol=0, atol=1e-12)
        q_star, q = (0.3, 0.3 * (1 - now) / now) if 0.3 * (1 - now) <= now else (now / (1 - now), 1)
        mu = mu * (1 - q) + (1 - mu) * q_star
        assert abs(share[t] - mu) < 4.5 * np.sqrt(mu * (1 - mu) / m)
    assert model.stationary is None


@pytest.mark.parametrize(
    ("variation", "factor"),
    [(sine, lambda t: 0.6 + 0.4 * np.sin(2 * np.pi * t / 40)), (staircase, lambda t: 1.0 if t % 40 < 20 else 0.4)],
)
def test_bernoulli_follows_a_variation(variation, factor):
    m = 20_000
    model = MODELS["bernoulli"](Population(m, seed=2), probability=0.3, variation=variation)
    expected = np.array([0.3 * factor(t) for t in range(80)])
    assert np.stack([model.probability(t)[0] for t in range(80)]) == pytest.approx(expected)
    assert model.stationary == pytest.approx(np.full(m, expected.mean()))
    share = record(model, 80).mean(axis=1)
    assert (np.abs(share - expected) <= 4.5 * np.sqrt(expected * (1 - expected) / m)).all()


def test_variations_have_a_mean_where_they_have_a_period():
    p = np.array([0.0, 0.2, 1.0])
    assert MODELS["bernoulli"](Population(3), probability=p, variation=sine).stationary == pytest.approx(0.6 * p)
    # Clipped: max(0, sin) has mean cot(pi / P) / P over a period of P rounds (P a multiple of 2).
    deep = MODELS["bernoulli"](Population(3), probability=p, variation=lambda p, t, *, period=40: sine(p, t, gamma=1.0))
    assert deep.stationary == pytest.approx(p / np.tan(np.pi / 40) / 40)
    assert MODELS["bernoulli"](Population(3), probability=p, variation=lambda p, t: p / (t + 1)).stationary is None
    each = MODELS["bernoulli"](Population(3), probability=p, variation=lambda p, t: 0.5 if t % 2 else 0.1)
    assert each.probability(1).tolist() == [0.5] * 3  # one number for all clients
    for model in ("bernoulli", "markov_varying"):
        with pytest.raises(ValueError, match=r"variation: 1.2 \(client 2\) is not allowed; must be in \[0, 1\]"):
            MODELS[model](Population(3), probability=p, variation=lambda p, t: 1.2 * p)
    with pytest.raises(ValueError, match=r"variation.gamma: 1.5 .*\[0, 1\]"):
        sine(p, 0, gamma=1.5)
    with pytest.raises(ValueError, match=r"variation\.period: 0"):
        staircase(p, 0, period=0)


def successive_law(q, B):
    """Each set's probability, summed over the orders in which it can be drawn."""
    law = {}
    for order in permutations(range(len(q)), B):
        chance, left = 1.0, sum(q)
        for i in order:
            chance, left = chance * q[i] / left, left - q[i]
        law[tuple(sorted(order))] = law.get(tuple(sorted(order)), 0) + chance
    return law


def product_law(q, B):
    weight = {s: np.prod([q[i] for i in s]) for s in combinations(range(len(q)), B)}
    return {s: w / sum(weight.values()) for s, w in weight.items()}


def assert_law(seen, law):
    for s, chance in law.items():
        se = np.sqrt(chance * (1 - chance) / len(seen))
        assert abs(seen.count(s) / len(seen) - chance) < 4 * se + 1e-12, (s, chance)
    assert set(seen) <= {s for s, chance in law.items() if chance > 0}


@pytest.mark.parametrize(("name", "q"), [("weighted", [0.5, 0.2, 0.9, 0.0]), ("uniform", [1.0] * 5)])
def test_two_of_all_clients(name, q):
    options = {"probability": np.array(q)} if name == "weighted" else {}
    model = MODELS[name](Population(len(q), seed=3), per_round=2, **options)
    assert_law([tuple(model.active(t)) for t in range(8000)], successive_law(q, 2))
    expected = [None, None] if name == "weighted" else [pytest.approx([0.4] * 5)] * 2
    assert [model.stationary, model.probability(0)] == expected


@pytest.mark.parametrize(
    ("draw", "law", "w", "B"),
    [
        (product, product_law, [0.5, 0.2, 0.9, 0.4], 2),
        (product, product_law, [1.0, 1e-4, 2e-4, 3e-4], 3),  # draws never differ: by symmetric polynomials
        (product, product_law, [0.5, 0.2], 2),
        (successive, successive_law, [0.5, 0.2, 0.9, 0.4], 3),
    ],
)
def test_laws_of_a_set(draw, law, w, B):
    rng = np.random.default_rng(0)
    assert_law([tuple(sorted(draw(np.array(w), B, rng).tolist())) for _ in range(6000)], law(w, B))


def test_only_the_proportions_of_weights_matter():
    for small in (1e-320, 2.0**-1000, 1.0):
        draws = [successive(small * np.array([3.0, 1.0, 2.0]), 2, np.random.default_rng(seed)) for seed in range(40)]
        assert np.array_equal(
            draws, [successive(np.array([3.0, 1.0, 2.0]), 2, np.random.default_rng(i)) for i in range(40)]
        )


@pytest.mark.parametrize("R", [0, 1, 3, [0, 2, 1, 0]])
def test_minimum_separation(R):
    p, T = np.array([0.8, 0.5, 0.3, 0.2]), 7500
    separation = R if isinstance(R, int) else np.array(R)
    expected = brute_separation(p, separation)
    model = MODELS["minimum_separation"](Population(8, seed=1), probability=p, separation=separation, groups=4)
    mask = record(model, T)
    assert (mask[:, ::2] == mask[:, 1::2]).all()  # groups of two, contiguous
    units = mask[:, ::2]
    assert (units.sum(axis=1) == 1).all()
    for i, r in enumerate(np.broadcast_to(R, 4)):
        assert np.diff(np.flatnonzero(units[:, i])).min() == r + 1
    batches = units.reshape(100, -1, 4).mean(axis=1)  # 75 rounds forget the past
    se = batches.std(axis=0, ddof=1) / 10
    assert (np.abs(units.mean(axis=0) - expected) < 4.5 * se + 2 / T).all()
    assert (0.1 * expected > 4.5 * se)[expected > 0.25].all()
    assert model.stationary == (pytest.approx(np.repeat(expected, 2), abs=1e-3) if isinstance(R, int) else None)
    # With R > 0 the probability of a round depends on earlier rounds.
    assert model.probability(7) == (pytest.approx(np.repeat(p / p.sum(), 2)) if R == 0 else None)


def test_clustered_markov_is_one_chain_a_cluster():
    model = MODELS["clustered_markov"](Population(20, seed=1))
    T = 12_000
    mask = record(model, T)
    assert (mask[:, ::2] == mask[:, 1::2]).all()
    clusters = mask[:, ::2]
    pi = np.array([0.9] * 5 + [0.1] * 5)
    eigenvalue = np.array([0, 0, 0, 0, 0, 0.5, 0.6, 0.7, 0.8, 0.9])
    se = np.sqrt(pi * (1 - pi) * (1 + eigenvalue) / (1 - eigenvalue) / T)
    assert (np.abs(clusters.mean(axis=0) - pi) < 4 * se).all()
    assert (0.1 * pi > 4 * se)[:5].all()
    assert (np.abs(lag_one(clusters) - eigenvalue) < 4 * np.sqrt(1 / T) + 0.02).all()
    assert model.stationary == pytest.approx(np.repeat(pi, 2))
    assert model.correlation == pytest.approx(np.repeat(eigenvalue, 2))
    between = np.corrcoef(clusters.T)[np.triu_indices(10, 1)]
    assert (np.abs(between) < 0.13).all()


@pytest.mark.parametrize(("reading", "limit"), [("collision", 1), ("cap", 3), ("collision", None)])
def test_group_events(reading, limit):
    model = MODELS["group_events"](
        Population(10, seed=2), max_active=limit, reading=reading, inside=np.array([0.7, 0.6, 0.7])
    )
    expected = []
    for n, e, inside in ((3, 0.3, 0.7), (4, 0.6, 0.6), (3, 0.3, 0.7)):
        share = 0.0
        for bits in range(2**n):  # every pattern of the members; the one looked at is member 0
            k = bits.bit_count()
            chance = inside**k * (1 - inside) ** (n - k)
            if bits & 1 and (limit is None or k <= limit):
                share += chance
            elif bits & 1 and reading == "cap":
                share += chance * limit / k
        expected += [e * share] * n
    expected = np.array(expected)
    assert model.stationary == pytest.approx(expected)
    T = 4000
    mask = record(model, T)
    assert (np.abs(mask.mean(axis=0) - expected) < 4.5 * np.sqrt(expected * (1 - expected) / T)).all()
    assert np.abs(lag_one(mask)).max() < 4.5 / np.sqrt(T)
    counts = np.stack([mask[:, g].sum(axis=1) for g in (slice(0, 3), slice(3, 7), slice(7, 10))])
    assert counts.max(axis=1).tolist() == [min(n, limit or n) for n in (3, 4, 3)]
    assert np.abs(np.corrcoef(counts)[np.triu_indices(3, 1)]).max() < 4.5 / np.sqrt(T)


def test_copula_keeps_marginals_and_correlates():
    p, rho, T = np.array([0.3, 0.3, 0.6, 0.1]), 0.5, 15_000
    model = MODELS["copula"](Population(4, seed=1), probability=p, rho=rho)
    mask = record(model, T)
    assert (np.abs(mask.mean(axis=0) - p) < 4 * np.sqrt(p * (1 - p) / T)).all()
    for i, j in combinations(range(4), 2):
        both = multivariate_normal(cov=[[1, rho], [rho, 1]]).cdf(norm.ppf(p[[i, j]]))
        se = np.sqrt(both * (1 - both) / T)
        assert abs((mask[:, i] & mask[:, j]).mean() - both) < 4 * se
        if both > 0.1:
            assert 0.1 * both > 4 * se
    assert np.abs(lag_one(mask)).max() < 4 / np.sqrt(T)


def test_active_redraws_an_empty_round():
    p = np.array([0.5, 0.0, 0.6])
    model = MODELS["active"](Population(3, seed=1), probability=p, redraw_if_empty=True)
    seen = [tuple(model.active(t)) for t in range(8000)]
    some = 1 - 0.5 * 0.4
    assert_law(seen, {(0,): 0.5 * 0.4 / some, (2,): 0.5 * 0.6 / some, (0, 2): 0.5 * 0.6 / some})
    assert model.stationary == pytest.approx(p / some)
    rare = MODELS["active"](Population(10, seed=1), probability=1e-12, redraw_if_empty=True)
    assert [len(rare.active(t)) for t in range(50)] == [1] * 50
    assert rare.stationary == pytest.approx(np.full(10, 0.1))


def test_cyclic_offsets():
    # on = 3, off = 7: offset 0..6, all alike; then 3 on and 7 off. With a reset, again in each cycle.
    m = 7000
    mask = record(MODELS["cyclic"](Population(m, seed=1), probability=0.3, length=10), 40)
    cycles = record(MODELS["cyclic_reset"](Population(m, seed=1), probability=0.3, length=10), 20).reshape(2, 10, m)
    t = np.arange(40)[:, None] - mask.argmax(axis=0)
    assert (mask == ((t >= 0) & (t % 10 < 3))).all()
    for cycle in cycles:  # no cycle is cut short
        t = np.arange(10)[:, None] - cycle.argmax(axis=0)
        assert (cycle == ((t >= 0) & (t < 3))).all()
    firsts = [mask.argmax(axis=0), *cycles.argmax(axis=1)]
    for first in firsts:
        assert (np.abs(np.bincount(first, minlength=7) - m / 7) < 4.5 * np.sqrt(m / 7 * 6 / 7)).all()
    assert abs(np.corrcoef(firsts[1:])[0, 1]) < 4 / np.sqrt(m)


def test_population_of_ca_fed():
    model = MODELS["markov_pi_lambda"](Population(100, seed=2))
    assert model.stationary.tolist() == [0.9] * 50 + [0.5 - 0.4] * 50
    eigenvalue = model.correlation.reshape(4, 25)
    assert eigenvalue[[0, 2]].tolist() == [[0.9] * 25] * 2
    drawn = eigenvalue[[1, 3]].ravel()
    assert abs(drawn.mean()) < 4 * 0.01 / np.sqrt(50)
    assert 0.006 < drawn.std() < 0.014
    rare = MODELS["markov_pi_lambda"](Population(100, seed=2), lasting="rare").correlation
    assert (rare == 0.9).tolist() == [False] * 50 + [True] * 25 + [False] * 25
    # Near 0 or 1 few lambda below 0 are possible: with pi = 0.999 none below -0.001/0.999.
    extreme = MODELS["markov_pi_lambda"](Population(100, seed=2), probability=np.repeat([0.999, 0.001], 50))
    free = extreme.correlation.reshape(4, 25)[[1, 3]].ravel()
    assert free == pytest.approx(np.maximum(drawn, -0.001 / 0.999), abs=1e-12)
    assert free.min() < 0


@pytest.mark.parametrize(
    ("name", "options", "complaint"),
    [
        ("uniform", {"per_round": 11}, r"per_round: 11 .*\[1, 10\]"),
        ("markov", {"probability": 0.5, "off_on": 0.0}, r"off_on: 0 .*\(0, 1\]"),
        ("markov_pi_lambda", {"probability": 0.9, "correlation": np.eye(10)[3] * -0.2}, r"correlation: -0.2 \(client 3, whose pi is 0.9\).*\[-0.111111, 1\)"),
        ("markov_pi_lambda", {"correlation": np.zeros(3)}, r"correlation: shape \(3,\).*\[10\]"),
        ("minimum_separation", {"probability": 0.5, "separation": 10}, r"separation: 10 .*\[0, 9\]"),
        ("minimum_separation", {"probability": 0.5, "separation": 3, "per_round": 3}, r"separation: 3 .*in \[0, 2\]"),
        (
            "minimum_separation",  # two are drawn from four: all four may wait
            {"probability": np.repeat([1, 0], [4, 6]), "separation": np.array([3, 3, 1, 1] + [0] * 6), "per_round": 2},
            r"separation: \[3.* leave 2 of the 4 units",
        ),
        ("minimum_separation", {"probability": 0.5, "separation": 0, "groups": 3}, "groups: 3 .*divisor of the 10"),
        ("clustered_markov", {"probability": 0.9, "correlation": -0.5}, r"correlation: -0.5 \(cluster 0"),
        ("cyclic_reset", {"probability": 0.5, "gamma": 0.2}, "gamma: 0.2 is not allowed without frozen_duty, where it has"),
        ("markov_pi_lambda", {"correlation": 0.5, "nu": 0.2}, "nu: 0.2 is not allowed beside correlation"),
        ("markov_varying", {"probability": 0.5, "restart_each_round": True, "off_on": 0.2}, "off_on: 0.2 .*no effect"),
        ("cyclic", {"probability": 0.5, "length": 10**19}, "length: .* is not allowed"),
        ("group_events", {"reading": "cap"}, "reading: cap is not allowed without max_active"),
        ("group_events", {"sizes": (3, 4)}, r"sizes: \[3, 4\].*add up to 10"),
    ],
)  # fmt: skip
def test_what_is_refused(name, options, complaint):
    with pytest.raises(ValueError, match=complaint):
        MODELS[name](Population(10), **options)


@pytest.mark.parametrize(
    ("name", "options"),
    [("bernoulli", {"probability": np.linspace(0.1, 0.8, 10)}), ("group_events", {"max_active": 2, "reading": "cap"})],
)
def test_the_stated_share_is_the_measured_one(name, options):
    """c_i = E[1{i in A} / |A|]; `participation.weights` is tested against enumeration."""
    T = 6000
    model = MODELS[name](Population(10, seed=4), **options)
    mask = record(model, T)
    weights = mask / np.maximum(mask.sum(axis=1, keepdims=True), 1)
    error = weights.std(axis=0) / np.sqrt(T)
    assert (np.abs(weights.mean(axis=0) - model.share) < 4.5 * error + 1e-12).all()
