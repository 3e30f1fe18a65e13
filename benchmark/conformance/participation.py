"""Checks of participation models and of sources of probabilities.

Each check takes the choice and returns a remark or nothing, or raises `CheckFailed`. Its docstring is its title.
"""

from collections.abc import Iterable

import numpy as np

from rollcall.benchmark.config.choice import Choice
from rollcall.benchmark.conformance.failure import expect, twice, unchanged
from rollcall.participation import FromFunction, Participation, Population

M, ROUNDS, SIGMAS = 12, 2000, 4.5
STREAM = 'stream(population.seed, "participation", t) of participation.streams'


def valid_ids(choice: Choice) -> None:
    """`active(t)` returns different client ids, ascending, as whole numbers in an array"""
    model = _model(choice)
    for t in range(50):
        ids = model.active(t)
        valid = isinstance(ids, np.ndarray) and ids.ndim == 1 and (not len(ids) or ids.dtype.kind in "iu")
        seen = f"{ids.dtype} {list(ids.shape)}" if isinstance(ids, np.ndarray) else f"a {type(ids).__name__}"
        hint = "; np.flatnonzero(mask) makes ids of a mask" if "bool" in seen or "float" in seen else ""
        expect(valid, "an array [a] of whole numbers", f"{seen} in round {t}{hint}")
        seen = f"{ids.tolist()} in round {t}"
        expect(not ((ids < 0) | (ids >= model.clients)).any(), f"ids from 0 to {model.clients - 1}", seen)
        expect((np.diff(ids) > 0).all(), "ascending ids, each once: return np.unique(ids)", seen)


def same_draw(choice: Choice) -> None:
    """the same seed gives the same rounds, without global random generators"""
    one, other = twice(lambda: _rounds(_model(choice), range(30)), STREAM)
    _same(one, other, f"random numbers from {STREAM}")


def any_order(choice: Choice) -> None:
    """a round does not depend on the rounds that were asked for before"""
    forwards, model = _rounds(_model(choice), range(30)), _model(choice)
    backwards = _rounds(model, reversed(range(30)))
    _same(forwards, backwards, "`active(t)` as a function of (seed, t): no counter, no generator in `self`")
    _same(forwards, _rounds(model, range(30)), "the same clients when a round is asked for again")


def knowledge(choice: Choice) -> None:
    """`probability`, `stationary` and `correlation` are vectors [m] in their range, or None"""
    model = _model(choice)
    values = {f"probability({t})": model.probability(t) for t in (0, 7)}
    values |= {name: getattr(model, name) for name in ("stationary", "share", "correlation")}
    for name, value in values.items():
        if value is None:
            continue
        low = -1 if name == "correlation" else 0
        vector = isinstance(value, np.ndarray) and value.shape == (model.clients,)
        seen = getattr(value, "shape", type(value).__name__)
        expect(vector, f"{name} as an array [{model.clients}], or None", seen)
        inside = np.isfinite(value).all() and (value >= low - 1e-12).all() and (value <= 1 + 1e-12).all()
        expect(inside, f"{name} in [{low}, 1]", np.round(value, 4).tolist())


def marginals(choice: Choice) -> str | None:
    """each client is active as often as `probability` says, to 4.5 standard errors"""
    runs = [_model(choice, seed) for seed in range(400)]
    if runs[0].probability(0) is None:
        return "probability unknown"
    for t in (0, 3):
        counts, expected, variance = np.zeros((3, runs[0].clients))
        for model in runs:
            counts[model.active(t)] += 1
            p = model.probability(t)
            assert p is not None
            expected, variance = expected + p, variance + p * (1 - p)
        error = np.sqrt(np.maximum(variance, 0.25))
        worst = int((np.abs(counts - expected) / error).argmax())
        n = len(runs)
        expect(
            abs(counts[worst] - expected[worst]) <= SIGMAS * error[worst],
            f"client {worst} active with probability {expected[worst] / n:.3f} in round {t} (probability({t}))",
            f"{counts[worst] / n:.3f} +- {error[worst] / n:.3f} over {n} seeds",
        )
    return None


def long_run(choice: Choice) -> str | None:
    """each client is active in the long run as often as `stationary` says, to 4.5 standard errors"""
    model = _model(choice)
    if model.stationary is None:
        return "stationary unknown"
    batches = np.zeros((20, model.clients))
    for t in range(ROUNDS):
        batches[t * 20 // ROUNDS, model.active(t)] += 20 / ROUNDS
    # Rounds may be correlated: the error comes from the means of 20 batches.
    error = np.maximum(batches.std(axis=0, ddof=1) / np.sqrt(20), 2 / ROUNDS)
    mean = batches.mean(axis=0)
    worst = int((np.abs(mean - model.stationary) / error).argmax())
    expect(
        abs(mean[worst] - model.stationary[worst]) <= SIGMAS * error[worst],
        f"client {worst} in {model.stationary[worst]:.3f} of the rounds (stationary)",
        f"{mean[worst]:.3f} +- {error[worst]:.3f} over {ROUNDS} rounds",
    )
    return None


def valid_probabilities(choice: Choice) -> None:
    """a probability in [0, 1] for each client"""
    p = np.asarray(choice.build(_population()), dtype=np.float64)
    fits = p.shape in ((), (M,))
    expect(fits, f"one number, or an array [{M}] with one for each client", f"shape {list(p.shape)}")
    inside = ((p >= 0) & (p <= 1)).all()
    expect(inside, "numbers in [0, 1]; np.clip(p, 0, 1) keeps them there", np.round(p, 4).tolist())


def same_probabilities(choice: Choice) -> None:
    """the same seed gives the same probabilities, without global random generators"""
    source = 'stream(population.seed, "probabilities") of participation.streams'
    twice(lambda: np.asarray(choice.build(_population())), source, "different probabilities in two calls")


def valid_variation(choice: Choice) -> None:
    """probabilities stay in [0, 1] and in their shape, and p is not changed"""
    p = np.linspace(0, 1, M)
    for t in range(100):
        with unchanged("p not to change; work on p.copy()", p, seen=f"it was modified in round {t}"):
            now = choice.bound()(p, t)
        valid = np.shape(now) == (M,) and ((now >= 0) & (now <= 1)).all()
        expect(valid, f"an array [{M}] in [0, 1]", f"{np.asarray(now).tolist()} in round {t}")


def _population(clients: int = M, seed: int = 3) -> Population:
    """Clients whose data have three classes."""
    histogram = 5 + np.arange(3 * clients).reshape(clients, 3) % 7
    return Population(clients, seed, histogram / histogram.sum(axis=1, keepdims=True), histogram)


def _model(choice: Choice, seed: int = 3) -> Participation:
    """A participation model of 12 clients; of as many as a mask, or the mask of a plain function, has."""
    mask = choice.options.get("mask")
    if choice.factory is FromFunction:
        mask = np.asarray(choice.options["function"].bound()(0, np.random.default_rng(0)))
        mask = mask if mask.dtype == bool else None
    clients = M if not isinstance(mask, np.ndarray) or mask.ndim == 0 else mask.shape[-1]
    model: Participation = choice.build(_population(clients, seed))
    return model


def _rounds(model: Participation, order: Iterable[int]) -> dict[int, list[int]]:
    return {t: [int(i) for i in model.active(t)] for t in order}


def _same(one: dict[int, list[int]], other: dict[int, list[int]], expected: str) -> None:
    for t, ids in one.items():
        expect(other[t] == ids, expected, f"clients {ids} and then {other[t]} in round {t}")
