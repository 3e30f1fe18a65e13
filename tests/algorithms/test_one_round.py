"""One round on paper: two or three clients that move by fixed vectors, all numbers written out."""

import numpy as np
import pytest
import torch

from rollcall import SettingError
from rollcall.algorithms import (
    ALGORITHMS,
    F3AST,
    MIFA,
    AmplifiedFedAvg,
    CAFed,
    FedAdam,
    FedAU,
    FedAvg,
    FedAvgDebiased,
    FedAvgM,
    FedAWE,
    FedDyn,
    FedNova,
    FedPBC,
    FedSGDIW,
    FedVARP,
    FedYogi,
    Focus,
    LocalSGD,
    MoreAvailable,
    Round,
    Scaffold,
    Setting,
    Traffic,
)
from rollcall.benchmark.config.trial import Trial
from rollcall.benchmark.conformance.subject import Quadratics

MOVES = torch.tensor([[1.0, 0.0], [0.0, 2.0], [-4.0, 6.0]], dtype=torch.float64)


class Fixed:
    """Clients whose K = 2 steps add a fixed vector, wherever they start; their gradients are that with opposite sign.

    Attributes:
        asked: ids of the clients, call by call.
    """

    steps = 2

    def __init__(self, losses=(1.0, 2.0, 3.0)):
        self.told = torch.tensor(losses, dtype=torch.float64)
        self.asked = []

    def sgd(self, clients, start, *, scale=None, correct=None):
        self.asked.append(clients.tolist())
        moves = MOVES[clients]
        if scale is not None:
            moves = scale[:, None] * moves
        if correct is not None:
            moves = moves - correct
        return start + moves

    def gradients(self, clients, x, step):
        self.asked.append(clients.tolist())
        return -MOVES[clients], self.told[clients]

    def steps_of(self, clients):
        return torch.full_like(clients, self.steps)

    def losses(self, clients, x, split):
        return 10 * self.told[clients]


def call(active, t=0, lr=0.5, **known):
    return Round(t, torch.tensor(active, dtype=torch.int64), lr, torch.full((3,), 1 / 3, dtype=torch.float64), **known)


def vector(*values):
    return torch.tensor(values, dtype=torch.float64)


X = vector(10.0, 20.0)


@pytest.mark.parametrize(
    ("name", "active", "expected"),
    [
        ("fedavg", [0, 2], [-1.5, 3.0]),
        ("fedavg_all", [0, 2], [-1.0, 2.0]),
        ("fedavg_known", [0, 2], [(1 / 0.5 - 4 / 0.25) / 3, 6 / 0.25 / 3]),
        ("fedsgd", [0, 1], [0.25, 0.5]),
    ],
)
def test_stateless_methods(name, active, expected):
    method, p = ALGORITHMS[name](), vector(0.5, 0.1, 0.25)
    update, _ = method.round(method.init(X, 3), X, call(active, probability=p), Fixed())
    assert update.tolist() == pytest.approx(expected)


def test_fedpbc_keeps_the_models_of_inactive_clients():
    state = FedPBC().init(X, 3)
    update, state = FedPBC().round(state, X, call([0, 2]), Fixed())
    assert update.tolist() == [-1.5, 3.0]
    assert state.models.tolist() == [[8.5, 23.0], [10.0, 22.0], [8.5, 23.0]]
    nothing, state = FedPBC().round(state, X + update, call([]), Fixed())
    assert nothing is None
    assert state.models.tolist() == [[9.5, 23.0], [10.0, 24.0], [4.5, 29.0]]
    update, state = FedPBC().round(state, X + update, call([1]), Fixed())
    assert (X + vector(-1.5, 3.0) + update).tolist() == [10.0, 26.0]
    models = FedPBC().eval_models(state, X)
    assert models[""].tolist() == pytest.approx([(10.5 + 10 + 0.5) / 3, (23 + 26 + 35) / 3])
    assert models["server"] is X


def test_mifa_steps_in_an_empty_round_too():
    state = MIFA().init(X, 3)
    update, state = MIFA().round(state, X, call([0, 2], lr=0.5), Fixed())
    assert state.G.dense().tolist() == [[-2.0, 0.0], [0.0, 0.0], [8.0, -12.0]]
    assert update.tolist() == [-1.0, 2.0]
    # Under half the rate the remembered gradients weigh half.
    update, state = MIFA().round(state, X, call([], lr=0.25), Fixed())
    assert update.tolist() == [-0.5, 1.0]
    assert state.G.stored.tolist() == [True, False, True]


def test_fedsgd_iw_divides_by_the_shares_so_far():
    method = FedSGDIW(delta=0.2)
    _, state = method.round(method.init(X, 3), X, call([0, 1]), Fixed())
    assert state.Z.tolist() == [0.5, 0.5, 0]
    nothing, state = method.round(state, X, call([], t=1), Fixed())
    assert nothing is None
    update, state = method.round(state, X, call([0, 2], t=2), Fixed())
    # Z = (1, 0.5, 0.5) after three rounds, an empty one among them: c_0 = 1/3, and c_2 = 1/6 is raised to delta.
    assert update.tolist() == pytest.approx([0.5 * (1 / 1 - 4 / 0.6) / 2, 0.5 * 6 / 0.6 / 2])


def test_fedavg_debiased_scales_every_local_step():
    method = FedAvgDebiased()
    _, state = method.round(method.init(X, 3), X, call([0, 2]), Fixed())
    update, state = method.round(state, X, call([0, 1], t=4), Fixed())
    assert state.n.tolist() == [2, 1, 1]
    # nu = (t + 1) a / (n m) = 10 / (2 * 3) and 10 / 3
    assert update.tolist() == pytest.approx([10 / 6 / 2, 2 * 10 / 3 / 2])


def test_weights_by_availability():
    pi = vector(0.5, 0.25, 0.8)
    known = {"stationary": pi, "correlation": vector(0, 0, 0)}
    expected = {
        "unbiased": [(1 / 0.5 - 4 / 0.8) / 3, 6 / 0.8 / 3],
        "adafed": [(2 - 5) / 3.25, 7.5 / 3.25],
        "more_available": [-4 / 0.8 / 3, 6 / 0.8 / 3],  # the mean of pi is 0.517: client 2 alone
    }
    for name, values in expected.items():
        method, work = ALGORITHMS[name](), Fixed()
        update, _ = method.round(method.init(X, 3), X, call([0, 2], **known), work)
        assert update.tolist() == pytest.approx(values)
        assert work.asked == [[2] if name == "more_available" else [0, 2]]


def test_fedau_by_hand():
    """Client 2 is heard in rounds 1 and 4, client 0 in rounds 0 and 4; an interval is closed at 3 rounds."""
    method = FedAU(cutoff=3)
    state = method.init(X, 3)
    for t, active in enumerate([[0], [2], [], []]):
        update, state = method.round(state, X, call(active, t=t), Fixed())
        if active == [2]:
            assert update.tolist() == pytest.approx([-4 / 3, 6 / 3])  # no interval closed before: weight 1
    # Client 0: intervals 1 and, cut off in round 3, 3. Client 2: interval 2, and two rounds are open.
    assert (state.closed.tolist(), state.total.tolist()) == ([2, 1, 1], [4, 3, 2])
    assert state.length.tolist() == [0, 1, 2]
    update, state = method.round(state, X, call([0, 2], t=4), Fixed())
    assert update.tolist() == pytest.approx([(2 * 1 - 2 * 4) / 3, 2 * 6 / 3])
    assert (state.closed.tolist(), state.total.tolist()) == ([3, 1, 2], [5, 3, 5])


def test_f3ast_selects_the_least_heard_and_weights_by_the_renewed_rate():
    method, work = F3AST(capacity=1, beta=0.5, start=1.0), Fixed()
    update, state = method.round(method.init(X, 3), X, call([0, 1, 2]), work)
    assert work.asked == [[0]]  # all rates are alike: the lowest id
    assert state.r.tolist() == [1.0, 0.5, 0.5]
    assert update.tolist() == pytest.approx([1 / 3, 0])
    update, state = method.round(state, X, call([0, 2], t=1), work)
    assert work.asked[1] == [2]
    assert state.r.tolist() == [0.5, 0.25, 0.75]
    assert update.tolist() == pytest.approx([-4 / 0.75 / 3, 6 / 0.75 / 3])
    nothing, state = method.round(state, X, call([], t=2), work)
    assert nothing is None
    assert state.r.tolist() == [0.25, 0.125, 0.375]


def test_fedvarp_by_hand():
    method = FedVARP()
    update, state = method.round(method.init(X, 3), X, call([0, 2]), Fixed())
    assert update.tolist() == [-1.5, 3.0]
    assert state.ybar.tolist() == pytest.approx([-1.0, 2.0])
    nothing, state = method.round(state, X, call([], t=1), Fixed())
    assert nothing is None
    # Clients 0 and 2 move as before, so only the memory speaks; client 1 is news.
    update, state = method.round(state, X, call([0, 1], t=2), Fixed())
    assert update.tolist() == pytest.approx([(0 + 0) / 2 - 1.0, (0 + 2) / 2 + 2.0])
    assert state.ybar.tolist() == pytest.approx([-1.0, 8 / 3])


def test_scaffold_by_hand():
    """K eta = 1, so that option II stores c_i - c minus what the client moved."""
    method = Scaffold()
    update, state = method.round(method.init(X, 3), X, call([0, 2]), Fixed())
    assert update.tolist() == [-1.5, 3.0]
    assert state.c_i.dense().tolist() == [[-1.0, 0.0], [0.0, 0.0], [4.0, -6.0]]
    assert state.c.tolist() == [1.0, -2.0]  # divided by 3 clients, not by 2
    update, state = method.round(state, X, call([1], t=1), Fixed())
    # These clients add their correction once: (0, 2) - c + c_1.
    assert update.tolist() == [-1.0, 4.0]
    assert state.c_i.dense()[1].tolist() == [0 - 1 + 1, 0 + 2 - 4]


def test_fedawe_makes_up_for_silence():
    method = FedAWE()
    update, state = method.round(method.init(X, 3), X, call([0]), Fixed())
    assert update.tolist() == [1.0, 0.0]
    x = X + update
    update, state = method.round(state, x, call([0, 2], t=1), Fixed())
    # Client 0 from (11, 20) by 1 x (1, 0); client 2 from its own (10, 20) by 2 x (-4, 6).
    assert (x + update).tolist() == [(12 + 2) / 2, (20 + 32) / 2]
    assert state.models.dense().tolist() == [[7, 26], [10, 20], [7, 26]]
    assert state.tau.tolist() == [1, -1, 1]
    clipped, _ = FedAWE(clip=0.5).round(FedAWE().init(X, 3), X, call([2]), Fixed())
    assert clipped.tolist() == pytest.approx([-4 * 0.5 / 52**0.5, 6 * 0.5 / 52**0.5])


def test_focus_by_hand():
    """Gradients do not depend on the place here, so y_i is g_i after the first participation and 0 after the next."""
    method = Focus()
    update, state = method.round(method.init(X, 3), X, call([0, 2]), Fixed())
    assert state.y.tolist() == [3.0, -6.0]
    assert update.tolist() == [-1.5, 3.0]
    update, state = method.round(state, X, call([], t=1, lr=0.25), Fixed())
    assert update.tolist() == [-0.75, 1.5]
    update, state = method.round(state, X, call([0], t=2), Fixed())
    assert state.y.tolist() == [3.0, -6.0]
    skipped, _ = Focus(empty="skip").round(state, X, call([], t=3), Fixed())
    assert skipped is None


def test_ca_fed_by_hand():
    """alpha = 1/3 each. Round 0: no loss lies above its least, nobody is left out. Round 1: client 0's loss has risen
    from 1 to 2, so gap = (1, 0, 0) and Gamma = 1: eps = 1/3 with everyone; without client 0 it is 0 + 4 kappa2 / 9.

    That is less for kappa2 < 3/4. Without client 1 eps would rise, to 1/2 + 4 kappa2 / 9.
    """
    known = {"stationary": vector(0.5, 0.25, 0.8), "correlation": vector(0.1, 0.0, -0.5)}
    for kappa2, included in ((0.7, [False, True, True]), (0.8, [True, True, True])):
        method = CAFed(kappa2=kappa2)
        update, state = method.round(method.init(X, 3), X, call([0, 2], **known), Fixed())
        assert update.tolist() == pytest.approx([(1 / 0.5 - 4 / 0.8) / 3, 6 / 0.8 / 3])
        assert state.Fh.tolist() == [1.0, 2.0, 3.0]  # the mean of those heard stands for client 1
        work = Fixed((2.0, 2.0, 3.0))
        update, state = method.round(state, X, call([0, 2], t=1, **known), work)
        assert (state.q > 0).tolist() == included
        assert work.asked == [[0, 2], [i for i in (0, 2) if included[i]]]
        assert update.tolist() == pytest.approx([(included[0] / 0.5 - 4 / 0.8) / 3, 6 / 0.8 / 3])
        assert method.traffic(state, call([0, 2])) == Traffic(up=1 + included[0], down=2)


def test_ca_fed_leaves_a_client_without_held_out_samples_out_of_the_mean():
    """Losses 10, unknown, 30: the unknown one counts as their mean, 20."""
    method, known = CAFed(losses="validation"), {"stationary": vector(0.5, 0.5, 0.5), "correlation": vector(0, 0, 0)}
    _, state = method.round(method.init(X, 3), X, call([0, 1, 2], **known), Fixed((1.0, float("nan"), 3.0)))
    assert state.Fh.tolist() == [10.0, 20.0, 30.0]
    # All losses rise by about as much, so that leaving out anybody would raise eps.
    _, state = method.round(state, X, call([0, 1, 2], t=1, **known), Fixed((2.0, float("nan"), 5.0)))
    assert state.Fh.tolist() == [20.0, 35.0, 50.0]
    # Client 1 alone: nothing new is heard, and it trains with the weight 1/3 / 0.5.
    update, after = method.round(state, X, call([1], t=2, **known), Fixed((2.0, float("nan"), 5.0)))
    assert after.Fh.tolist() == state.Fh.tolist()
    assert update.tolist() == pytest.approx((MOVES[1] / 1.5).tolist())
    # Before anything is heard there is no step.
    update, after = method.round(method.init(X, 3), X, call([1], **known), Fixed((1.0, float("nan"), 3.0)))
    assert update is None
    assert after.Fh.isinf().all()


def test_ca_fed_watches_before_it_trains():
    """Client 0 is there in rounds 0, 1 and 2, client 2 in 1 and 2; with a round on and one off before, of 3 + 2."""
    method, work = CAFed(oracle=False, watch=2), Fixed()
    state = method.init(X, 3)
    for t, active in enumerate([[0], [0, 2]]):
        update, state = method.round(state, X, call(active, t=t), work)
        assert update is None
        assert method.traffic(state, call(active, t=t)) == Traffic(up=0, down=0)
    assert work.asked == []
    update, _ = method.round(state, X, call([0, 2], t=2), work)
    assert update.tolist() == pytest.approx([(1 / (4 / 5) - 4 / (3 / 5)) / 3, 6 / (3 / 5) / 3])


@pytest.mark.parametrize(
    ("method", "expected"),
    [
        (FedAvg(), Traffic(up=2, down=2)),
        (Scaffold(), Traffic(up=4, down=4)),
        (LocalSGD(), Traffic(up=3, down=3)),
        (F3AST(capacity=1), Traffic(up=1, down=1)),
        (FedPBC(), Traffic(up=2, down=2)),
        (MoreAvailable(), Traffic(up=1, down=1)),  # the mean of pi is 0.517: client 2 alone
    ],
    ids=str,
)
def test_traffic(method, expected):
    assert method.traffic(method.init(X, 3), call([0, 2], stationary=vector(0.5, 0.25, 0.8))) == expected


# Two clients in one dimension, x = 0, eta = 0.5: with F = 0.5 h (x - u)^2 client 0 goes to 2 - 2 / 2^k in k steps, and
# client 1, with h = 2, to -8 in one.
HAND = Quadratics(vector(2, -8)[:, None], vector(1, 2), torch.tensor([2, 1]), 0.5)


def by_hand(method, calls, alpha=(0.5, 0.5)):
    """The updates of rounds with these active clients, and the state at the end."""
    x, updates = vector(0.0), []
    state = method.init(x, 2)
    for t, active in enumerate(calls):
        call = Round(t, torch.tensor(active, dtype=torch.int64), 0.5, vector(*alpha))
        update, state = method.round(state, x, call, HAND)
        updates.append(None if update is None else update.item())
        x = x if update is None else x + update
    return updates, state


def test_feddyn():
    # Client 0 with alpha = 1: 0 -> 1 -> 1 - (-1 + 1) / 2 = 1. h = -(1/2) 1, so x = 1 + 0.5.
    (first, empty, second), state = by_hand(FedDyn(alpha=1.0), [[0], [], [1]])
    assert first == 1.5
    assert empty is None
    # Client 1 from 1.5: 1.5 - 0.5 * 2 * 9.5 = -8, moved by -9.5. h = -0.5 + 9.5 / 2 = 4.25, x = -8 - 4.25.
    assert 1.5 + second == -12.25
    assert state.g.dense().tolist() == [[-1.0], [9.5]]
    assert state.h.tolist() == [4.25]
    x = vector(-12.25)
    models = FedDyn(alpha=1.0).eval_models(state, x)
    assert models[""] is x
    assert models["active"].tolist() == [-8.0]


def test_fednova():
    # Moves 1.5 in two steps and -8 in one; p = (0.25, 0.75): tau_eff = 1.25, of 0.25 * 0.75 - 0.75 * 8.
    (first, empty, second), _ = by_hand(FedNova(), [[0, 1], [], [0]], alpha=(0.25, 0.75))
    assert first == 1.25 * (0.25 * 0.75 - 0.75 * 8)
    assert empty is None
    # Alone a client's own number of steps cancels: a quarter of the way to 2 is left after two steps.
    assert second == pytest.approx(0.75 * (2 - first))


def test_fednova_counts_what_momentum_repeats():
    # |a| = 1 + (1 + 0.5) = 2.5 for two steps, 1 for one.
    (update,), _ = by_hand(FedNova(rho=0.5), [[0, 1]])
    assert update == pytest.approx((0.5 * 2.5 + 0.5 * 1) * (0.5 * 1.5 / 2.5 - 0.5 * 8))


def test_amplified_fedavg():
    # 1.5; then nobody, but the interval of two rounds ends: 2 * 1.5 more. From 4.5: client 1 to -8, amplified at once.
    updates, state = by_hand(AmplifiedFedAvg(eta=3.0, P=2), [[0], [], [], [1], []])
    assert updates == [1.5, 3.0, None, 3 * -12.5, None]
    assert state.u.tolist() == [0.0]
    # A round within the interval adds up.
    updates, state = by_hand(AmplifiedFedAvg(eta=3.0, P=3), [[0], [1], []])
    assert updates == [1.5, -9.5, 2 * -8.0]


def test_fedavgm():
    # 1.5; nobody; client 1 from 1.5 moves by -9.5, and half of 1.5 goes on.
    (first, empty, second), state = by_hand(FedAvgM(beta=0.5, eta_g=2.0), [[0], [], [1]])
    assert first == 2 * 1.5
    assert empty is None
    assert second == 2 * (0.5 * 1.5 - 11)  # from 3 to -8
    assert state.v.tolist() == [-10.25]


def test_fedadam_and_fedyogi():
    # Delta = 1.5 with m = 0.75; v = 0.75 * 0.25 + 0.25 * 2.25 = 0.75, or v = 0.25 + 0.25 * 2.25.
    options = {"eta_g": 2.0, "beta_1": 0.5, "beta_2": 0.75, "tau": 0.5}
    (first, empty), state = by_hand(FedAdam(**options), [[0], []])
    assert first == pytest.approx(2 * 0.75 / (0.75**0.5 + 0.5))
    assert empty is None
    assert (state.m.tolist(), state.v.tolist()) == ([0.75], [0.75])
    (first, _), state = by_hand(FedYogi(**options), [[0], []])
    assert first == pytest.approx(2 * 0.75 / (0.8125**0.5 + 0.5))
    # With a large v Yogi goes down by the same amount.
    (first,), state = by_hand(FedYogi(**(options | {"tau": 2.0})), [[0]])
    assert state.v.tolist() == [4 - 0.25 * 2.25]
    # Corrected, the first step is the sign of Delta, but for tau.
    (first,), _ = by_hand(FedAdam(**options, bias_correction=True), [[0]])
    assert first == pytest.approx(2 * 1.5 / (1.5 + 0.5))


MOVES_IN_EMPTY_ROUNDS = {"mifa", "focus", "local_sgd"}


@pytest.mark.parametrize("name", list(ALGORITHMS))
def test_an_empty_round_has_no_step(name):
    method = ALGORITHMS[name]()
    known = {"probability": vector(0.5, 0.5, 0.5), "stationary": vector(0.5, 0.5, 0.5)}
    update, _ = method.round(method.init(X, 3), X, call([], correlation=vector(0, 0, 0), **known), Fixed())
    assert (update is None) == (name not in MOVES_IN_EMPTY_ROUNDS)


@pytest.mark.parametrize("name", ["fedpbc", "fedawe", "scaffnew"])
def test_a_server_optimizer_is_refused_where_clients_hold_the_model(name):
    method = ALGORITHMS[name]()
    method.check(Setting(steps=3))
    with pytest.raises(ValueError, match=f"server: .* not allowed with {name}"):
        method.check(Setting(steps=3, plain_server=False))


@pytest.mark.parametrize("name", ["fedsgd", "fedsgd_iw"])
def test_one_gradient_a_round(name):
    method = ALGORITHMS[name]()
    method.check(Setting(steps=1, plain_server=False))
    with pytest.raises(ValueError, match=f"local.steps: 3 is not allowed with {name}"):
        method.check(Setting(steps=3))


def trial(**changes):
    return {
        "task": {"name": "quadratic", "targets": np.ones((2, 1))},
        "participation": "full",
        "algorithm": "fedavg",
        "local": {"steps": 3, "lr": 0.05},
        "rounds": 3,
    } | changes


@pytest.mark.parametrize(
    ("changes", "complaint"),
    [
        ({"algorithm": "feddyn", "local": {"momentum": 0.5}}, "local.momentum: 0.5 is not allowed with feddyn"),
        (
            {"algorithm": "fednova", "local": {"momentum": 0.5}},
            "local.momentum: 0.5 is not allowed with fednova's rho 0;",
        ),
        ({"algorithm": {"name": "fednova", "rho": 0.5}}, "local.momentum: 0 is not allowed with fednova's rho 0.5;"),
        ({"algorithm": "feddyn", "server": {"lr": 0.5}}, "server: .* is not allowed with feddyn"),
        ({"algorithm": "fedavgm", "server": {"momentum": 0.5}}, "server: .* is not allowed with fedavgm"),
        ({"algorithm": "fedadam", "server": {"optimizer": "adam"}}, "server: .* is not allowed with fedadam"),
        ({"algorithm": "fedyogi", "server": {"lr": 0.1}}, "server: .* is not allowed with fedyogi"),
        ({"algorithm": "amplified_fedavg", "server": {"lr": 0.1}}, "server: .* is not allowed with amplified_fedavg"),
        ({"algorithm": "fedadam", "evaluation": {"weights": ["client"]}}, "evaluation.weights"),
        ({"algorithm": {"name": "fedadam", "beta_1": 1.0}}, "beta_1"),
        ({"algorithm": {"name": "amplified_fedavg", "P": 0}}, "P"),
    ],
)
def test_settings_that_a_method_does_not_allow(changes, complaint):
    with pytest.raises(SettingError, match=complaint):
        Trial.read(trial(**changes))
