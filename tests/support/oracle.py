"""The methods once more, in plain NumPy on quadratics, from their papers and without a line of the suite.

Clients one after another, sums written out, no vector is shared: slow, and meant to be read beside the papers.
"""

from itertools import pairwise
from types import SimpleNamespace

import numpy as np


def rollout(name, u, h, mask, *, K, eta, p=None, pi=None, lam=None, alpha=None, eta_g=1.0, **options):
    """The server models x^0 ... x^T, [T + 1, d], and what the method remembers at the end.

    Args:
        name: of the method.
        u, h: targets [m, d] and curvatures [m]: F_i = 0.5 h_i ||x - u_i||^2.
        mask: [T, m].
        K: local steps, or those of each client.
        eta: rate of round t, as a function.
        p: [T, m]; pi, lam: [m]: what the oracle knows.
        alpha: [m], by default 1/m.
        eta_g: the server's rate.
        options: of the method. Where `rollout` has the name for all methods they have another one: the alpha of FedDyn
            is `strength`, the eta of an amplification `factor`, the eta_g of a method's own server step `rate`.
    """
    T, m = mask.shape
    s = SimpleNamespace(
        m=m, K=K, u=u, h=h, pi=pi, lam=lam, eta_g=eta_g, x=np.zeros(u.shape[1]), alpha=np.full(m, 1 / m), memory={}
    )
    if alpha is not None:
        s.alpha = alpha
    path = [s.x.copy()]
    for t in range(T):
        s.t, s.eta, s.A = t, eta(t), [i for i in range(m) if mask[t, i]]
        s.p = None if p is None else p[t]
        METHODS[name](s, s.memory, **options)
        path.append(s.x.copy())
    return np.array(path), s.memory


def steps_of(s, i):
    return s.K if np.isscalar(s.K) else s.K[i]


def gradient(s, i, y):
    return s.h[i] * (y - s.u[i])


def loss(s, i, y):
    return 0.5 * s.h[i] * sum((y - s.u[i]) ** 2)


def train(s, i, y, scale=1.0, correct=0.0, steps=None):
    for _ in range(steps_of(s, i) if steps is None else steps):
        y = y - s.eta * scale * (gradient(s, i, y) + correct)
    return y


def move(s, weights):
    """x += eta_g sum_i w_i D_i over a dictionary of weights."""
    step = np.zeros_like(s.x)
    for i, w in weights.items():
        step = step + w * (train(s, i, s.x) - s.x)
    s.x = s.x + s.eta_g * step


def local_sgd(s, memory):
    move(s, dict.fromkeys(range(s.m), 1 / s.m))


def fedavg(s, memory):
    move(s, {i: 1 / len(s.A) for i in s.A})


def fedavg_all(s, memory):
    move(s, dict.fromkeys(s.A, 1 / s.m))


def fedavg_known(s, memory, probability="own"):
    move(s, {i: 1 / (s.m * s.p[i if probability == "own" else s.m - 1]) for i in s.A})


def fedsgd(s, memory):
    if s.A:
        s.x = s.x - s.eta_g * s.eta * sum(gradient(s, i, s.x) for i in s.A) / len(s.A)


def fedsgd_iw(s, memory, delta=0.01, share=None):
    Z = memory.setdefault("Z", np.zeros(s.m))
    step = 0
    for i in s.A:
        Z[i] += 1 / len(s.A)
        c = max(Z[i] / (s.t + 1), delta) if share is None else share[i]
        step = step + gradient(s, i, s.x) / (s.m * c) / len(s.A)
    s.x = s.x - s.eta_g * s.eta * step


def fedavg_debiased(s, memory, cap=None, horizon=None, oracle=False):
    n = memory.setdefault("n", np.zeros(s.m))
    ends = []
    for i in s.A:
        n[i] += 1
        nu = (s.t + 1) * len(s.A) / (n[i] * s.m) if horizon is None else horizon / n[i]
        nu = len(s.A) / (s.m * s.pi[i]) if oracle else nu
        ends.append(train(s, i, s.x, scale=nu if cap is None else min(nu, cap)))
    if ends:
        s.x = s.x + s.eta_g * (sum(ends) / len(ends) - s.x)


def watched(s, memory):
    """pi and lambda by counting, one round on and one off for a prior."""
    seen = memory.setdefault("seen", [])
    seen.append([i in s.A for i in range(s.m)])
    pi, lam = np.zeros(s.m), np.zeros(s.m)
    for i in range(s.m):
        column = [row[i] for row in seen]
        pairs = list(pairwise(column))
        on_on = (pairs.count((True, True)) + 1) / (column[:-1].count(True) + 2)
        off_off = (pairs.count((False, False)) + 1) / (column[:-1].count(False) + 2)
        pi[i], lam[i] = (column.count(True) + 1) / (len(column) + 2), on_on + off_off - 1
    return pi, lam


def unbiased(s, memory, oracle=True):
    pi = s.pi if oracle else watched(s, memory)[0]
    move(s, {i: s.alpha[i] / pi[i] for i in s.A})


def adafed(s, memory, oracle=True):
    pi = s.pi if oracle else watched(s, memory)[0]
    total = sum(s.alpha[i] / pi[i] for i in s.A)
    move(s, {i: s.alpha[i] / pi[i] / total for i in s.A})


def more_available(s, memory, oracle=True):
    pi = s.pi if oracle else watched(s, memory)[0]
    move(s, {i: s.alpha[i] / pi[i] for i in s.A if pi[i] > pi.mean() - 1e-9})


def fedau(s, memory, cutoff=50, intervals="before", divisor="clients"):
    if intervals == "with_current":
        fedau_as_focus_released_it(s, memory, cutoff)
        return
    intervals = memory.setdefault("intervals", [[] for _ in range(s.m)])
    waiting = memory.setdefault("waiting", [0] * s.m)
    move(s, {i: (np.mean(intervals[i]) if intervals[i] else 1.0) / s.m for i in s.A})
    for i in range(s.m):
        waiting[i] += 1
        if i in s.A or waiting[i] == cutoff:
            intervals[i].append(waiting[i])
            waiting[i] = 0


def f3ast(s, memory, capacity=10, beta=0.01, start=1.0, selection="paper", oracle=False):
    r = np.array(s.pi) if oracle else memory.setdefault("r", np.full(s.m, start))
    S = s.A
    if len(s.A) >= capacity:
        last = 1 if selection == "paper" else -1  # which of equal rates comes first
        ranked = sorted(range(len(s.A)), key=lambda at: (r[s.A[at]] / s.alpha[s.A[at]], last * at))[:capacity]
        S = [s.A[position] for position in ranked] if selection == "paper" else ranked
    for i in range(0 if oracle else s.m):
        r[i] = (1 - beta) * r[i] + beta * (i in S)
    move(s, {i: s.alpha[i] / r[i] for i in S})


def fedprox(s, memory, mu=0.01):
    step = 0
    for i in s.A:
        y = s.x
        for _ in range(steps_of(s, i)):
            y = y - s.eta * (gradient(s, i, y) + mu * (y - s.x))
        step = step + (y - s.x) / len(s.A)
    s.x = s.x + s.eta_g * step


def fedau_as_focus_released_it(s, memory, cutoff):
    weight = memory.setdefault("weight", np.ones(s.m))
    count, waiting = memory.setdefault("count", [0] * s.m), memory.setdefault("waiting", [0] * s.m)
    for i in range(s.m):
        waiting[i] += 1
        if i in s.A or waiting[i] == cutoff:
            weight[i] = (count[i] * weight[i] + waiting[i]) / (count[i] + 1)
            count[i] += 1
            waiting[i] = 0
    move(s, {i: weight[i] / sum(weight[j] for j in s.A) for i in s.A})


def mifa(s, memory, wait_for_all=False, remember="gradients"):
    G = memory.setdefault("G", np.zeros_like(s.u))
    if remember == "differences":
        ends = memory.setdefault("ends", {})
        for i in s.A:
            end = train(s, i, s.x)
            G[i], ends[i] = ends.get(i, 0) - end, end
        s.x = s.x - s.eta_g * sum(G) / s.m
        return
    heard = memory.setdefault("heard", set())
    rate = s.eta if remember == "gradients" else 1.0
    for i in s.A:
        G[i] = (s.x - train(s, i, s.x)) / rate
        heard.add(i)
    if len(heard) == s.m or not wait_for_all:
        s.x = s.x - s.eta_g * rate * sum(G) / s.m


def fedvarp(s, memory):
    y = memory.setdefault("y", np.zeros_like(s.u))
    if not s.A:
        return
    D = {i: train(s, i, s.x) - s.x for i in s.A}
    v = sum(D[i] - y[i] for i in s.A) / len(s.A) + sum(y) / s.m
    for i in s.A:
        y[i] = D[i]
    s.x = s.x + s.eta_g * v


def scaffold(s, memory, option="II"):
    c = memory.setdefault("c", np.zeros_like(s.x))
    c_i = memory.setdefault("c_i", np.zeros_like(s.u))
    if not s.A:
        return
    moved, new = 0, {}
    for i in s.A:
        y = train(s, i, s.x, correct=c - c_i[i])
        new[i] = gradient(s, i, s.x) if option == "I" else c_i[i] - c + (s.x - y) / (steps_of(s, i) * s.eta)
        moved = moved + (y - s.x) / len(s.A)
    memory["c"] = c + sum(new[i] - c_i[i] for i in s.A) / s.m
    for i in s.A:
        c_i[i] = new[i]
    s.x = s.x + s.eta_g * moved


def scaffnew(s, memory, lengths=None, first_shift="zero", shift="on_return"):
    h = memory.setdefault("h", np.zeros_like(s.u))
    last = memory.setdefault("last", {})
    ends = {}
    for i in s.A:
        if i in last:
            xh, rate = last[i]
            h[i] = h[i] + (s.x - xh) / (steps_of(s, i) * rate)
        elif first_shift == "model":
            h[i] = s.x / (steps_of(s, i) * s.eta)
        ends[i] = train(s, i, s.x, correct=-h[i], steps=None if lengths is None else lengths[s.t][i])
        last[i] = (ends[i], s.eta)
    if s.A:
        s.x = sum(ends.values()) / len(s.A)
    if shift == "at_once":
        last.clear()
        for i in s.A:
            h[i] = h[i] + (s.x - ends[i]) / (steps_of(s, i) * s.eta)


def fedpbc(s, memory, scale=1.0):
    mine = memory.setdefault("mine", [s.x] * s.m)
    for i in range(s.m):
        mine[i] = mine[i] + scale * (train(s, i, mine[i]) - mine[i])
    if s.A:
        s.x = sum(mine[i] for i in s.A) / len(s.A)
        for i in s.A:
            mine[i] = s.x


def fedawe(s, memory, scale=1.0, clip=None):
    mine = memory.setdefault("mine", [s.x] * s.m)
    tau = memory.setdefault("tau", [-1] * s.m)
    if not s.A:
        return
    step = sum((s.t - tau[i]) * (train(s, i, mine[i]) - mine[i]) for i in s.A) / len(s.A)
    length = np.sqrt(sum(step**2))
    if clip is not None and length > clip:
        step = step * clip / length
    s.x = sum(mine[i] for i in s.A) / len(s.A) + scale * step
    for i in s.A:
        mine[i], tau[i] = s.x, s.t


def focus(s, memory, empty="step"):
    y = memory.setdefault("y", np.zeros_like(s.x))
    h = memory.setdefault("h", np.zeros_like(s.u))
    if not s.A and empty == "skip":
        return
    for i in s.A:
        z, y_i = s.x, np.zeros_like(s.x)
        for _ in range(steps_of(s, i)):
            g = gradient(s, i, z)
            y_i = y_i + g - h[i]
            h[i] = g
            z = z - s.eta * y_i
        y += y_i
    s.x = s.x - s.eta_g * s.eta * y


def ca_fed(
    s, memory, kappa2=1.0, beta=1.0, tau=0.0, oracle=True, ties="keep", bias_factor=4.0, least="running", optimum=0.0
):
    pi, lam = (s.pi, s.lam) if oracle else watched(s, memory)
    if not s.A:
        return
    F = {i: loss(s, i, s.x) for i in s.A}
    if "Fh" not in memory:
        memory["Fh"] = np.array([F.get(i, np.mean(list(F.values()))) for i in range(s.m)])
        memory["least"] = memory["Fh"].copy()
    else:
        for i in s.A:
            memory["Fh"][i] = (1 - beta) * memory["Fh"][i] + beta * F[i]
        memory["least"] = np.minimum(memory["least"], memory["Fh"])
    gap = memory["Fh"] - {"running": memory["least"], "zero": 0, "optimum": optimum}[least]

    def eps(q):
        P = pi * q / sum(pi * q)
        TV = 0.5 * sum(abs(s.alpha - P))
        return sum(gap * P) + bias_factor * kappa2 * TV**2 * max(gap)

    q = s.alpha / pi
    for order in (sorted(range(s.m), key=lambda k: (-abs(lam[k]), k)), sorted(range(s.m), key=lambda k: (pi[k], k))):
        for k in order:
            trial = q.copy()
            trial[k] = 0
            if q[k] == 0:
                continue
            if not trial.any():
                break
            gain = eps(q) - eps(trial)
            if gain >= tau and (gain > 1e-15 or ties != "keep"):
                q = trial
    memory.setdefault("excluded", []).append([k for k in range(s.m) if q[k] == 0])
    move(s, {i: q[i] for i in s.A if q[i] > 0})


def mean_move(s):
    """(1/|A|) sum over A of x_i(K) - x."""
    return sum(train(s, i, s.x) - s.x for i in s.A) / len(s.A)


def feddyn(s, memory, strength=0.01):
    grad_L = memory.setdefault("grad_L", np.zeros((s.m, len(s.x))))
    h = memory.setdefault("h", np.zeros_like(s.x))
    if not s.A:
        return
    theta = {}
    for k in s.A:
        y = s.x
        for _ in range(steps_of(s, k)):
            # The gradient of L_k(y) - <grad_L_k, y> + alpha/2 ||y - x||^2.
            y = y - s.eta * (gradient(s, k, y) - grad_L[k] + strength * (y - s.x))
        theta[k] = y
        grad_L[k] = grad_L[k] - strength * (y - s.x)
    h = h - strength / s.m * sum(theta[k] - s.x for k in s.A)
    memory["h"] = h
    memory["mean_of_active"] = sum(theta.values()) / len(s.A)
    s.x = memory["mean_of_active"] - h / strength


def fednova(s, memory, rho=0.0):
    if not s.A:
        return
    p = {i: s.alpha[i] / sum(s.alpha[j] for j in s.A) for i in s.A}
    tau_eff, direction = 0.0, np.zeros_like(s.x)
    for i in s.A:
        tau = steps_of(s, i)
        # a_i[k]: how often the gradient of step k is in the sum of the tau momentum buffers.
        a = np.array([sum(rho**later for later in range(tau - k)) for k in range(tau)])
        G, y, buffer = [], s.x, np.zeros_like(s.x)
        for _ in range(tau):
            G.append(gradient(s, i, y))
            buffer = rho * buffer + G[-1]
            y = y - s.eta * buffer
        d = sum(a_k * g for a_k, g in zip(a, G, strict=True)) / sum(a)
        tau_eff += p[i] * sum(a)
        direction = direction + p[i] * s.eta * d
    s.x = s.x - s.eta_g * tau_eff * direction


def amplified_fedavg(s, memory, factor=10.0, P=500):
    if s.t == 0:
        memory.update(t0=0, x_t0=s.x, u=np.zeros_like(s.x))
    if s.A:
        Delta = mean_move(s)
        memory["u"] = memory["u"] + Delta
        s.x = s.x + Delta
    if s.t + 1 - memory["t0"] == P:
        s.x = memory["x_t0"] + factor * memory["u"]
        memory.update(t0=s.t + 1, x_t0=s.x, u=np.zeros_like(s.x))


def fedavgm(s, memory, beta=0.9, rate=1.0):
    if s.A:
        Delta_w = -mean_move(s)
        memory["v"] = beta * memory.get("v", 0.0) + Delta_w
        s.x = s.x - rate * memory["v"]


def fedstale(s, memory, beta=0.5, empty="step", oracle=True):
    p = s.pi if oracle else watched(s, memory)[0]
    h = memory.setdefault("h", [np.zeros_like(s.x)] * s.m)
    if not s.A and empty == "skip":
        return
    D = {i: train(s, i, s.x) - s.x for i in s.A}
    fresh, stale = np.zeros_like(s.x), np.zeros_like(s.x)
    for i in range(s.m):
        if i in s.A:
            fresh = fresh + s.alpha[i] / p[i] * D[i]
            stale = stale + (s.alpha[i] - s.alpha[i] / p[i]) * h[i]
        else:
            stale = stale + s.alpha[i] * h[i]
    s.x = s.x + s.eta_g * (fresh + beta * stale)
    for i in s.A:
        h[i] = D[i]


def mimic(s, memory):
    """As released: the last update of each client, and the server's step of that round, stored apart."""
    last, central = memory.setdefault("last", {}), memory.setdefault("central", {})
    if not s.A:
        return
    modified, D = 0, {}
    for i in s.A:
        D[i] = train(s, i, s.x) - s.x
        modified = modified + D[i] / len(s.A)
        if i in last:
            modified = modified + (central[i] - last[i]) / len(s.A)
    for i in s.A:
        last[i], central[i] = D[i], modified
    s.x = s.x + s.eta_g * modified


def amplified_scaffold(s, memory, gamma=1.5, P=50):
    if s.t == 0:
        memory.update(c=np.zeros_like(s.x), c_i=np.zeros((s.m, len(s.x))), seen={}, x_0=s.x)
    c, c_i, seen = memory["c"], memory["c_i"], memory["seen"]
    ends = []
    for i in s.A:
        y = s.x
        for _ in range(steps_of(s, i)):
            g = gradient(s, i, y)
            seen.setdefault(i, []).append(g)
            y = y - s.eta * (g - c_i[i] + c)
        ends.append(y)
    if ends:
        s.x = sum(ends) / len(ends)
    if (s.t + 1) % P == 0:
        s.x = memory["x_0"] + gamma * (s.x - memory["x_0"])
        for i, gradients in seen.items():
            c_i[i] = sum(gradients) / len(gradients)
        memory.update(c=sum(c_i) / s.m, seen={}, x_0=s.x)


METHODS = {
    method.__name__: method
    for method in (
        local_sgd, fedavg, fedavg_all, fedavg_known, fedsgd, fedsgd_iw, fedavg_debiased, unbiased, adafed,
        more_available, fedau, f3ast, fedprox, mifa, fedvarp, scaffold, scaffnew, fedpbc, fedawe, focus, ca_fed,
        feddyn, fednova, amplified_fedavg, fedavgm, fedstale, mimic, amplified_scaffold,
    )
}  # fmt: skip
