"""Synthetic(gamma, delta) of FedProx (Li 2020) as [CAF] uses it: each client labels by its own linear rule.

`synthetic_clustered` is the data of [CAF]'s released code: two clusters of clients, one of which has noisier labels.
"""

from typing import Any, Literal

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor, nn

from rollcall.tasks.base import Classifier, ClientData, natural_clients, need_least, need_shares
from rollcall.tasks.streams import stream, torch_stream

DIMENSION, CLASSES = 60, 10
CLUSTERED = 10
"""Dimension of the clustered data."""


class SoftmaxRegression(Classifier):
    """Cross-entropy of linear logits, plus ridge/2 ||x||^2 over weights and biases x."""

    def __init__(self, ridge: float, dimension: int = DIMENSION, outputs: int = CLASSES) -> None:
        super().__init__(lr=0.01, ridge=ridge)
        self.logits = nn.Linear(dimension, outputs)

    def forward(self, features: Float[Tensor, "n d"]) -> Float[Tensor, "n C"]:
        """Logits."""
        return self.logits(features.to(self.logits.weight.dtype))  # the data are in float64

    def least_losses(self, data: ClientData) -> Float[np.ndarray, "m"]:
        """F*_i [m] as in the released code of [CAF].

        That is the log-loss, on a client's training samples, of scikit-learn's softmax regression fitted to them
        (C = 1); 0 for a client with a single class.
        """
        features, labels = (column.double().numpy() for column in data.splits["train"])
        return np.array([_fitted_loss(features[rows], labels[rows]) for rows in data.parts])


def leaf_synthetic(
    seed: int,
    *,
    gamma: float = 0.5,
    delta: float = 0.5,
    clients: int = 100,
    validation: float = 0.0,
    test: float = 0.1,
    ridge: float = 0.0,
    labelling: Literal["own", "shared"] | float = "own",
) -> tuple[SoftmaxRegression, ClientData]:
    """Softmax regression on Synthetic(gamma, delta): each client has its own inputs and its own linear rule.

    Client k has floor(e^z) + 50 samples, z ~ N(4, 2^2), of x ~ N(v_k, Sigma), y = argmax(W_k x + b_k), where
    u_k ~ N(0, gamma^2), W_k and b_k ~ N(u_k, 1), B_k ~ N(0, delta^2), v_k ~ N(B_k, 1), Sigma = diag(j^-1.2), j from 1.

    All second arguments above are variances. So gamma, delta and the 2 of the sizes are standard deviations, as in the
    codes of FedProx and [CAF] (FedProx's paper prints N(0, alpha)). LEAF's later generator is different. As u_k is
    added to all classes, it cancels in the argmax: gamma changes no label, here and in those codes. The same shares of
    each client's samples are held out; the client trains on the rest.

    With gamma = delta = 0 clients still differ in W_k, b_k and v_k. With `labelling: shared` they do not: W and b
    ~ N(0, 1) are drawn once for all clients, W_k = W + gamma U_k, b_k = b + gamma c_k, U_k and c_k ~ N(0, 1), and
    v_k = B_k in all coordinates. With gamma = 0 this is `--iid` of [CAF]'s code, in which gamma has no effect; the
    deviations gamma U_k and gamma c_k are Rollcall's.

    A number s between 0 and 1 is between the two: W_k = (1 - s) W + (s + (1 - s) gamma) U_k, b_k alike, and v_k ~
    N(B_k, s^2). It is `shared` at 0; at 1 its law is that of `own`.

    Args:
        seed: of all draws.
        gamma: difference between the clients' rules if `labelling` is `shared`. With `own` it is meant so, but the
            rules differ by W_k and b_k for any gamma.
        delta: difference between the clients' inputs.
        clients: m, the number of clients.
        validation: share of each client's samples held out for validation, rounded.
        test: share of each client's samples held out for testing, rounded; a tenth in [CAF]'s code.
        ridge: see `SoftmaxRegression`; [CAF] uses 1e-2, as weight decay.
        labelling: each client has its `own` rule, or a deviation from a `shared` one, or s, see above.

    Raises:
        ValueError: an option out of range.
    """
    need_least(1, clients=clients)
    need_least(0, gamma=gamma, delta=delta, ridge=ridge)
    need_shares(validation, test)
    own = {"own": 1.0, "shared": 0.0}[labelling] if isinstance(labelling, str) else labelling
    if not 0 <= own <= 1:
        raise ValueError(f"labelling: {labelling} is not allowed; must be `own`, `shared` or in [0, 1]")
    rule = None if labelling == "own" else _rule(stream(seed, "leaf rule"))
    sizes = np.floor(stream(seed, "leaf sizes").lognormal(4, 2, clients)).astype(np.int64) + 50
    inputs, labels = zip(
        *(_samples(stream(seed, "leaf client", k), n, gamma, delta, rule, own) for k, n in enumerate(sizes.tolist())),
        strict=True,
    )
    rows: dict[str, list[np.ndarray]] = {"train": [], "validation": [], "test": []}
    for end, n in zip(np.cumsum(sizes).tolist(), sizes.tolist(), strict=True):
        bounds = [n - round(validation * n) - round(test * n), n - round(test * n)]
        for split, mine in zip(rows, np.split(np.arange(end - n, end), bounds), strict=True):
            rows[split].append(mine)
    with torch_stream(seed, "init"):
        task = SoftmaxRegression(ridge)
    return task, natural_clients([np.concatenate(inputs), np.concatenate(labels)], rows, CLASSES, seed)


class LogisticRegression(SoftmaxRegression):
    """Logistic loss of one linear logit z: the cross-entropy of the two logits (0, z)."""

    def __init__(self, ridge: float) -> None:
        super().__init__(ridge, CLUSTERED, 1)

    def forward(self, features: Float[Tensor, "n d"]) -> Float[Tensor, "n 2"]:
        """Logits (0, z)."""
        z = super().forward(features)
        return torch.cat([torch.zeros_like(z), z], dim=1)


def synthetic_clustered(
    seed: int, *, clients: int = 24, train: int = 50, test: int = 150, flipped: float = 0.2, ridge: float = 0.0
) -> tuple[LogisticRegression, ClientData]:
    """Logistic regression on x ~ N(0, I) in ten dimensions with labels 1 with probability p = sigmoid(theta . x).

    theta ~ N(0, I) is drawn once. A random half of the clients has labels with probability (1 - flipped) p + flipped (1
    - p) instead. The defaults are those of the experiment that [CAF]'s released code scripts. There all seeds share one
    draw of the data; here a seed draws the data, too.

    Args:
        seed: of all draws.
        clients: m, the number of clients.
        train: training samples of each client.
        test: test samples of each client.
        flipped: share of labels that are flipped in the second cluster.
        ridge: weight of the penalty ridge/2 ||x||^2.

    Raises:
        ValueError: an option out of range.
    """
    need_least(1, clients=clients, train=train, test=test)
    need_least(0, ridge=ridge)
    if not 0 <= flipped <= 1:
        raise ValueError(f"flipped: {flipped} is not allowed; must be in [0, 1]")
    draw = stream(seed, "clustered")
    theta = draw.standard_normal(CLUSTERED)
    noise = np.where(draw.permutation(clients) < clients // 2, 0.0, flipped)
    x = draw.standard_normal((clients, train + test, CLUSTERED))
    p = 1 / (1 + np.exp(-x @ theta))
    p += noise[:, None] * (1 - 2 * p)
    y = (draw.random(p.shape) < p).astype(np.int64)
    rows = np.arange(y.size).reshape(y.shape)
    with torch_stream(seed, "init"):
        task = LogisticRegression(ridge)
    columns = [x.reshape(-1, CLUSTERED), y.ravel()]
    return task, natural_clients(columns, {"train": [*rows[:, :train]], "test": [*rows[:, train:]]}, 2, seed)


def heterogeneity(
    seed: int,
    *,
    gamma: float,
    delta: float,
    labelling: Literal["own", "shared"] = "own",
    clients: int = 10,
    ridge: float = 0.01,
) -> Any:
    """Table of Gamma and Gamma' of Synthetic(gamma, delta), at exact minimisers ([CAF] Eq. 9, Theorem 3); an analysis.

    Columns: `gamma`, max_k F_k - F*_k at the minimiser of the mean of all F_k; `gamma_biased`, the same where the first
    half of the clients has nine times the weight of the second, as their availability is in [CAF].
    """
    import pandas as pd  # takes a third of a second, which a task need not wait for

    task, data = leaf_synthetic(seed, gamma=gamma, delta=delta, clients=clients, ridge=ridge, labelling=labelling)
    task = task.double()
    samples = [tuple(column[rows] for column in data.splits["train"]) for rows in data.parts]

    def losses(weights: Float[np.ndarray, "m"]) -> Float[np.ndarray, "m"]:
        """F_k at the minimiser of sum_k weights_k F_k."""
        search = torch.optim.LBFGS(
            task.parameters(), max_iter=2000, tolerance_grad=1e-6, tolerance_change=0, line_search_fn="strong_wolfe"
        )

        def objective() -> Tensor:
            search.zero_grad()
            total = torch.stack([w * task.loss(of) for w, of in zip(weights, samples, strict=True) if w]).sum()
            total.backward()  # type: ignore[no-untyped-call, unused-ignore]
            return total

        search.step(objective)  # type: ignore[no-untyped-call, unused-ignore]
        return np.array([task.loss(of).item() for of in samples])

    least = np.array([losses(only)[k] for k, only in enumerate(np.eye(clients))])
    biased = np.where(2 * np.arange(clients) < clients, 0.9, 0.1)
    gaps = [(losses(w / w.sum()) - least).max() for w in (np.ones(clients), biased)]
    return pd.DataFrame({"round": [0], "gamma": gaps[:1], "gamma_biased": gaps[1:]})


def _fitted_loss(features: np.ndarray, labels: np.ndarray) -> float:
    """The log-loss of a softmax regression on the samples it was fitted to."""
    # Importing scikit-learn takes half a second, which other tasks need not wait for.
    from sklearn.linear_model import LogisticRegression
    from sklearn.metrics import log_loss

    classes = len(np.unique(labels))
    if classes == 1:
        return 0.0
    # For two classes scikit-learn fits the difference w of their vectors w/2 and -w/2, whose penalty is half as large.
    fitted = LogisticRegression(C=2.0 if classes == 2 else 1.0, max_iter=1000).fit(features, labels)
    return float(log_loss(labels, fitted.predict_proba(features)))


Rule = tuple[Float[np.ndarray, "d C"], Float[np.ndarray, "C"]]
"""W and b, whose logits of x are x W + b."""


def _rule(draw: np.random.Generator) -> Rule:
    """Standard normal W and b."""
    return draw.standard_normal((DIMENSION, CLASSES)), draw.standard_normal(CLASSES)


def _samples(
    draw: np.random.Generator, n: int, gamma: float, delta: float, shared: Rule | None = None, own: float = 1.0
) -> tuple[np.ndarray, np.ndarray]:
    """A client's inputs [n, d] and labels [n], by its own rule or between it and a deviation from the shared one."""
    u, B = gamma * draw.standard_normal(), delta * draw.standard_normal()
    W, b = _rule(draw)
    v = B + own * draw.standard_normal(DIMENSION) if own else np.full(DIMENSION, B)
    if shared is None:
        W, b = u + W, u + b
    else:  # without u, which would cancel in the argmax
        W, b = (
            (1 - own) * common + (own + (1 - own) * gamma) * mine for common, mine in zip(shared, (W, b), strict=True)
        )
    deviations = np.arange(1, DIMENSION + 1) ** -0.6
    x = v + deviations * draw.standard_normal((n, DIMENSION))
    return x, (x @ W + b).argmax(axis=1)
