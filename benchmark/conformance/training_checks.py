"""Checks of whole runs: engines, future rounds, and where training ends.

Each check returns a remark or nothing, or raises `CheckFailed`. Its docstring is its title in the report.
"""

from typing import Any

import numpy as np
import torch
from jaxtyping import Bool

from benchmark.conformance.failure import CheckFailed
from benchmark.conformance.subject import LR, MASK, H, P, Subject, U, shares
from benchmark.federation.simulation import simulate


def _trial(subject: Subject, mask: Bool[np.ndarray, "T m"], engine: str) -> dict[str, Any]:
    call = subject.call(0, mask[0])
    known = {name: getattr(call, name).numpy() for name in subject.method().requires}
    options = subject.choice.options
    return {
        "task": {"name": "quadratic", "targets": U, "curvature": H},
        "participation": {"name": "trace", "mask": mask, "wrap": False} | known,
        "algorithm": {"name": subject.choice.portable} | options,
        "local": {"steps": subject.steps, "lr": LR},
        "rounds": len(mask),
        "evaluation": {"every": len(mask)},
        "numerics": {"dtype": "float64", "engine": engine},
    }


ENGINES = ("sequential", "vectorised")


def engines(subject: Subject) -> None:
    """every engine matches the closed form to 1e-10"""
    path = [step.x_after.numpy() for step in subject.rounds()]
    size = max(1.0, float(np.abs(path).max()))
    for engine in ENGINES:
        server = simulate(_trial(subject, MASK, engine)).server
        if not np.abs(server - path[-1]).max() < 1e-10 * size:
            raise CheckFailed(f"{path[-1].tolist()} from engine {engine}", str(server.tolist()))


def the_future(subject: Subject) -> None:
    """a round does not depend on who is active in later rounds"""
    for t in (5, 8):
        other = MASK.copy()
        other[t:] = ~other[t:]
        one, two = (_trial(subject, mask, "sequential") | {"rounds": t} for mask in (MASK, other))
        first, second = (simulate(trial | {"evaluation": {"every": t}}).server for trial in (one, two))
        if not np.array_equal(first, second):
            raise CheckFailed(
                f"the same model after {t} rounds, whoever is active from round {t} on",
                f"{first.tolist()} and {second.tolist()}",
            )


def full_participation(subject: Subject) -> None:
    """with full participation and K = 1, the first round is a gradient step on F (properties.step)"""
    (step,) = subject.rounds(np.ones((1, len(U)), dtype=bool), p=np.ones(len(U)), steps=1)
    descent, declared = (H[:, None] * U).mean(axis=0), step.method.properties.step
    if declared == "coordinates":
        if not (step.x_after.numpy() * descent > 0).all():
            raise CheckFailed(f"a step with the signs of {descent.tolist()}", str(step.x_after.tolist()))
        return
    length = float(step.x_after.numpy() @ descent / (descent @ descent))
    size = {"mean": LR, "sum": LR * len(U), "some": length}[declared]
    expected = size * descent
    if not np.allclose(step.x_after.numpy(), expected, rtol=1e-10, atol=0):
        raise CheckFailed(
            f"x = {expected.tolist()}, a step of {size:g} (properties.step: {declared})",
            str(step.x_after.tolist()),
        )


def limit(subject: Subject) -> str:
    """under biased participation the model converges to what properties.limit says"""
    T, batches = 2000, 20
    mask = np.random.default_rng(11).random((T, len(P))) < P
    path = torch.stack([step.x_after for step in subject.rounds(mask, steps=1)]).numpy()
    optimum = H @ U / H.sum()
    declared = subject.method().properties.limit
    means = path[T // 2 :].reshape(batches, -1, path.shape[1]).mean(axis=1)
    mean, error = means.mean(axis=0), means.std(axis=0, ddof=1) / np.sqrt(batches)
    away = float(np.linalg.norm(mean - optimum))
    if not np.isfinite(path).all():
        raise CheckFailed("finite models", f"it diverges within {T} rounds")
    if declared == "elsewhere":
        return f"on average {away:.2g} from the optimum"
    if declared == "optimum":
        last = float(np.linalg.norm(path[-1] - optimum))
        if last > 1e-8:
            raise CheckFailed("the optimum to 1e-8 (properties.limit)", f"{last:.2g} away after {T} rounds")
        return f"{last:.0e} from the optimum"
    weights = {"optimum on average": np.ones(len(P)), "shares": shares(P), "probabilities": P}[declared] * H
    expected = weights @ U / weights.sum()
    if (np.abs(mean - expected) > np.maximum(5 * error, 0.01)).any():
        raise CheckFailed(
            f"{np.round(expected, 3).tolist()} on average (properties.limit: {declared})",
            f"{np.round(mean, 3).tolist()} +- {np.round(error, 3).tolist()}; the optimum is "
            f"{np.round(optimum, 3).tolist()}",
        )
    return f"on average {away:.2g} from the optimum, as declared"
