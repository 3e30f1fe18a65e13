"""FedDyn, FedNova, FedAvgM, FedStale, MimiC and the amplified methods in plain NumPy: see `oracle`.

Options that `rollout` has for all methods have other names here: the strength of FedDyn, alpha, is `strength`; the
amplification, eta, is `factor`; the server's rate in a method's own server step, eta_g, is `rate`.
"""

import numpy as np
import oracle  # by its name: tests replace its `gradient`
from oracle import train, watched


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
        for _ in range(oracle.steps_of(s, k)):
            # The gradient of L_k(y) - <grad_L_k, y> + alpha/2 ||y - x||^2.
            y = y - s.eta * (oracle.gradient(s, k, y) - grad_L[k] + strength * (y - s.x))
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
        tau = oracle.steps_of(s, i)
        # a_i[k]: how often the gradient of step k is in the sum of the tau momentum buffers.
        a = np.array([sum(rho**later for later in range(tau - k)) for k in range(tau)])
        G, y, buffer = [], s.x, np.zeros_like(s.x)
        for _ in range(tau):
            G.append(oracle.gradient(s, i, y))
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
        for _ in range(oracle.steps_of(s, i)):
            g = oracle.gradient(s, i, y)
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
        feddyn, fednova, amplified_fedavg, fedavgm, fedstale, mimic, amplified_scaffold,
    )
}  # fmt: skip
