"""The analyses behind single statements, against hand arithmetic, closed forms and other code."""

import math
from itertools import pairwise, product

import numpy as np
import pytest
import torch
from clients import Clients, rounds_of
from scipy import optimize
from separation_oracle import brute_separation, separation_chain

from rollcall.algorithms import FedPBC
from rollcall.benchmark.experiments.ca_fed import analyses as ca_fed
from rollcall.benchmark.experiments.fedpbc import analyses as fedpbc
from rollcall.benchmark.experiments.harrak import analyses as harrak
from rollcall.benchmark.experiments.sun import analyses as sun
from rollcall.participation import stream
from rollcall.participation.probabilities import class_shares, class_weights


def row(table):
    (found,) = table.to_dict("records")
    return found


def test_rho_of_k_of_m_is_the_closed_form():
    """E[W^2] = E[W] has the eigenvalues 1 and 1 - (k - 1)/(m - 1), so the bound 1 - (k/m)^2/8 fails at k = 1 only."""
    for m, k in ((3, 1), (4, 2), (5, 1), (6, 4)):
        found = row(fedpbc.gossip(0, probability=np.ones(m), at_once=k))
        assert found["rho"] == pytest.approx(1 - (k - 1) / (m - 1), abs=1e-12)
        assert found["bound"] == pytest.approx(1 - (k / m) ** 2 / 8)
        assert (found["excess"] > 0) == (k == 1)


def test_rho_of_independent_clients_by_hand():
    # Of two clients W averages if both are active, and is the identity otherwise: rho = 1 - p_1 p_2.
    found = row(fedpbc.gossip(0, probability=np.array([0.3, 0.9])))
    assert found["rho"] == pytest.approx(1 - 0.27)
    assert found["bound"] == pytest.approx(1 - 0.3**4 * (1 - 0.7**2) ** 2 / 8)
    assert found["stochastic"] == 0


@pytest.mark.parametrize("steps", [1, 3])
def test_fedpbc_bounds_are_those_of_the_method_over_all_roll_calls(steps):
    """Both sides of Theorem 1 and Lemma 4 from the method itself, over all sequences of active sets of three rounds."""
    u, h, p, lr, T = np.array([1.0, 4.0, -2.0]), np.array([1.0, 2.0, 1.5]), np.array([0.3, 0.8, 0.5]), 0.01, 3
    sets = [np.flatnonzero(on) for on in product([0, 1], repeat=3)]
    gradient = apart = 0.0
    for sequence in product(sets, repeat=T - 1):
        chance = np.prod([np.where(np.isin(range(3), A), p, 1 - p).prod() for A in sequence])
        run = rounds_of(FedPBC(), u[:, None], h, sequence, steps, lr)
        for models in (np.zeros((3, 1)), *(state.models.numpy() for *_, state in run)):
            gradient += chance * np.mean(h * (models.mean() - u)) ** 2 / T
            apart += chance * models.var() / T
    found = row(fedpbc.fedpbc_bounds(5, problem=np.stack([u, h, p]), lr=lr, rounds=T, steps=steps))
    assert found["gradient"] == pytest.approx(gradient, rel=1e-12)

    rho = row(fedpbc.gossip(0, probability=p))["rho"]
    best = (h * u).sum() / h.sum()
    beta2, zeta2 = 2 * h.var() / h.mean() ** 2, 2 * np.mean((h * (best - u)) ** 2)
    at = np.linspace(-50, 50, 101)[:, None]  # they do satisfy Assumption 5
    each, all_ = h * (at - u), np.mean(h * (at - u), axis=1)
    assert (((each - all_[:, None]) ** 2).mean(axis=1) <= beta2 * all_**2 + zeta2 + 1e-9).all()
    kappa = 0.0 if steps == 1 else (1.02**3 - 1 - 0.06) / (3 * 0.02**2)
    gap = (h * u**2).mean() / 2 - (h * (best - u) ** 2).mean() / 2
    theorem = 6 * gap / (lr * steps * T) + 54 * lr * steps * 2 * (kappa**2 * 4 + 1 + 1 / (1 - rho**0.5)) * zeta2
    assert found["stationary"] == pytest.approx(gradient / theorem, rel=1e-12)
    lemma = 54 * rho * (lr * steps) ** 2 / (1 - rho**0.5) ** 2 * (zeta2 + (beta2 + 1) * gradient)
    assert found["consensus"] == pytest.approx(apart / lemma, rel=1e-12)
    everyone = row(fedpbc.fedpbc_bounds(5, problem=np.stack([u, h, 0 * p + 1]), lr=lr, rounds=T, steps=steps))
    assert everyone["consensus"] == 0
    assert everyone["stationary"] > 0
    assert found["rate"] == pytest.approx(lr * 108 * 4 * steps**3 * (beta2 + 1) * (1 + kappa**2 * 4) / (1 - rho**0.5))

    x = best + 3 * u.std() * stream(5, "fedpbc bounds").standard_normal((1000, 3))
    after = Clients(u[:, None], h, steps, lr).sgd(torch.arange(3), torch.from_numpy(x.T)).numpy().T
    F = [(h * (points.mean(axis=1, keepdims=True) - u) ** 2).mean(axis=1) / 2 for points in (x, after)]
    squared = (h * (x.mean(axis=1, keepdims=True) - u)).mean(axis=1) ** 2
    bound = -lr * steps / 3 * squared + lr * steps * 4 * x.var(axis=1)
    bound += (lr * steps) ** 2 * 12 * zeta2 * (1 + kappa**2 * 4)
    assert found["descent"] == pytest.approx((F[1] - F[0] - bound).max())


def test_the_law_of_minimum_separation():
    p = np.array([0.25, 0.25, 0.5])
    pi = brute_separation(p, 1)
    assert pi == pytest.approx([0.3, 0.3, 0.4], abs=1e-9)  # [Sun] Proposition 3
    assert row(sun.separation_law(0, weights=p, separation=1))["distance"] == pytest.approx(2 / 15)
    assert row(sun.separation_law(0, weights=p, separation=1))["largest"] == pytest.approx(0.4)
    pairs = row(sun.separation_law(0, weights=p, separation=0, batch=2))
    # Products 1/16, 1/8, 1/8 of the three pairs: shares 3/10, 3/10, 4/10 of a draw.
    assert pairs["from_p"] == pytest.approx(0.2)
    assert pairs["scaled"] == pytest.approx(3 * 2 / 15)


def test_two_states_by_hand():
    found = row(ca_fed.two_states(0, stationary=np.array([0.1, 0.5]), correlation=np.array([0.0, 0.6])))
    assert found["keeps"] == pytest.approx(0.82)
    assert found["excess"] == pytest.approx(0, abs=1e-12)
    assert found["hitting"] == pytest.approx(10)
    # One client: the distance from pi after t rounds is max(pi, 1 - pi) lambda^t.
    alone = row(ca_fed.two_states(0, stationary=np.array([0.3]), correlation=np.array([0.9])))
    assert alone["mixing"] == np.ceil(np.log(0.01 / 0.7) / np.log(0.9))


@pytest.mark.parametrize(
    ("inside", "limit", "lost"),
    # Of 2 * 0.15 + 0.54 activities both of the first group's, with chance 0.3 * 0.25, are lost.
    [(0.95, None, 0.0), (np.array([0.5, 0.9]), 1, 2 * 0.075 / 0.84)],
)
def test_group_weights_by_enumeration(inside, limit, lost):
    """Three clients, two groups: every active set, with a limit after a collision of more than one, with its chance."""
    events, u, t, delta = np.array([0.3, 0.6]), np.array([2.0, 2.0, -1.0]), 3, 0.1
    of, law, alone = np.array([0, 0, 1]), {}, np.zeros(3)
    member = np.broadcast_to(inside, 2)[of]
    p = events[of] * member
    for mask in product([0, 1], repeat=3):
        sent = (0, 0, mask[2]) if limit and mask[:2] == (1, 1) else mask
        for on in product([0, 1], repeat=2):
            q = member * np.array(on)[of]
            chance = np.prod(np.where(on, events, 1 - events)) * np.prod(np.where(mask, q, 1 - q))
            law[sent] = law.get(sent, 0) + chance
        alone += np.prod(np.where(mask, p, 1 - p)) * np.array(mask) / max(sum(mask), 1)
    share = {sent: np.array(sent) / max(sum(sent), 1) for sent in law}
    c = sum(chance * share[sent] for sent, chance in law.items())
    unbiased = sum(chance * share[sent] @ ((u.mean() - u) / (3 * c)) for sent, chance in law.items())
    assert unbiased == pytest.approx(0, abs=1e-12)
    capped = np.maximum(c, delta)
    update = {sent: share[sent] @ ((u.mean() - u) / (3 * capped)) for sent in law}
    mean = sum(chance * update[sent] for sent, chance in law.items())
    below = np.zeros(3)  # P(mean of three rounds' weights <= delta)
    for path in product(law, repeat=t):
        mean_share = np.mean([share[sent] for sent in path], axis=0)
        below += np.prod([law[sent] for sent in path]) * (mean_share <= delta + 1e-12)
    options = {"sizes": (2, 1), "events": events, "inside": inside, "targets": u, "max_active": limit}
    found = row(harrak.group_weights(0, **options, rounds=t, delta=delta))
    assert found["sum"] == pytest.approx(c.sum())
    assert found["bias"] == pytest.approx(np.abs(c - 1 / 3).sum())
    assert found["unequal"] == pytest.approx(np.abs(c / c.sum() - 1 / 3).sum())
    assert found["correlated"] == pytest.approx(np.abs(c - alone).sum())
    assert found["train/bias"] == pytest.approx(c @ u / c.sum() - u.mean())
    assert found["spread"] == pytest.approx(sum(chance * (update[sent] - mean) ** 2 for sent, chance in law.items()))
    noise = sum(chance * ((share[sent] / (3 * capped)) ** 2).sum() for sent, chance in law.items())
    assert found["noise"] == pytest.approx(noise)
    assert found["update_variance"] == pytest.approx(found["spread"] + noise)
    assert found["tail"] == pytest.approx((below - 2 * np.exp(-2 * t * (c - delta) ** 2)).max())
    assert found["lost"] == pytest.approx(lost, abs=1e-12)


def by_paths(pi, eigenvalue, q, h, u, x0, rates):
    """x_T over all roll calls of two clients, each with its chance and its last active set."""
    on_on, off_on = 1 - (1 - eigenvalue) * (1 - pi), (1 - eigenvalue) * pi
    for path in product(product([0, 1], repeat=2), repeat=len(rates)):
        chance, x = np.prod(np.where(path[0], pi, 1 - pi)), x0
        for last, now in pairwise(path):
            p = np.where(last, on_on, off_on)
            chance *= np.prod(np.where(now, p, 1 - p))
        for active, eta in zip(path, rates, strict=True):
            x -= eta * sum(q[k] * h[k] * (x - u[k]) for k in range(2) if active[k])
        yield chance, x, path[-1]


def test_averaging_by_all_paths():
    pi, eigenvalue, u, weights = (np.array(v) for v in ([0.2, 0.7], [0.6, -0.3], [1.0, -2.0], [3.0, 1.0]))
    options = {"stationary": pi, "correlation": eigenvalue, "weights": weights, "targets": u, "rounds": 4}
    found = row(ca_fed.averaging(5, **options, lr=0.2, decay=0.5, start=3.0))
    h, q = np.exp(stream(5, "averaging").standard_normal(2) / 2), weights / (pi @ weights)
    outcomes = list(by_paths(pi, eigenvalue, q, h, u, 3.0, 0.2 / np.sqrt(1 + np.arange(4) / 10)))
    assert sum(chance for chance, _, _ in outcomes) == pytest.approx(1)
    x = sum(chance * x for chance, x, _ in outcomes)
    best, biased = h @ u / h.sum(), (pi * q * h) @ u / (pi * q * h).sum()
    assert found["limit"] == pytest.approx(x - biased)
    assert found["bias"] == pytest.approx(x - best)
    gap = {x: (h * (x - u) ** 2).mean() / 2 - (h * (best - u) ** 2).mean() / 2 for _, x, _ in outcomes}
    assert found["error"] == pytest.approx(sum(chance * gap[x] for chance, x, _ in outcomes))
    left = sum(chance * (x - biased) ** 2 for chance, x, _ in outcomes) / (3 - biased) ** 2
    assert found["left"] == pytest.approx(left)
    near = sum(chance * x for chance, x, last in outcomes if last[0]) / 0.2
    assert found["pull"] == pytest.approx((near - x) / (1 - x))
    # The direction sum q h (u - x) 1{active}: independent clients, mean 0.
    noise = sum(pi * (1 - pi) * (q * h * (u - biased)) ** 2)
    assert found["noise"] == pytest.approx(noise)
    assert found["gamma"] == pytest.approx(max(h * (best - u) ** 2) / 2)


@pytest.mark.parametrize("steps", [2, 4])
def test_local_drift_of_a_concave_quadratic_meets_the_bound(steps):
    """F = -L x^2 / 2: x_k = (1 + eta L)^k x_0, so the change adds up to L |x_0| sum_k ((1 + eta L)^k - 1), the bound itself."""
    found = row(fedpbc.local_drift(4, steps=steps, lr=0.1, draws=1))
    L = np.exp(stream(4, "local drift").standard_normal(1))[0]
    kappa = ((1 + 0.1 * L) ** steps - 1 - steps * 0.1 * L) / (steps * (steps - 1) / 2 * (0.1 * L) ** 2)  # as printed
    assert found["kappa"] == pytest.approx(kappa, rel=1e-9)
    change = L * sum((1 + 0.1 * L) ** k - 1 for k in range(steps))
    assert change == pytest.approx(kappa * 0.1 * steps * (steps - 1) / 2 * L * L, rel=1e-9)
    assert found["drift"] == pytest.approx(1, rel=1e-12)
    many = row(fedpbc.local_drift(4, steps=steps, lr=0.1, draws=500))
    assert many["drift"] == pytest.approx(1, rel=1e-9)  # the first function is the worst one
    assert many["falls"] <= 0
    assert many["kappa"] >= 1


@pytest.mark.parametrize(("sizes", "inside"), [((1, 1), 1.0), ((2, 1), 0.7)])
def test_fedsgd_bounds_by_enumeration(sizes, inside):
    """Theorem 1's right side: c and E[1/a^2] by all events of the groups and all clients inside them."""
    e, T, M = np.array([0.4, 0.8]), 25, sum(sizes)
    u = np.array([1.0, 3.0, 2.0])[:M]
    group = np.repeat([0, 1], sizes)
    law = []
    for event in product([0, 1], repeat=2):
        for on in product([0, 1], repeat=M):
            active = np.array(event)[group] * on
            chance = np.prod(np.where(event, e, 1 - e)) * np.prod(np.where(on, inside, 1 - inside))
            law.append((chance, active / max(active.sum(), 1)))
    c, square = (sum(p * weight**k for p, weight in law) for k in (1, 2))
    sigma2 = M * 0.5 * (square - c**2).max()
    x = np.linspace(-1, 5, 60_001)[:, None]
    gap = np.log(1 + u**2 / 2).mean() - np.log(1 + (x - u) ** 2 / 2).mean(axis=1).min()
    floor = M * 0.5 * ((1 / M - c) ** 2).sum()
    found = row(harrak.fedsgd_bounds(0, sizes=sizes, events=e, inside=inside, targets=u, rounds=T, delta=0.3))
    assert found["floor"] == pytest.approx(floor)
    assert found["bound"] == pytest.approx(2 * gap / 5 + 2 * M * sigma2 / 5 + floor, abs=1e-6)
    guess = np.maximum(c, 0.3)  # of the first group only
    assert (c < 0.3).tolist() == [True] * sizes[0] + [False]
    left = M * 0.5 * ((1 / M - c / (M * guess)) ** 2).sum()
    assert found["left"] == pytest.approx(left)
    assert found["weighted"] == pytest.approx(2 * gap / 5 + 2 * sigma2 / (M * 0.3**2) / 5 + left, abs=1e-6)


def test_theorem_1_with_a_bound_for_the_mean_only():
    """The round by round recursion with the drawn clients, and the bound with sigma^2 / M = (1 + slope)^2 / 4, M = 2."""
    found = row(harrak.theorem1_gradient(3, rounds=400, slope=2.0))
    u, x, squares = stream(3, "theorem 1").random(400), 0.0, []
    for one in u:
        slope = x / (1 + x**2) ** 0.5
        squares.append(slope**2)
        x -= (slope + 2.0) / 20 if one < 0.6 else (slope - 2.0) / 20
    assert found["gradient"] == pytest.approx(np.mean(squares), rel=1e-12)
    sigma2 = 2 * (1 + 2.0) ** 2 / 4
    assert found["bound"] == pytest.approx(2 * 2 * 1 * sigma2 / 20 + 2 * 1 * (0.1**2 + 0.1**2), rel=1e-12)


@pytest.mark.parametrize(
    ("weights", "R"), [([1, 1, 1, 1, 1], 2), ([1, 2, 5, 9], 1), ([1, 2, 5, 9], 2), ([1, 1, 2, 3, 8], 3)]
)
def test_mixing_time_of_minimum_separation_by_powers_of_the_chain(weights, R):
    """Its law after t rounds is a power of the oracle's matrix; the long-run law is a power so large that it stays."""
    states, P, _ = separation_chain(np.array(weights) / sum(weights), R, 1)
    full = [x for x, state in enumerate(states) if len(state) == R]
    P = P[np.ix_(full, full)]
    limit = np.linalg.matrix_power(P, 4096)
    assert np.ptp(limit, axis=0).max() < 1e-9
    apart = [np.abs(np.linalg.matrix_power(P, t) - limit).sum(axis=1).max() / 2 for t in range(1, 200)]
    found = row(sun.separation_mixing_time(0, weights=np.array(weights), separation=R))["mixing"]
    assert found == next(t for t, distance in enumerate(apart, start=1) if distance <= 1 / 4)
    assert found >= R
    assert min(apart[: R - 1], default=1) >= 1 - 1 / (R + 1)  # the erratum's argument


@pytest.mark.parametrize(("N", "R"), [(3, 1), (5, 2), (6, 4)])
def test_slowest_mode_against_the_chain(N, R):
    """The enumerated laws of the drawn unit obey the recurrence of the docstring; by Gelfand its slowest factor."""
    states, P, draws = separation_chain(np.ones(N) / N, R)
    law, laws = np.eye(len(states))[next(x for x, state in enumerate(states) if len(state) == R)], []
    for _ in range(40):
        laws.append(law @ draws)
        law = law @ P
    a = np.array(laws)
    assert a[R:] == pytest.approx((1 - sum(a[R - k : len(a) - k] for k in range(1, R + 1))) / (N - R))
    companion = np.eye(R, k=-1)
    companion[0] = -1 / (N - R)
    gelfand = np.linalg.norm(np.linalg.matrix_power(companion, 256)) ** (1 / 256)
    assert row(sun.separation_slowest_mode(0, separation=R, units=N))["slowest"] == pytest.approx(gelfand, rel=0.02)


@pytest.mark.parametrize(("units", "R", "B"), [(3, 1, 1), (5, 2, 1), (4, 3, 1), (6, 1, 2), (4, 1, 2)])
def test_states_of_minimum_separation_against_the_chain(units, R, B):
    """The chain that the oracle enumerates from the start: sets in order, here as lists of clients, B! for each set."""
    states, P, _ = separation_chain(np.ones(units) / units, R, B)
    full = [x for x, state in enumerate(states) if len(state) == R]
    P = P[np.ix_(full, full)] > 0
    found = row(sun.separation_states(0, units=units, separation=R, batch=B))
    assert found["states"] == pytest.approx(1)
    formula = math.prod(math.perm(B * (units // B - k), B) for k in range(R))
    assert len(full) * math.factorial(B) ** R == formula
    assert P.sum(axis=1).max() * math.factorial(B) == found["nonzero"] * math.perm(units - B * R, B)
    assert P.sum(axis=0).max() * math.factorial(B) == found["columns"] * math.perm(units - B * R, B)
    one = np.linalg.matrix_power(np.eye(len(full)) + P, len(full))[0] > 0  # what the first state leads to
    assert found["reached"] == pytest.approx(one.mean())
    reached = np.flatnonzero(one)
    again = [t for t in range(1, 30) if np.linalg.matrix_power(P[np.ix_(reached, reached)].astype(float), t)[0, 0] > 0]
    assert found["period"] == math.gcd(*again)


def test_bounds_on_the_error_one_draw_after_another():
    """The drawn quadratics again; their minima by SciPy's scalar search, and the bounds in loops."""
    draw, n = stream(5, "error bounds"), 4
    u, h = draw.standard_normal((n, 3)), np.exp(draw.standard_normal((n, 3)))
    alpha, p, x = draw.dirichlet(np.ones(3), n), draw.dirichlet(np.ones(3), n), 2 * draw.standard_normal(n)
    columns = {name: [] for name in row(ca_fed.error_bounds(5, draws=n)) if name != "round"}
    for i in range(n):

        def F(weights, at, i=i):
            return sum(weights[k] * h[i][k] * (at - u[i][k]) ** 2 / 2 for k in range(3))

        def minimiser(weights, F=F):
            return optimize.minimize_scalar(lambda at: F(weights, at), bracket=(-3, 3), tol=1e-12).x

        def gamma(weights, i=i, minimiser=minimiser):
            return max(h[i][k] * (minimiser(weights) - u[i][k]) ** 2 / 2 for k in range(3))

        def distance(weights, i=i):
            return sum(abs(alpha[i][k] - weights[k]) for k in range(3)) / 2

        kappa, best = max(h[i]) / min(h[i]), F(alpha[i], minimiser(alpha[i]))
        optimisation = F(p[i], x[i]) - F(p[i], minimiser(p[i]))
        error, bias = F(alpha[i], x[i]) - best, F(alpha[i], minimiser(p[i])) - best
        chi = sum((alpha[i][k] - p[i][k]) ** 2 / p[i][k] for k in range(3))
        guided, other = (np.array([0, w[1], w[2]]) / (w[1] + w[2]) for w in (alpha[i], p[i]))
        columns["as_copied"].append(1 - (2 * kappa**2 * optimisation + bias) / error)
        columns["on_both"].append(1 - 2 * kappa**2 * (optimisation + bias) / error)
        columns["chi_square"].append(1 - kappa**2 * chi * gamma(alpha[i]) / bias)
        columns["total_variation"].append(1 - 4 * kappa**2 * distance(p[i]) ** 2 * gamma(p[i]) / bias)
        columns["guideline"].append(distance(guided) - distance(other))
        columns["guideline_bound"].append(distance(guided) ** 2 * gamma(guided) - distance(other) ** 2 * gamma(other))
    found = row(ca_fed.error_bounds(5, draws=n))
    assert {name: found[name] for name in columns} == pytest.approx({k: max(v) for k, v in columns.items()}, rel=1e-6)


def test_the_best_weights_for_equation_13_are_those_of_its_gradient():
    """Found by another search, with no weight at 0; there the gradient on the simplex is one number for all clients."""
    pi = np.array([0.9, 0.7, 0.5, 0.4])
    for power in (0, 1):

        def value(q, power=power):
            return (1000 * pi**power * q**2).sum() / 2 + 3, q @ pi

        best = min_on_simplex(lambda q, value=value: value(q)[0] / value(q)[1], 4)
        found = row(ca_fed.weight_bounds(0, stationary=pi, noise=1000.0, floor=3.0, power=power))
        assert found["rarest"] == pytest.approx(best[3] - best[0], abs=1e-5)
        line = np.polyfit(pi, best, 1)
        assert found["curved"] == pytest.approx(np.abs(best - np.polyval(line, pi)).max(), abs=1e-5)
        # The gradient of N/D on the simplex: (1000 pi^power q - (N/D) pi) / D is the same number for all clients.
        N, D = value(best)
        slope = (1000 * pi**power * best - N / D * pi) / D
        assert np.ptp(slope) < 1e-3 * np.abs(slope).max()


def min_on_simplex(f, n):
    """The minimiser by a softmax of free numbers, with SciPy's Nelder-Mead."""

    def of(z):
        q = np.exp(z - z.max())
        return q / q.sum()

    found = optimize.minimize(
        lambda z: f(of(z)),
        np.zeros(n),
        method="Nelder-Mead",
        options={"xatol": 1e-10, "fatol": 1e-14, "maxiter": 20_000, "maxfev": 20_000},
    )
    return of(found.x)


def test_class_coupling_by_loops():
    """r, nu and p from their definitions, with plain loops."""
    found = row(fedpbc.class_coupling(3, clients=7, classes=4, sigma0=2.0, alpha=0.5, delta=0.2, gamma=0.3))
    r, nu = class_weights(3, 4, 2.0), class_shares(3, 7, 4, 0.5)
    base = [sum(r[c] * nu[i][c] for c in range(4)) for i in range(7)]
    p = [max(0.2, one) for one in base]
    assert found["first_two"] == pytest.approx(sum(sorted(r)[-2:]))
    assert found["two"] == pytest.approx(sum(sum(sorted(own)[-2:]) for own in nu) / 7)
    assert found["largest"] == pytest.approx(max(r))
    middle = sum(base) / 7
    assert found["spread"] == pytest.approx((sum((one - middle) ** 2 for one in base) / 7) ** 0.5 / middle)
    assert (found["least"], found["most"]) == pytest.approx((min(p), max(p)))
    lowest = min(p[i] * (0.7 + 0.3 * np.sin(2 * np.pi * t / 40)) for i in range(7) for t in range(40))
    assert found["slack"] == pytest.approx(lowest - 0.2 * 0.4, abs=1e-12)
    means = [sum(nu[i][c] for i in range(7)) / 7 for c in range(4)]
    apart = [sum(abs(nu[i][c] - means[c]) for c in range(4)) / 2 for i in range(7)]
    assert found["unlike"] == pytest.approx(sum(apart) / 7)
