"""One round on paper: two or three clients that move by fixed vectors, all numbers written out."""

from dataclasses import replace

import pytest
import torch

from rollcall.algorithms import (
    ALGORITHMS,
    F3AST,
    MIFA,
    CAFed,
    FedAU,
    FedAvg,
    FedAvgAll,
    FedAvgDebiased,
    FedAvgKnown,
    FedAWE,
    FedPBC,
    FedSGD,
    FedSGDIW,
    FedVARP,
    Focus,
    LocalSGD,
    MoreAvailable,
    Round,
    Scaffold,
    Setting,
    Traffic,
)

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


def test_fedavg():
    update, _ = FedAvg().round(FedAvg().init(X, 3), X, call([0, 2]), Fixed())
    assert update.tolist() == [-1.5, 3.0]


def test_fedavg_all():
    update, _ = FedAvgAll().round(FedAvgAll().init(X, 3), X, call([0, 2]), Fixed())
    assert update.tolist() == [-1.0, 2.0]


def test_fedavg_known():
    p = vector(0.5, 0.1, 0.25)
    update, _ = FedAvgKnown().round(FedAvgKnown().init(X, 3), X, call([0, 2], probability=p), Fixed())
    assert update.tolist() == pytest.approx([(1 / 0.5 - 4 / 0.25) / 3, 6 / 0.25 / 3])


def test_fedpbc_keeps_what_the_silent_learnt():
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


def test_mifa_can_wait_for_all():
    method = MIFA(wait_for_all=True)
    update, state = method.round(method.init(X, 3), X, call([0, 2]), Fixed())
    assert update is None
    update, state = method.round(state, X, call([1]), Fixed())
    assert update.tolist() == [-1.0, 8 / 3]


def test_fedavg_known_as_released_divides_all_by_the_last():
    p = vector(0.5, 0.1, 0.25)
    method = FedAvgKnown(probability="last_client")
    update, _ = method.round(method.init(X, 3), X, call([0, 2], probability=p), Fixed())
    assert update.tolist() == pytest.approx([(1 - 4) / 0.25 / 3, 6 / 0.25 / 3])


def test_fedsgd():
    update, _ = FedSGD().round(FedSGD().init(X, 3), X, call([0, 1]), Fixed())
    assert update.tolist() == [0.25, 0.5]


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


def test_weights_follow_the_target():
    alpha = vector(0.1, 0.2, 0.7)
    round_ = Round(0, torch.tensor([0, 2]), 0.5, alpha, stationary=vector(0.5, 0.5, 0.5), correlation=vector(0, 0, 0))
    for name in ("unbiased", "ca_fed"):
        update, _ = ALGORITHMS[name]().round(ALGORITHMS[name]().init(X, 3), X, round_, Fixed((1.0, 1.0, 1.0)))
        assert update.tolist() == pytest.approx([0.2 * 1 - 1.4 * 4, 1.4 * 6])


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


def test_f3ast_selects_and_weights_by_the_objective():
    method, work = F3AST(capacity=1, beta=0.5, start=1.0), Fixed()
    weights = torch.tensor([0.25, 0.25, 0.5], dtype=X.dtype)
    update, state = method.round(method.init(X, 3), X, replace(call([0, 1, 2]), alpha=weights), work)
    assert work.asked == [[2]]  # the largest alpha_i / r_i
    assert state.r.tolist() == [0.5, 0.5, 1.0]
    assert update.tolist() == pytest.approx([0.5 * -4, 0.5 * 6])
    update, state = method.round(state, X, replace(call([0, 1], t=1), alpha=weights), work)
    assert work.asked[1] == [0]
    assert update.tolist() == pytest.approx([0.25 / 0.75, 0])


def test_f3ast_as_released_takes_positions_for_ids():
    method, work = F3AST(capacity=1, beta=0.5, selection="released"), Fixed()
    method.round(method.init(X, 3), X, call([1, 2]), work)
    assert work.asked == [[0]]  # client 0 is not even there


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


def test_ca_fed_with_a_client_that_has_all_the_weight():
    known = {"stationary": vector(0.5, 0.25, 0.8), "correlation": vector(0.1, 0.0, -0.5)}
    method, weights = CAFed(), vector(0.0, 1.0, 0.0)
    update, state = method.round(method.init(X, 3), X, replace(call([0, 1], **known), alpha=weights), Fixed())
    assert (state.q > 0).tolist() == [False, True, False]
    assert update.tolist() == pytest.approx((MOVES[1] / 0.25).tolist())


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


def test_ca_fed_tries_the_most_correlated_first_and_leaves_somebody():
    """Read to the letter, ties leave all out but the last to be tried: by |lambda|, 2, 0, 1."""
    known = {"stationary": vector(0.5, 0.25, 0.8), "correlation": vector(0.1, 0.0, -0.5)}
    method = CAFed(ties="leave_out")
    _, state = method.round(method.init(X, 3), X, call([0, 2], **known), Fixed())
    assert (state.q > 0).tolist() == [False, True, False]


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
