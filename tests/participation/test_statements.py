"""The analyses behind single statements, against hand arithmetic, closed forms and other code."""

from functools import partial
from itertools import product

import numpy as np
import pytest
import torch

from rollcall.algorithms import FedPBC, Round
from rollcall.participation import Cyclic, GroupEvents, Markov, statements
from rollcall.participation.streams import stream
from rollcall.participation.theory.separation import chain_separation, separation_chain


def row(table):
    (found,) = table.to_dict("records")
    return found


def test_rho_of_k_of_m_is_the_closed_form():
    """E[W^2] = E[W] has the eigenvalues 1 and 1 - (k - 1)/(m - 1), so the bound 1 - (k/m)^2/8 fails at k = 1 only."""
    for m, k in ((3, 1), (4, 2), (5, 1), (6, 4)):
        found = row(statements.gossip(0, probability=np.ones(m), at_once=k))
        assert found["rho"] == pytest.approx(1 - (k - 1) / (m - 1), abs=1e-12)
        assert found["bound"] == pytest.approx(1 - (k / m) ** 2 / 8)
        assert (found["excess"] > 0) == (k == 1)


def test_rho_of_independent_clients_by_hand():
    # Of two clients W averages if both are active, and is the identity otherwise: rho = 1 - p_1 p_2.
    found = row(statements.gossip(0, probability=np.array([0.3, 0.9])))
    assert found["rho"] == pytest.approx(1 - 0.27)
    assert found["bound"] == pytest.approx(1 - 0.3**4 * (1 - 0.7**2) ** 2 / 8)
    assert found["stochastic"] == 0


def test_the_disagreement_of_two_clients_by_hand():
    """Two clients agree after the first round in which both are active: E||B (W_1 ... W_t - J)||^2 = rho^t."""
    assert row(statements.gossip(0, probability=np.array([0.3, 0.9])))["decay"] == pytest.approx(0, abs=1e-15)
    # Of three clients all or none (rho = 1 - c) would be as slow; W as a projection makes other cases faster.
    assert row(statements.gossip(0, probability=np.array([0.3, 0.9, 0.4])))["decay"] <= 1e-15


class Steps:
    """Exact local steps on F_i = h_i (x - u_i)^2 / 2."""

    def __init__(self, u, h, lr, steps):
        self.u, self.h, self.lr, self.steps = (torch.tensor(u), torch.tensor(h), lr, steps)

    def sgd(self, clients, x, *, scale=None, correct=None):
        for _ in range(self.steps):
            x = x - self.lr * self.h[clients][:, None] * (x - self.u[clients][:, None])
        return x

    gradients = steps_of = losses = sgd  # FedPBC needs none of them


@pytest.mark.parametrize("steps", [1, 3])
def test_fedpbc_bounds_are_those_of_the_method_over_all_roll_calls(steps):
    """Both sides of Theorem 1 and Lemma 4 from the method itself, over all sequences of active sets of three rounds."""
    u, h, p, lr, T = np.array([1.0, 4.0, -2.0]), np.array([1.0, 2.0, 1.5]), np.array([0.3, 0.8, 0.5]), 0.01, 3
    method, work = FedPBC(), Steps(u, h, lr, steps)
    sets = [np.flatnonzero(on) for on in product([0, 1], repeat=3)]
    gradient = apart = 0.0
    for sequence in product(sets, repeat=T - 1):
        chance = np.prod([np.where(np.isin(range(3), A), p, 1 - p).prod() for A in sequence])
        x = torch.zeros(1, dtype=torch.float64)
        state = method.init(x, 3)
        for t, A in enumerate([*sequence, []]):
            mean = state.models.mean().item()
            gradient += chance * np.mean(h * (mean - u)) ** 2 / T
            apart += chance * state.models.numpy().var() / T
            call = Round(t, torch.tensor(A, dtype=torch.int64), lr, torch.full((3,), 1 / 3, dtype=torch.float64))
            update, state = method.round(state, x, call, work)
            x = x if update is None else x + update
    found = row(statements.fedpbc_bounds(5, problem=np.stack([u, h, p]), lr=lr, rounds=T, steps=steps))
    assert found["gradient"] == pytest.approx(gradient, rel=1e-12)

    rho = row(statements.gossip(0, probability=p))["rho"]
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
    assert found["rate"] == pytest.approx(lr * 108 * 4 * steps**3 * (beta2 + 1) * (1 + kappa**2 * 4) / (1 - rho**0.5))

    x = best + 3 * u.std() * stream(5, "fedpbc bounds").standard_normal((1000, 3))
    after = work.sgd(torch.arange(3), torch.from_numpy(x.T)).numpy().T
    F = [(h * (points.mean(axis=1, keepdims=True) - u) ** 2).mean(axis=1) / 2 for points in (x, after)]
    squared = (h * (x.mean(axis=1, keepdims=True) - u)).mean(axis=1) ** 2
    bound = (
        -lr * steps / 3 * squared + lr * steps * 4 * x.var(axis=1) + (lr * steps) ** 2 * 12 * zeta2 * (1 + kappa**2 * 4)
    )
    assert found["descent"] == pytest.approx((F[1] - F[0] - bound).max())


def test_counted_weights_by_hand():
    """Clients 0, 0, 1 of 2: shares 2/3 and 1/3, so 1/(N lambda) is 3/4 and 3/2 where 1/(N pi) is 1 and 1."""

    class Drawn(Recorded):
        stationary = np.array([2.0, 2.0])

        def active(self, t):
            return np.array([0, 0, 1][t : t + 1])

        def probability(self, t):
            return None

    found = row(statements.record(0, participation=lambda population: Drawn(), clients=2, rounds=3))
    assert found["weights"] == pytest.approx(0.25)
    assert found["rarest"] == pytest.approx(2 / 3 / 0.5 - 1)


@pytest.mark.parametrize(("units", "separation"), [(3, 1), (3, 2), (4, 2), (4, 3), (5, 4)])
def test_states_that_minimum_separation_reaches(units, separation):
    """The chain of waiting times (other code) has the same states, and the R shorter starts once each prefix."""
    found = row(statements.separation_states(0, units=units, separation=separation))
    assert found["states"] == found["nonzero"] == found["columns"] == 1
    last = separation == units - 1
    assert found["period"] == (units if last else 1)
    # A cyclic order of all units, which never changes, has N of the N! states.
    assert found["reached"] == pytest.approx(units / np.prod(np.arange(1, units + 1)) if last else 1)
    transition, _ = separation_chain(np.ones(units), separation)
    full = np.prod(np.arange(units, units - separation, -1))
    prefixes = sum(np.prod(np.arange(units, units - r, -1)) for r in range(separation))
    assert transition.shape[0] == full + prefixes


def test_four_of_twelve_states_with_pairs():
    assert row(statements.separation_states(0, units=4, separation=1, batch=2))["reached"] == pytest.approx(1 / 3)


def test_the_law_of_minimum_separation():
    p = np.array([0.25, 0.25, 0.5])
    pi = chain_separation(p, 1)
    assert pi == pytest.approx([0.3, 0.3, 0.4], abs=1e-9)  # [Sun] Proposition 3
    assert row(statements.separation_law(0, weights=p, separation=1))["distance"] == pytest.approx(2 / 15)
    pairs = row(statements.separation_law(0, weights=p, separation=0, batch=2))
    # Products 1/16, 1/8, 1/8 of the three pairs: shares 3/10, 3/10, 4/10 of a draw.
    assert pairs["from_p"] == pytest.approx(0.2)
    assert pairs["scaled"] == pytest.approx(3 * 2 / 15)


def test_two_states_by_hand():
    found = row(statements.two_states(0, stationary=np.array([0.1, 0.5]), correlation=np.array([0.0, 0.6])))
    assert found["keeps"] == pytest.approx(0.82)
    assert found["excess"] == pytest.approx(0, abs=1e-12)
    assert found["hitting"] == pytest.approx(10)
    # One client: the distance from pi after t rounds is max(pi, 1 - pi) lambda^t.
    alone = row(statements.two_states(0, stationary=np.array([0.3]), correlation=np.array([0.9])))
    assert alone["mixing"] == np.ceil(np.log(0.01 / 0.7) / np.log(0.9))


def test_group_weights_by_enumeration():
    sizes, events, inside = (2, 1), np.array([0.3, 0.6]), 0.95

    def by_enumeration(activities):
        c = np.zeros(3)
        for mask, chance in activities:
            c += chance * np.array(mask) / max(sum(mask), 1)
        return c

    def grouped():
        for on in product([0, 1], repeat=2):
            for mask in product([0, 1], repeat=3):
                of = [inside * on[0], inside * on[0], inside * on[1]]
                chance = np.prod(np.where(on, events, 1 - events)) * np.prod(np.where(mask, of, 1 - np.array(of)))
                yield mask, chance

    p = np.repeat(events, sizes) * inside
    alone = [(mask, np.prod(np.where(mask, p, 1 - p))) for mask in product([0, 1], repeat=3)]
    c, independent = by_enumeration(grouped()), by_enumeration(alone)
    u = np.array([1.0, 2.0, 6.0])
    found = row(statements.group_weights(0, sizes=sizes, events=events, inside=inside, targets=u))
    assert found["sum"] == pytest.approx(c.sum())
    assert found["bias"] == pytest.approx(np.abs(c - 1 / 3).sum())
    assert found["unequal"] == pytest.approx(np.abs(c / c.sum() - 1 / 3).sum())
    assert found["correlated"] == pytest.approx(np.abs(c - independent).sum())
    assert found["train/bias"] == pytest.approx(c @ u / c.sum() - 3)


def test_the_error_bound_needs_its_factor_on_both_errors():
    # F = x^2/2, F_B = (x - 1)^2/2, x = 1.1, kappa = 1: the copy's bound is below the error.
    error, optimisation, bias = 1.1**2 / 2, 0.1**2 / 2, 1 / 2
    assert 2 * optimisation + bias < error < 2 * (optimisation + bias)
    found = row(statements.error_bounds(0, draws=2000, clients=2))
    assert found["as_copied"] > 0
    assert max(found["on_both"], found["chi_square"], found["total_variation"]) <= 0


def test_class_coupling_floor_of_the_probabilities():
    for gamma in (0.2, 0.4, 0.8):
        found = row(statements.class_coupling(1, gamma=gamma))
        p = np.array([found["least"], found["most"]])
        t = np.arange(40)
        varying = p[:, None] * ((1 - gamma) + gamma * np.sin(2 * np.pi * t / 40))  # Eq. 15
        assert found["slack"] == pytest.approx(varying.min() - 0.02 * (1 - 2 * gamma), abs=1e-12)
    assert 0 < found["largest"] <= found["first_two"] <= 1


class Recorded:
    """Client 0 is active in rounds 0, 1, 4, 5, 8, 9, ..., client 1 in round 4, client 2 never; p = 1/2."""

    def active(self, t):
        return np.flatnonzero([t % 4 < 2, t == 4, False])

    def probability(self, t):
        return np.full(3, 0.5)

    stationary = None


def test_record_of_a_roll_call_by_hand():
    found = row(statements.record(0, participation=lambda population: Recorded(), clients=3, rounds=12))
    assert found["share"] == pytest.approx(7 / 36)
    assert found["never"] == 1
    assert found["separation"] == 0
    assert found["stretch_on"] == found["stretch_off"] == 0
    assert found["differs"] == pytest.approx(6 / 11)  # before rounds 2, 4, 5, 6, 8 and 10
    # Intervals 1, 3, 1, 3, 1 of client 0: t - tau is 1 or 1, 2, 3, so 15 over 9 rounds; p is 1/2.
    assert found["waits"] == pytest.approx(0.5 * 15 / 9)


def test_record_of_models():
    cyclic = row(statements.record(1, participation=partial(Cyclic, probability=0.3, length=10), clients=5, rounds=200))
    assert cyclic["share"] == pytest.approx(0.3, abs=0.02)
    assert cyclic["stretch_on"] == cyclic["stretch_off"] == 0
    chain = row(statements.record(1, participation=partial(Markov, probability=0.3), clients=20, rounds=5000))
    assert chain["share"] == pytest.approx(0.3, abs=0.02)
    assert chain["variance"] == pytest.approx(1, abs=0.2)
    groups = row(statements.record(1, participation=GroupEvents, clients=10, rounds=4000, sizes=(3, 4, 3)))
    # Members: covariance 0.95^2 e (1 - e), variance 0.95 e (1 - 0.95 e).
    within = [0.95 * e * (1 - e) / (e * (1 - 0.95 * e)) for e in (0.3, 0.6, 0.3)]
    assert groups["within"] == pytest.approx(np.average(within, weights=[6, 12, 6]), abs=0.02)
    assert groups["between"] == pytest.approx(0, abs=0.03)
