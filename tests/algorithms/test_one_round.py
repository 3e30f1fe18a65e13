"""Which minibatches each method computes, and CA-Fed by hand; `test_against_numpy` has the numbers of all methods."""

import numpy as np
import pytest
import torch
from clients import Clients

from rollcall.algorithms import ALGORITHMS, KNOWLEDGE, AdaFed, CAFed, MoreAvailable, Round, Traffic, Unbiased

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
        return start + MOVES[clients]  # CA-Fed neither scales nor corrects steps

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


def watched(method, work):
    """The state after two rounds in which the method only observes."""
    state = method.init(X, 3)
    for t, active in enumerate([[0], [0, 2]]):
        update, state = method.round(state, X, call(active, t=t), work)
        assert update is None
        assert method.traffic(state, call(active, t=t)) == Traffic(up=0, down=0)
    assert work.asked == []
    return state


def test_ca_fed_watches_before_it_trains():
    """Client 0 is there in rounds 0, 1 and 2, client 2 in 1 and 2; with a round on and one off before, of 3 + 2."""
    method, work = CAFed(oracle=False, watch=2), Fixed()
    state = watched(method, work)
    update, state = method.round(state, X, call([0, 2], t=2), work)
    assert update.tolist() == pytest.approx([(1 / (4 / 5) - 4 / (3 / 5)) / 3, 6 / (3 / 5) / 3])
    assert method.traffic(state, call([0, 2], t=2)) == Traffic(up=2, down=2)


@pytest.mark.parametrize("kind", [Unbiased, AdaFed, MoreAvailable])
def test_baselines_watch_before_they_train(kind):
    """The same roll call: estimates of 4/5, 1/5 and 3/5, whose mean is 8/15."""
    method, work = kind(oracle=False, watch=2), Fixed()
    state = watched(method, work)
    update, state = method.round(state, X, call([0, 2], t=2), work)
    q = np.array([5 / 4, 5 / 3]) / 3
    q = q / q.sum() if kind is AdaFed else q
    assert update.tolist() == pytest.approx((q @ MOVES[[0, 2]].numpy()).tolist())
    assert method.traffic(state, call([0, 2], t=2)) == Traffic(up=2, down=2)
    update, state = method.round(state, X, call([1], t=3), work)
    assert (update is None) == (kind is MoreAvailable)  # 2/6 is below the mean of 4/6, 2/6 and 3/6
    assert method.traffic(state, call([1], t=3)) == Traffic(*[int(kind is not MoreAvailable)] * 2)


def test_ca_fed_takes_the_mean_loss_for_clients_that_were_never_active():
    known = {"stationary": vector(0.5, 0.5, 0.5), "correlation": vector(0, 0, 0)}
    method = CAFed()
    _, state = method.round(method.init(X, 3), X, call([0, 2], **known), Fixed((1.0, 7.0, 3.0)))
    assert state.Fh.tolist() == [1.0, 2.0, 3.0]


def test_ca_fed_with_a_least_loss_of_zero():
    """eps(all) = 2. Without client 2 it is (1 + 2) / 2 + 4 kappa2 (1/3)^2 3: less than 2 if kappa2 < 3/8."""
    known = {"stationary": vector(0.5, 0.5, 0.5), "correlation": vector(0, 0, 0.9)}
    for kappa2, included in ((0.45, [1, 1, 1]), (0.3, [1, 1, 0])):
        method = CAFed(kappa2=kappa2, least="zero")
        _, state = method.round(method.init(X, 3), X, call([0, 1, 2], **known), Fixed())
        assert (state.q > 0).tolist() == included
        assert method.traffic(state, call([0, 1, 2])) == Traffic(up=sum(included), down=3)


class Recorded(Clients):
    """Clients that write down whose gradients of which minibatch are asked for, and how often `sgd` is."""

    def __init__(self, K):
        super().__init__(torch.zeros(3, 1).double(), torch.ones(3).double(), K, 0.1)
        self.minibatches, self.trained = [], 0

    def gradients(self, clients, x, step):
        self.minibatches += [(i, step) for i in clients.tolist()]
        return super().gradients(clients, x, step)

    def sgd(self, clients, start, **options):
        self.trained += 1
        return super().sgd(clients, start, **options)


PASSES = [*((name, {}) for name in ALGORITHMS), ("scaffold", {"option": "I"})]


@pytest.mark.parametrize(("name", "options"), PASSES, ids=str)
def test_all_methods_compute_the_same_minibatches(name, options):
    """Each active client's minibatches 0 to K_i - 1, by one call of `sgd` or each once by `gradients`."""
    method = ALGORITHMS[name](**options)
    K = [1, 1, 1] if "one_step" in method.needs else [2, 1, 3]
    work, x, known = Recorded(K), vector(1.0), {name: vector(0.5, 0.5, 0.5) for name in KNOWLEDGE}
    method.round(method.init(x, 3), x, call([0, 2], **known), work)
    own = [(i, k) for i in (0, 2) for k in range(K[i])]
    # Besides `sgd`, CA-Fed needs the losses at x, and option I all gradients there.
    besides = [(0, 0), (2, 0)] if name == "ca_fed" else own if options else []
    expected = [(besides, 1)] if besides else [(own, 0), ([], 1)]
    assert (sorted(work.minibatches), work.trained) in expected
