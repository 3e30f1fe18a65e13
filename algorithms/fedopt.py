r"""FedAdam and FedYogi: the server applies an adaptive optimizer to the mean of the clients' moves.

Reddi, Charles, Zaheer, Garrett, Rush, Konečný, Kumar, McMahan, *Adaptive Federated Optimization* (ICLR 2021),
Algorithm 2.

    D_i    = x_i(K) - x
    Delta  = mean over A of D_i
    m      = beta_1 m + (1 - beta_1) Delta                       0 at first
    v      = beta_2 v + (1 - beta_2) Delta^2                     FedAdam; tau^2 at first
    v     -= (1 - beta_2) Delta^2 sign(v - Delta^2)              FedYogi; tau^2 at first
    x     += eta_g m / (sqrt(v) + tau)                           coordinate by coordinate
    A empty: x, m and v stay

Formula:
    \Delta = \frac{1}{a} \sum_{i \in A} \left( x_i^{(K)} - x \right)
    m \leftarrow \beta_1 \, m + (1 - \beta_1) \, \Delta
    v \leftarrow \beta_2 \, v + (1 - \beta_2) \, \Delta^2 \quad \text{(FedAdam)}
    v \leftarrow v - (1 - \beta_2) \, \Delta^2 \, \mathrm{sign}(v - \Delta^2) \quad \text{(FedYogi)}
    x \leftarrow x + \eta_g \, \frac{m}{\sqrt{v} + \tau}

Cost:
    a K gradients; a models up, a down; memory 2 d.

When to use:
    If coordinates need different rates, as with rare words. They leave FedAvg's bias about as it is.

Differences from the paper:
    eta_g is the paper's eta, and eta its eta_l. The paper has no empty round. It has no bias correction either, which
    `server: {optimizer: adam}` and several libraries have.
"""

from abc import abstractmethod
from dataclasses import dataclass
from typing import ClassVar

import torch

from rollcall.algorithms.base import Algorithm, Decay, LocalWork, Positive, Properties, Round, TrainingSetup, Vector


@dataclass(frozen=True)
class Moments:
    """Of the mean move.

    Attributes:
        m: first moment, [d].
        v: second moment, [d].
    """

    m: Vector
    v: Vector


@dataclass(frozen=True)
class FedOpt(Algorithm[Moments]):
    """Base class of FedAdam and FedYogi.

    Attributes:
        eta_g: the server's learning rate. The paper searches it for each task; the default 0.1 is ours.
        beta_1: decay of m.
        beta_2: decay of v.
        tau: adaptivity; the smaller, the more adaptive. Defaults of beta_1, beta_2 and tau are the paper's.
    """

    eta_g: Positive = 0.1
    beta_1: Decay = 0.9
    beta_2: Decay = 0.99
    tau: Positive = 1e-3

    properties: ClassVar[Properties] = Properties(limit="elsewhere", step="coordinates", linear=False, weights=True)

    def check(self, setting: TrainingSetup) -> None:
        setting.need_no_server_optimizer(type(self).__name__.lower())

    def init(self, x: Vector, clients: int) -> Moments:
        return Moments(torch.zeros_like(x), torch.full_like(x, self.tau**2))

    def round(self, state: Moments, x: Vector, call: Round, work: LocalWork) -> tuple[Vector | None, Moments]:
        A = call.active
        if len(A) == 0:
            return None, state
        Delta = call.mean(work.sgd(A, x.expand(len(A), -1)) - x)
        m = self.beta_1 * state.m + (1 - self.beta_1) * Delta
        v = self._second_moment(state.v, Delta.square())
        return self.eta_g * m / (v.sqrt() + self.tau), Moments(m, v)

    @abstractmethod
    def _second_moment(self, v: Vector, square: Vector) -> Vector:
        """The next v, given Delta^2."""


@dataclass(frozen=True)
class FedAdam(FedOpt):
    """FedAdam (Algorithm 2): the server applies Adam to the mean update."""

    def _second_moment(self, v: Vector, square: Vector) -> Vector:
        return self.beta_2 * v + (1 - self.beta_2) * square


@dataclass(frozen=True)
class FedYogi(FedOpt):
    """FedYogi (Algorithm 2): the server applies Yogi to the mean update."""

    def _second_moment(self, v: Vector, square: Vector) -> Vector:
        return v - (1 - self.beta_2) * square * (v - square).sign()
