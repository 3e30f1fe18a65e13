"""The checks. Each takes a `Subject` and returns, with a remark or none, or raises `Broken`.

What a check is about is its docstring, which the report prints.
"""

import io
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import torch
from jaxtyping import Bool
from torch import Tensor

from algorithms import Round
from benchmark.conformance.subject import EVERYONE, LR, MASK, H, P, Step, Subject, U, by_client, leaves, shares, shifted
from benchmark.federation.simulation import simulate
from benchmark.federation.state import StateBuffers


class Broken(Exception):
    """A check that failed: what was expected, and what was seen."""

    def __init__(self, expected: str, seen: str) -> None:
        super().__init__(f"expected {expected}; seen: {seen}")
        self.expected = expected
        self.seen = seen


def shapes_and_types(subject: Subject) -> None:
    """update [d] and state keep shape, dtype and finite values"""
    for dtype in (torch.float32, torch.float64):
        for step in subject.rounds(dtype=dtype):
            if step.update is not None and (step.update.shape != (2,) or step.update.dtype != dtype):
                raise Broken(f"an update [2] of {dtype}, as x is", f"{list(step.update.shape)} of {step.update.dtype}")
            if not step.x_after.isfinite().all():
                raise Broken("finite numbers", f"x = {step.x_after.tolist()} after round {step.call.t}")
            for name, leaf in leaves(step.after).items():
                was = leaves(step.before)[name]
                if leaf.shape != was.shape or leaf.dtype != was.dtype:
                    raise Broken(
                        f"state.{name} {list(was.shape)} of {was.dtype}, as before",
                        f"{list(leaf.shape)} of {leaf.dtype} after round {step.call.t}",
                    )
                if leaf.is_floating_point() and leaf.dtype != dtype:
                    raise Broken(f"state.{name} of {dtype}, as x is", str(leaf.dtype))
        evaluated = step.method.eval_model(step.after, step.x_after)
        if evaluated.shape != (2,) or evaluated.dtype != dtype:
            raise Broken(f"an evaluated model [2] of {dtype}", f"{list(evaluated.shape)} of {evaluated.dtype}")


def devices(subject: Subject) -> None:
    """new tensors are made where x is"""
    # Whatever is made without naming a device lands on one that holds no numbers, and cannot be used with x.
    method, x = subject.method(), torch.zeros(2, dtype=torch.float64)
    rounds = [(subject.call(t, active), subject.work()) for t, active in enumerate(MASK)]
    try:
        with torch.device("meta"):
            state = method.init(x, len(U))
            for call, work in rounds:
                update, state = method.round(state, x, call, work)
                for name, leaf in {"update": x if update is None else update, **leaves(state)}.items():
                    if leaf.is_meta:
                        raise Broken(f"{name} on the device of x", "one made on the default device")
    except (RuntimeError, NotImplementedError) as error:
        seen = str(error).splitlines()[0]
        raise Broken("tensors made with device=x.device (or x.new_zeros ...)", seen) from None


def inputs_unmodified(subject: Subject) -> None:
    """x, state and call stay as they were given"""
    method, x = subject.method(), torch.zeros(2, dtype=torch.float64)
    state = method.init(x, len(U))
    for t, active in enumerate(MASK):
        call = subject.call(t, active)
        copies = {name: tensor.clone() for name, tensor in _given(x, state, call).items()}
        update, after = method.round(state, x, call, subject.work())
        for name, tensor in _given(x, state, call).items():
            if not torch.equal(tensor, copies[name]):
                raise Broken(f"{name} unchanged by the round", f"it was written to in round {t}")
        x, state = x if update is None else x + update, after


def _given(x: Tensor, state: Any, call: Round) -> dict[str, Tensor]:
    """What a round is given, by name."""
    of_call = {f"call.{name}": value for name, value in vars(call).items() if isinstance(value, Tensor)}
    return {"x": x} | {f"state.{name}": leaf for name, leaf in leaves(state).items()} | of_call


def deterministic(subject: Subject) -> None:
    """the same rounds give the same bits, whatever the global generators say"""
    runs = []
    for seed in (1, 2):
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            np.random.seed(seed)  # noqa: NPY002
            before = torch.get_rng_state()
            runs.append([step.x_after for step in subject.rounds()])
            if not torch.equal(before, torch.get_rng_state()):
                raise Broken("draws from call.generator()", "numbers drawn from torch's global generator")
    for t, (one, other) in enumerate(zip(*runs, strict=True)):
        if not torch.equal(one, other):
            raise Broken("equal models in two runs", f"{one.tolist()} and {other.tolist()} after round {t}")


def renumbering(subject: Subject) -> None:
    """the clients' numbers mean nothing"""
    order = np.array([3, 0, 4, 1, 2])
    renumbered = subject.rounds(MASK[:, order], clients=order)
    for one, other in zip(subject.rounds(), renumbered, strict=True):
        if not torch.allclose(one.x_after, other.x_after, rtol=1e-9, atol=1e-9):
            raise Broken(
                "the same model when clients are renumbered",
                f"{one.x_after.tolist()} and {other.x_after.tolist()} after round {one.call.t}",
            )


def only_the_active_work(subject: Subject) -> None:
    """clients without an uplink are not asked to compute (unless properties.asks_all)"""
    for step in subject.rounds():
        silent = step.work.asked - set(step.call.active.tolist())
        if silent and not step.method.properties.asks_all:
            raise Broken(
                f"work for clients {step.call.active.tolist()} alone in round {step.call.t}",
                f"clients {sorted(silent)} were asked too; pass ids, not weights of 0",
            )


def own_steps(subject: Subject) -> None:
    """a client that takes fewer steps than others is asked for no more"""
    if subject.steps == 1 or any(step.work.beyond for step in subject.rounds()):
        return  # one gradient a round, or a number of steps that the method draws itself
    for step in subject.rounds(steps=np.array([3, 1, 2, 1, 3])):
        if step.work.beyond:
            raise Broken(
                "K_i = work.steps_of(clients) steps of each client (see algorithms.local_steps)",
                f"gradients of clients {sorted(step.work.beyond)} beyond their last step in round {step.call.t}",
            )


def silent_clients_stay(subject: Subject) -> None:
    """the state of silent clients is not touched (unless named in properties.ages)"""
    for step in subject.rounds():
        after = by_client(step.after, len(U))
        silent = [i for i in range(len(U)) if i not in step.call.active.tolist()]
        for name, was in by_client(step.before, len(U)).items():
            if name.partition(".")[0] in step.method.properties.ages:
                continue
            for i in silent:
                if not torch.equal(was[i], after[name][i]):
                    raise Broken(
                        f"state.{name}[{i}] unchanged in round {step.call.t}, client {i} being silent",
                        f"{was[i].tolist()} became {after[name][i].tolist()}",
                    )


def state_is_kept(subject: Subject) -> None:
    """what is kept of clients changes when they take part"""
    changed = dict.fromkeys(by_client(subject.method().init(torch.zeros(2).double(), len(U)), len(U)), False)
    for step in subject.rounds():
        for name, was in by_client(step.before, len(U)).items():
            now = by_client(step.after, len(U))[name]
            changed[name] |= any(not torch.equal(was[i], now[i]) for i in step.call.active.tolist())
    for name, ever in changed.items():
        if not ever:
            raise Broken(f"state.{name} renewed for clients that take part", f"it is the same after {len(MASK)} rounds")


def state_is_used(subject: Subject) -> None:
    """what is kept of a client matters in a later round"""
    steps = list(subject.rounds())
    rows = by_client(steps[0].after, len(U))
    if rows and all(
        _goes_on(subject, step, step.after) == _goes_on(subject, step, shifted(step.after, client))
        for step in steps
        for client in range(len(U))
    ):
        raise Broken(
            f"other models once state.{', state.'.join(rows)} of a client is changed", "the same in all later rounds"
        )


def _goes_on(subject: Subject, step: Step, state: Any) -> list[list[float]]:
    """The models of the rounds after a step, from a state."""
    x, path = step.x_after, []
    for t in range(step.call.t + 1, len(MASK)):
        update, state = step.method.round(state, x, subject.call(t, MASK[t]), subject.work())
        x = x if update is None else x + update
        path.append(x.tolist())
    return path


def empty_rounds(subject: Subject) -> None:
    """a round without anybody is defined, also as the first"""
    mask = np.zeros((4, len(U)), dtype=bool)
    mask[2] = True
    for step in subject.rounds(mask):
        if not step.x_after.isfinite().all():
            raise Broken("a finite model after an empty round", f"{step.x_after.tolist()} after round {step.call.t}")


def single_clients(subject: Subject) -> None:
    """a round of one client, and a federation of one, are defined"""
    for mask, m in ((np.eye(len(U), dtype=bool), len(U)), (np.array([[True], [False], [True]]), 1)):
        for step in subject.rounds(mask, clients=EVERYONE[:m]):
            if not step.x_after.isfinite().all():
                raise Broken(f"finite models with {m} clients", f"{step.x_after.tolist()} after round {step.call.t}")


def reload(subject: Subject) -> None:
    """a run that is saved and loaded between rounds ends with the same bits"""
    whole = [step.x_after for step in subject.rounds()]
    x, method = torch.zeros(2, dtype=torch.float64), subject.method()
    buffers = StateBuffers(method.init(x, len(U)))
    for t, active in enumerate(MASK):
        update, state = method.round(buffers.get(), x, subject.call(t, active), subject.work())
        x = x if update is None else x + update
        buffers.set(state)
        file = io.BytesIO()
        torch.save(buffers.state_dict(), file)
        file.seek(0)
        method = subject.method()  # a new process knows nothing but the checkpoint
        buffers = StateBuffers(method.init(torch.zeros(2, dtype=torch.float64), len(U)))
        buffers.load_state_dict(torch.load(file, weights_only=True))
        if not torch.equal(x, whole[t]):
            raise Broken(
                "the same model with a checkpoint after every round; all memory belongs in the state",
                f"{x.tolist()} instead of {whole[t].tolist()} after round {t}",
            )


def _trial(subject: Subject, mask: Bool[np.ndarray, "T m"], engine: str) -> dict[str, Any]:
    call = subject.call(0, mask[0])
    known = {name: getattr(call, name).numpy() for name in subject.method().requires}
    options = subject.choice.options
    return {
        "task": {"name": "quadratic", "targets": U, "curvature": H},
        "participation": {"name": "trace", "mask": mask, "wrap": False} | known,
        "algorithm": {"name": subject.choice.name} | options,
        "local": {"steps": subject.steps, "lr": LR},
        "rounds": len(mask),
        "evaluation": {"every": len(mask)},
        "numerics": {"dtype": "float64", "engine": engine},
    }


# Not `compiled`: the vectorised engine once more, after compiling for longer than all checks take.
ENGINES = ("sequential", "vectorised")


def engines(subject: Subject) -> None:
    """every engine gives what the closed form gives, to 1e-10"""
    path = [step.x_after.numpy() for step in subject.rounds()]
    size = max(1.0, float(np.abs(path).max()))
    for engine in ENGINES:
        found = simulate(_trial(subject, MASK, engine)).server
        if not np.abs(found - path[-1]).max() < 1e-10 * size:
            raise Broken(f"{path[-1].tolist()} by engine {engine}", str(found.tolist()))


def the_future(subject: Subject) -> None:
    """a round does not depend on who answers in later ones"""
    for t in (5, 8):
        other = MASK.copy()
        other[t:] = ~other[t:]
        one, two = (_trial(subject, mask, "sequential") | {"rounds": t} for mask in (MASK, other))
        first, second = (simulate(trial | {"evaluation": {"every": t}}).server for trial in (one, two))
        if not np.array_equal(first, second):
            raise Broken(
                f"the same model after {t} rounds, whoever answers from round {t} on",
                f"{first.tolist()} and {second.tolist()}",
            )


def full_participation(subject: Subject) -> None:
    """if all answer and K = 1, the first round is a step of gradient descent on F"""
    (step,) = subject.rounds(np.ones((1, len(U)), dtype=bool), p=np.ones(len(U)), steps=1)
    downhill, stated = (H[:, None] * U).mean(axis=0), step.method.properties.step
    if stated == "coordinates":
        if not (step.x_after.numpy() * downhill > 0).all():
            raise Broken(f"a step with the signs of {downhill.tolist()}", str(step.x_after.tolist()))
        return
    some = float(step.x_after.numpy() @ downhill / (downhill @ downhill))
    size = {"mean": LR, "sum": LR * len(U), "some": some}[stated]
    expected = size * downhill
    if not np.allclose(step.x_after.numpy(), expected, rtol=1e-10, atol=0):
        raise Broken(
            f"x = {expected.tolist()}, a step of {size:g} (properties.step: {stated})",
            str(step.x_after.tolist()),
        )


def limit(subject: Subject) -> str:
    """under biased uplinks it ends where properties.limit says"""
    T, batches = 2000, 20
    mask = np.random.default_rng(11).random((T, len(P))) < P
    path = torch.stack([step.x_after for step in subject.rounds(mask, steps=1)]).numpy()
    optimum = H @ U / H.sum()
    stated = subject.method().properties.limit
    means = path[T // 2 :].reshape(batches, -1, path.shape[1]).mean(axis=1)
    mean, error = means.mean(axis=0), means.std(axis=0, ddof=1) / np.sqrt(batches)
    away = float(np.linalg.norm(mean - optimum))
    if not np.isfinite(path).all():
        if stated == "elsewhere":
            return "it diverges"
        raise Broken("finite models", f"it diverges within {T} rounds")
    if stated == "elsewhere":
        return f"on average {away:.2g} from the optimum"
    if stated == "optimum":
        last = float(np.linalg.norm(path[-1] - optimum))
        if last > 1e-8:
            raise Broken("the optimum to 1e-8 (properties.limit)", f"{last:.2g} away after {T} rounds")
        return f"{last:.0e} from the optimum"
    weights = {"optimum on average": np.ones(len(P)), "shares": shares(P), "probabilities": P}[stated] * H
    expected = weights @ U / weights.sum()
    if (np.abs(mean - expected) > np.maximum(5 * error, 0.01)).any():
        raise Broken(
            f"{np.round(expected, 3).tolist()} on average (properties.limit: {stated})",
            f"{np.round(mean, 3).tolist()} +- {np.round(error, 3).tolist()}; the optimum is "
            f"{np.round(optimum, 3).tolist()}",
        )
    return f"on average {away:.2g} from the optimum, as it says"


CHECKS: Sequence[Callable[[Subject], str | None]] = (
    shapes_and_types,
    devices,
    inputs_unmodified,
    deterministic,
    renumbering,
    only_the_active_work,
    own_steps,
    silent_clients_stay,
    state_is_kept,
    state_is_used,
    empty_rounds,
    single_clients,
    reload,
    engines,
    the_future,
    full_participation,
    limit,
)
