"""Methods that are wrong in one way each, for `rollcall check` to find out."""

from dataclasses import dataclass, replace

import torch

from rollcall.algorithms import FedAvg, FedAvgKnown, Memoryless, Properties, Scaffold
from rollcall.algorithms.mifa import MIFA
from rollcall.algorithms.scaffold import Controls


@dataclass(frozen=True)
class ForgetfulScaffold(Scaffold):
    """Never stores c_i."""

    def round(self, state, x, call, work):
        update, after = super().round(state, x, call, work)
        return update, Controls(after.c, state.c_i)


@dataclass(frozen=True)
class ZeroWeights(Memoryless):
    """FedAvg with everybody's work and weights of 0 for the silent."""

    properties = Properties(limit="shares")

    def round(self, state, x, call, work):
        if len(call.active) == 0:
            return None, state
        everyone = torch.arange(call.clients, device=x.device)
        weights = x.new_zeros(call.clients).index_fill(0, call.active, 1 / len(call.active))
        return weights @ (work.sgd(everyone, x.repeat(call.clients, 1)) - x), state


@dataclass(frozen=True)
class Overwriting(MIFA):
    """Writes the news into the memory that it was given."""

    def round(self, state, x, call, work):
        A = call.active
        news = (x - work.sgd(A, x.expand(len(A), -1))) / call.lr
        state.G.values[state.G.place[A]] = news
        G = state.G.put(A, news)
        return -call.lr * G.mean(), replace(state, G=G)


@dataclass(frozen=True)
class Secretive(MIFA):
    """Remembers in itself what belongs into the state."""

    def __post_init__(self):
        object.__setattr__(self, "mine", {})

    def round(self, state, x, call, work):
        state = replace(state, G=self.mine.get(call.t, state.G))
        update, state = super().round(state, x, call, work)
        self.mine[call.t + 1] = state.G
        return update, replace(state, G=replace(state.G, values=torch.zeros_like(state.G.values)))


@dataclass(frozen=True)
class Dice(FedAvg):
    """Draws from the global generator."""

    def round(self, state, x, call, work):
        update, state = super().round(state, x, call, work)
        return None if update is None else update * (1 + 1e-3 * torch.rand((), dtype=x.dtype)), state


@dataclass(frozen=True)
class HomeBody(FedAvg):
    """Makes its tensors on the default device."""

    def round(self, state, x, call, work):
        update, state = super().round(state, x, call, work)
        return (None if update is None else update + torch.zeros(len(x), dtype=x.dtype)), state


@dataclass(frozen=True)
class Single(FedAvg):
    """Computes in float32, whatever it is given."""

    def round(self, state, x, call, work):
        update, state = super().round(state, x, call, work)
        return None if update is None else update.float(), state


@dataclass(frozen=True)
class Overconfident(FedAvg):
    """FedAvg that says it is unbiased."""

    properties = Properties(limit="optimum on average")


@dataclass(frozen=True)
class NewModel(FedAvg):
    """Returns the new model instead of the update."""

    def round(self, state, x, call, work):
        update, state = super().round(state, x, call, work)
        return None if update is None else x + update, state


@dataclass(frozen=True)
class Doubled(FedAvg):
    """Takes twice the step."""

    def round(self, state, x, call, work):
        update, state = super().round(state, x, call, work)
        return None if update is None else 2 * update, state


@dataclass(frozen=True)
class EmptyMean(Memoryless):
    """The mean over nobody."""

    properties = Properties(limit="shares")

    def round(self, state, x, call, work):
        A = call.active
        return (work.sgd(A, x.expand(len(A), -1)) - x).mean(dim=0), state


@dataclass(frozen=True)
class Meddling(Scaffold):
    """Touches the control variates of those who are silent."""

    def round(self, state, x, call, work):
        update, after = super().round(state, x, call, work)
        return update, Controls(after.c, replace(after.c_i, values=after.c_i.values * 0.99))


@dataclass(frozen=True)
class Favourite(FedAvgKnown):
    """Divides by the p of the last client, as a released code does."""

    probability: str = "last_client"


@dataclass(frozen=True)
class EqualSteps(Memoryless):
    """FedAvg by gradients, whose clients all take as many steps as the one that takes the most."""

    properties = Properties(limit="shares")

    def round(self, state, x, call, work):
        if len(call.active) == 0:
            return None, state
        y = x.repeat(len(call.active), 1)
        for k in range(work.steps):
            y = y - call.lr * work.gradients(call.active, y, k)[0]
        return y.mean(dim=0) - x, state
