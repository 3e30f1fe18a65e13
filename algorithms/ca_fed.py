"""CA-Fed: leaves out rarely available or strongly correlated clients if that lowers a bound on the error.

Rodio, Faticanti, Marfoq, Neglia, Leonardi, *Federated Learning under Heterogeneous and Correlated Client
Availability* (CA-Fed; IEEE/ACM ToN 2024), Algorithm 1.

    F_i [a]         loss of each active client at x on its first minibatch, before it trains
    Fh_i [m]        = (1 - beta) Fh_i + beta F_i for i in A
                    (in the first non-empty round F_i, and the mean of F over A for all other clients)
    F*_i [m]        = least Fh_i so far;  Gamma = max_i (Fh_i - F*_i)
    P(q)_i [m]      = pi_i q_i / sum_h pi_h q_h
    eps(q)          = sum_i (Fh_i - F*_i) P(q)_i + 4 kappa2 TV(alpha, P(q))^2 Gamma
    q [m]           = alpha / pi; then q_k = 0 wherever this lowers eps by tau or more. Clients are tried first by
                    descending |lambda|, then by ascending pi. At least one client remains.
    x              += eta_g * sum over A of q_i D_i    clients with q_i = 0 do not train

If A is empty, or all of A is left out, x stays. In the first `watch` rounds x stays and no client is contacted; the
server only observes who is active, for its estimates (Fig. 4).

Cost:
    a + Q K gradients (Q K with `losses: validation` or `test`); Q models up, a down, where Q of the active clients are
    included; memory 3 m, with estimates 8 m + 1. A loss on a minibatch is counted as one gradient. A client that trains
    could take it from its first step, so that Q K gradients and a - Q forward passes would be enough.

When to use:
    In short training, if some clients are rare or strongly correlated over time and matter little.

Differences from the paper:
    lambda is the second eigenvalue of a client's chain. The paper sorts by lambda(P_k) = (1 + |lambda|) / 2: the
    order of |lambda|. Its E is K here. It does not say how Fh starts; the mean of F is the released code's. Its
    function `get` may leave out all clients; here one remains. The projection on a set W is left out.
    beta = 1 keeps no memory of losses. The paper prints "beta = 0" for its experiments. In the released code the
    parameter weights the old estimate: 0 for MNIST, which is beta = 1 here, and 0.2 for Synthetic.
    Clients of equal lambda, or equal pi, are tried by their numbers; the paper says nothing about them.
    A client is kept if leaving it out does not change eps (`ties: keep`). Read literally, a gain of 0 reaches tau = 0;
    then all clients but one are left out whenever no loss is above its least value, as in the first round.
    `get` sets q_k = 0 for a trial and does not say that a rejected trial is undone. It is undone here, as in the text.
    The authors' released code has `bias_factor: 1` instead of 4, takes F_i on held-out samples (`losses: test`), takes
    for F*_i the client's least loss (`least: optimum`), or 0 for networks (`least: zero`), and has `ties: leave_out`.
"""

from dataclasses import dataclass, replace
from math import inf
from typing import Literal

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from rollcall.algorithms.availability import AvailabilityAware, Watch, observed
from rollcall.algorithms.base import (
    Fraction,
    LocalWork,
    NonNegative,
    Nothing,
    Properties,
    Round,
    Rounds,
    Traffic,
    Vector,
)


@dataclass(frozen=True)
class Losses:
    """The server's data of each client.

    Attributes:
        Fh: [m], running estimate of its loss; infinite before the first non-empty round.
        least: [m], F*, the least value of Fh so far.
        q: [m], its weight in the last round.
        seen: counts of active rounds, if pi and lambda are estimated.
    """

    Fh: Float[Tensor, "m"]
    least: Float[Tensor, "m"]
    q: Float[Tensor, "m"]
    seen: Watch | Nothing


@dataclass(frozen=True)
class CAFed(AvailabilityAware[Losses]):
    """CA-Fed ([CAF] Algorithm 1): leaves out clients if that lowers the bound eps(q).

    Attributes:
        kappa2: kappa^2, weight of the bias in eps; if infinite, no client is left out.
        beta: weight of a new loss in the running estimate Fh.
        tau: smallest decrease of eps for which a client is left out.
        oracle: take pi and lambda from the participation model; otherwise estimate them from rounds 0..t.
        ties: whether a client is kept (`keep`) or left out (`leave_out`) if eps is the same without it.
        bias_factor: factor of the bias in eps; 4 in the paper.
        losses: where F_i is computed: on the client's first `minibatch`, or on all its samples of the `validation` or
            `test` split. A client without samples there has no loss; it takes the mean of the active clients that have
            one. If none of them has one, the estimates stay; before the first loss, such a round has no server step.
        least: F*_i: the `running` minimum, the client's `optimum` as the task knows it, or `zero`.
        watch: number of rounds that only observe, before training starts.
    """

    kappa2: NonNegative = 1.0
    beta: Fraction = 1.0
    tau: NonNegative = 0.0
    ties: Literal["keep", "leave_out"] = "keep"
    bias_factor: NonNegative = 4.0
    losses: Literal["minibatch", "validation", "test"] = "minibatch"
    least: Literal["running", "optimum", "zero"] = "running"
    watch: Rounds = 0

    search_space = "kappa2=loguniform(0.01,10)"

    @property
    def requires(self) -> tuple[str, ...]:
        availability = ("stationary", "correlation") if self.oracle else ()
        return (*availability, "least_loss") if self.least == "optimum" else availability

    @property
    def properties(self) -> Properties:
        return Properties(
            limit="elsewhere",
            step="mean" if self.oracle and not self.watch else "some",
            changes_while_inactive=("Fh", "least", "q", "seen"),
            weights=True,
        )

    def init(self, x: Vector, clients: int) -> Losses:
        unknown = x.new_full((clients,), inf)
        return Losses(unknown, unknown, x.new_zeros(clients), self.counts(x, clients))

    def round(self, state: Losses, x: Vector, call: Round, work: LocalWork) -> tuple[Vector | None, Losses]:
        A, seen = call.active[call.alpha[call.active] > 0], observed(state.seen, call)
        if len(A) == 0 or call.t < self.watch:
            return None, replace(state, seen=seen)
        F = self._losses(A, x.expand(len(A), -1), work)
        if F.isnan().all() and self.losses != "minibatch":  # no active client holds samples of the split
            if state.Fh.isinf().all():
                return None, replace(state, seen=seen)
            F = state.Fh[A]
        if state.Fh.isinf().all():
            Fh = F.mean().expand(call.clients).index_copy(0, A, F)
        else:
            Fh = state.Fh.index_copy(0, A, (1 - self.beta) * state.Fh[A] + self.beta * F)
        least = self._least(state, Fh, call)
        pi, correlation = self.availability(seen, call), call.correlation
        if isinstance(seen, Watch):
            correlation = seen.correlation.to(call.alpha.dtype)
        assert correlation is not None, "declared in requires"
        q = (call.alpha / pi).where(self._included(Fh - least, call.alpha, pi, correlation), 0.0)  # pi may be 0
        state = Losses(Fh, least, q, seen)
        A = A[q[A] > 0]
        if len(A) == 0:
            return None, state
        D = work.sgd(A, x.expand(len(A), -1)) - x
        return q[A] @ D, state

    def _losses(self, A: Int[Tensor, "a"], x: Float[Tensor, "a d"], work: LocalWork) -> Float[Tensor, "a"]:
        """F_i [a] of the active clients."""
        if self.losses == "minibatch":
            return work.gradients(A, x, 0)[1]
        F = work.losses(A, x, self.losses)
        return F.where(~F.isnan(), F.nanmean())

    def _least(self, state: Losses, Fh: Float[Tensor, "m"], call: Round) -> Float[Tensor, "m"]:
        """F* [m]."""
        if self.least == "running":
            return Fh.minimum(state.least)
        if self.least == "zero":
            return torch.zeros_like(Fh)
        assert call.least_loss is not None, "declared in requires"
        return call.least_loss

    def _included(
        self,
        gap: Float[Tensor, "m"],
        alpha: Float[Tensor, "m"],
        pi: Float[Tensor, "m"],
        correlation: Float[Tensor, "m"],
    ) -> Bool[Tensor, "m"]:
        """Whether each client is included (q_i > 0) after both passes.

        pi_i q_i is alpha_i if client i is included, and 0 otherwise. Let `mass` be the sum of alpha over the included
        clients. Then P(q) is alpha / mass for them, TV(alpha, P(q)) = 1 - mass, and a trial costs two subtractions.
        """
        alphas, gaps = alpha.double().tolist(), gap.double().tolist()
        Gamma = max(f for a, f in zip(alphas, gaps, strict=True) if a > 0)

        def eps(mass: float, loss: float) -> float:
            return loss / mass + self.bias_factor * self.kappa2 * (1 - mass) ** 2 * Gamma

        included = [a > 0 for a in alphas]
        mass, loss = 1.0, sum(a * f for a, f in zip(alphas, gaps, strict=True))
        remaining = sum(included)
        by_correlation = correlation.abs().sort(descending=True, stable=True).indices
        by_availability = pi.sort(stable=True).indices
        for order in (by_correlation, by_availability):
            for k in order.tolist():
                if not included[k]:
                    continue
                if remaining == 1:
                    break
                without = (mass - alphas[k], loss - alphas[k] * gaps[k])
                gain = eps(mass, loss) - eps(*without)
                if gain >= self.tau and (gain > 0 or self.ties == "leave_out"):
                    included[k] = False
                    (mass, loss), remaining = without, remaining - 1
        return torch.tensor(included, device=alpha.device)

    def traffic(self, state: Losses, call: Round) -> Traffic:
        if call.t < self.watch:
            return Traffic(up=0, down=0)
        # All active clients receive x to compute their loss. Those left out send no model back.
        return Traffic(up=int((state.q[call.active] > 0).sum()), down=int((call.alpha[call.active] > 0).sum()))
