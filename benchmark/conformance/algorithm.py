"""Checks of algorithms: what `init` and `round` return and leave alone, who computes, what a state is, where runs end.

Each check returns a remark or nothing, or raises `CheckFailed`. Its docstring is its title in the report.
"""

import dataclasses
import io
from itertools import chain
from typing import Any

import numpy as np
import torch
from jaxtyping import Bool
from torch import Tensor

from rollcall.algorithms import KNOWLEDGE, Properties, Round
from rollcall.benchmark.conformance.failure import CheckFailed
from rollcall.benchmark.conformance.subject import (
    EVERYONE,
    LR,
    MASK,
    H,
    P,
    Step,
    Subject,
    U,
    by_client,
    leaves,
    shares,
    shifted,
)
from rollcall.benchmark.federation.checked import check_eval_models, check_init, check_round, check_traffic
from rollcall.benchmark.federation.simulation import simulate
from rollcall.benchmark.federation.state import StateBuffers

# Not `compiled`: it is the vectorised engine, and compiling takes longer than all checks together.
ENGINES = ("sequential", "vectorised")


def declared_knowledge(subject: Subject) -> None:
    """`requires` names what the method reads from `call`"""
    required = subject.method().requires
    if isinstance(required, str):
        raise CheckFailed(f'a tuple of names, requires = ("{required}",)', f"the text {required!r}")
    for name in required:
        if name not in KNOWLEDGE:
            raise CheckFailed(f"names of {', '.join(KNOWLEDGE)} in `requires`", repr(name))
    declared = subject.method().properties
    if not isinstance(declared, Properties):
        raise CheckFailed(
            "properties = Properties(...) of algorithms", f"properties of the type {type(declared).__name__}"
        )
    absent: set[str] = set()

    class Watched(Round):
        """A round that notes which knowledge was read although it is None."""

        def __getattribute__(self, name: str) -> Any:
            value = super().__getattribute__(name)
            if value is None and name in KNOWLEDGE:
                absent.add(name)
            return value

    call = subject.call(0, MASK[0])
    watched = Watched(**{field.name: getattr(call, field.name) for field in dataclasses.fields(Round)})
    method, x = subject.method(), torch.zeros(2, dtype=torch.float64)
    try:
        method.round(method.init(x, len(U)), x, watched, subject.work())
    except Exception:
        if absent:
            names = "".join(f'"{name}", ' for name in (*required, *sorted(absent)))
            first = sorted(absent)[0]
            raise CheckFailed(
                f"the line requires = ({names.strip()}) in the class".replace('", )', '",)'),
                f"call.{first} is None, because `requires` does not name it",
            ) from None


def runs(subject: Subject) -> None:
    """`init`, `round`, `eval_models` and `traffic` return what they must, with finite numbers"""
    method, x = subject.method(), torch.zeros(2, dtype=torch.float64)
    state = method.init(x, len(U))
    check_init(method, state)
    for t, active in enumerate(MASK[MASK.any(axis=1)]):
        call = subject.call(t, active)
        returned = method.round(state, x, call, subject.work())
        check_round(method, returned, state, x)
        update, state = returned
        check_traffic(method, method.traffic(state, call))
        if update is None:
            continue
        if not update.isfinite().all():
            raise CheckFailed(
                "finite numbers", f"update {update.tolist()} in round {t}; look for a division by 0, or log or sqrt"
            )
        x = x + update.detach()
    check_eval_models(method, method.eval_models(state, x), x)


def empty_rounds(subject: Subject) -> None:
    """a round without active clients works, also as the first round"""
    mask = np.zeros((4, len(U)), dtype=bool)
    mask[2] = True
    for step in subject.rounds(mask):
        _finite(step, "a finite model after an empty round")


def shapes_and_types(subject: Subject) -> None:
    """the update [d] and the state keep their shape and dtype, and all values are finite"""
    for dtype in (torch.float32, torch.float64):
        for step in subject.rounds(dtype=dtype):
            if step.update is not None and (step.update.shape != (2,) or step.update.dtype != dtype):
                raise CheckFailed(
                    f"an update [2] of {dtype}, as x is", f"{list(step.update.shape)} of {step.update.dtype}"
                )
            if not step.x_after.isfinite().all():
                raise CheckFailed("finite numbers", f"x = {step.x_after.tolist()} after round {step.call.t}")
            for name, leaf in leaves(step.after).items():
                was = leaves(step.before)[name]
                if leaf.shape != was.shape or leaf.dtype != was.dtype:
                    raise CheckFailed(
                        f"state.{name} {list(was.shape)} of {was.dtype}, as before",
                        f"{list(leaf.shape)} of {leaf.dtype} after round {step.call.t}",
                    )
                if leaf.is_floating_point() and leaf.dtype != dtype:
                    raise CheckFailed(f"state.{name} of {dtype}, as x is", str(leaf.dtype))
        for name, model in step.method.eval_models(step.after, step.x_after).items():
            if model.shape != (2,) or model.dtype != dtype:
                seen = f"{list(model.shape)} of {model.dtype}"
                raise CheckFailed(f"an evaluated model [2] of {dtype}", f"{name!r}: {seen}")


def returns_the_update(subject: Subject) -> None:
    """`round` returns the update of x, not the new model"""
    shift = torch.tensor([64.0, -32.0], dtype=torch.float64)
    updates = []
    for moved in (torch.zeros_like(shift), shift):
        # The same problem elsewhere: model and targets are both shifted, so the update stays as it is.
        method, work = subject.method(), subject.work()
        work.u = work.u + moved
        x = moved.clone()
        update, _ = method.round(method.init(x, len(EVERYONE)), x, subject.call(0, np.ones(len(U), bool)), work)
        updates.append(torch.zeros_like(x) if update is None else update)
    difference = updates[1] - updates[0]
    if torch.allclose(difference, shift, rtol=1e-6):
        raise CheckFailed(
            "the update, such as D.mean(dim=0) with D = work.sgd(A, x.expand(len(A), -1)) - x",
            "the new model: what `round` returns moves with x; subtract x",
        )


def inputs_unmodified(subject: Subject) -> None:
    """`round` does not modify x, state or call"""
    method, x = subject.method(), torch.zeros(2, dtype=torch.float64)
    state = method.init(x, len(U))
    for t, active in enumerate(MASK):
        call = subject.call(t, active)
        copies = {name: tensor.clone() for name, tensor in _inputs(x, state, call).items()}
        update, after = method.round(state, x, call, subject.work())
        for name, tensor in _inputs(x, state, call).items():
            if not torch.equal(tensor, copies[name]):
                raise CheckFailed(f"{name} not to change", f"it was modified in round {t}")
        x, state = x if update is None else x + update, after


def _inputs(x: Tensor, state: Any, call: Round) -> dict[str, Tensor]:
    """The tensors that a round receives, by name."""
    of_call = {f"call.{name}": value for name, value in vars(call).items() if isinstance(value, Tensor)}
    return {"x": x} | {f"state.{name}": leaf for name, leaf in leaves(state).items()} | of_call


def deterministic(subject: Subject) -> None:
    """the result does not depend on global random generators"""
    runs = []
    for seed in (1, 2):
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            np.random.seed(seed)  # noqa: NPY002
            before = torch.get_rng_state()
            runs.append([step.x_after for step in subject.rounds()])
            if not torch.equal(before, torch.get_rng_state()):
                raise CheckFailed(
                    "random numbers from call.generator()", "random numbers from torch's global generator"
                )
    for t, (one, other) in enumerate(zip(*runs, strict=True)):
        if not torch.equal(one, other):
            raise CheckFailed("equal models in two runs", f"{one.tolist()} and {other.tolist()} after round {t}")


def devices(subject: Subject) -> None:
    """new tensors are made on the device of x"""
    # A tensor made without a device lands on `meta`, which holds no numbers and cannot be combined with x.
    method, x = subject.method(), torch.zeros(2, dtype=torch.float64)
    rounds = [(subject.call(t, active), subject.work()) for t, active in enumerate(MASK)]
    try:
        with torch.device("meta"):
            state = method.init(x, len(U))
            for call, work in rounds:
                update, state = method.round(state, x, call, work)
                for name, leaf in {"update": x if update is None else update, **leaves(state)}.items():
                    if leaf.is_meta:
                        raise CheckFailed(f"{name} on the device of x", "a tensor on the default device")
    except (RuntimeError, NotImplementedError) as error:
        seen = str(error).splitlines()[0]
        raise CheckFailed("tensors made with device=x.device (or x.new_zeros ...)", seen) from None


def renumbering(subject: Subject) -> None:
    """the numbering of the clients does not change the model"""
    order = np.array([3, 0, 4, 1, 2])
    renumbered = subject.rounds(MASK[:, order], clients=order)
    for one, other in zip(subject.rounds(), renumbered, strict=True):
        if not torch.allclose(one.x_after, other.x_after, rtol=1e-9, atol=1e-9):
            raise CheckFailed(
                "the same model when clients are renumbered",
                f"{one.x_after.tolist()} and {other.x_after.tolist()} after round {one.call.t}",
            )


def only_the_active_work(subject: Subject) -> None:
    """only active clients compute (unless properties.asks_all)"""
    # In mirrored rounds, client 0 is inactive first: ids that are positions in A show.
    for step in chain(subject.rounds(), subject.rounds(MASK[:, ::-1])):
        inactive = step.work.asked - set(step.call.active.tolist())
        if inactive and not step.method.properties.asks_all:
            raise CheckFailed(
                f"work only for clients {step.call.active.tolist()} in round {step.call.t}",
                f"clients {sorted(inactive)} computed too; pass only the active ids instead of weights of 0",
            )


def own_steps(subject: Subject) -> None:
    """no client takes more than its own number of local steps"""
    if subject.steps == 1 or any(step.work.beyond for step in subject.rounds()):
        return  # one gradient per round, or the method draws the number of steps itself
    for step in subject.rounds(steps=np.array([3, 1, 2, 1, 3])):
        if step.work.beyond:
            raise CheckFailed(
                "K_i = work.steps_of(clients) steps of each client (see algorithms.local_steps)",
                f"clients {sorted(step.work.beyond)} computed gradients after their last step in round {step.call.t}",
            )


def inactive_clients_stay(subject: Subject) -> None:
    """the state of inactive clients does not change (unless named in properties.ages)"""
    for step in subject.rounds():
        after = by_client(step.after, len(U))
        inactive = [i for i in range(len(U)) if i not in step.call.active.tolist()]
        for name, was in by_client(step.before, len(U)).items():
            if name.partition(".")[0] in step.method.properties.ages:
                continue
            for i in inactive:
                if not torch.equal(was[i], after[name][i]):
                    raise CheckFailed(
                        f"state.{name}[{i}] unchanged in round {step.call.t}, in which client {i} is inactive",
                        f"{was[i].tolist()} became {after[name][i].tolist()}",
                    )


def state_is_kept(subject: Subject) -> None:
    """the state of a client changes when the client is active"""
    changed = dict.fromkeys(by_client(subject.method().init(torch.zeros(2).double(), len(U)), len(U)), False)
    for step in subject.rounds():
        for name, was in by_client(step.before, len(U)).items():
            now = by_client(step.after, len(U))[name]
            changed[name] |= any(not torch.equal(was[i], now[i]) for i in step.call.active.tolist())
    for name, ever in changed.items():
        if not ever:
            raise CheckFailed(f"state.{name} to change for active clients", f"it is the same after {len(MASK)} rounds")


def state_is_used(subject: Subject) -> None:
    """the state of a client influences a later round"""
    steps = list(subject.rounds())
    rows = by_client(steps[0].after, len(U))
    if rows and all(
        _later_models(subject, step, step.after) == _later_models(subject, step, shifted(step.after, client))
        for step in steps
        for client in range(len(U))
    ):
        raise CheckFailed(
            f"other models after a change of state.{', state.'.join(rows)} of a client",
            "the same models in all later rounds",
        )


def _later_models(subject: Subject, step: Step, state: Any) -> list[list[float]]:
    """The models of the rounds after a step, starting from this state."""
    x, path = step.x_after, []
    for t in range(step.call.t + 1, len(MASK)):
        update, state = step.method.round(state, x, subject.call(t, MASK[t]), subject.work())
        x = x if update is None else x + update
        path.append(x.tolist())
    return path


def single_clients(subject: Subject) -> None:
    """a round with one active client works, and so does a federation of one client"""
    for mask, m in ((np.eye(len(U), dtype=bool), len(U)), (np.array([[True], [False], [True]]), 1)):
        for step in subject.rounds(mask, clients=EVERYONE[:m]):
            _finite(step, f"finite models with {m} clients")


def _finite(step: Step, expected: str) -> None:
    if not step.x_after.isfinite().all():
        raise CheckFailed(expected, f"{step.x_after.tolist()} after round {step.call.t}")


def reload(subject: Subject) -> None:
    """a run that is saved and loaded between rounds is bit-identical"""
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
        method = subject.method()  # a new process has only the checkpoint
        buffers = StateBuffers(method.init(torch.zeros(2, dtype=torch.float64), len(U)))
        buffers.load_state_dict(torch.load(file, weights_only=True))
        if not torch.equal(x, whole[t]):
            raise CheckFailed(
                "the same model with a checkpoint after every round (all memory must be in the state)",
                f"{x.tolist()} instead of {whole[t].tolist()} after round {t}",
            )


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


def _trial(subject: Subject, mask: Bool[np.ndarray, "T m"], engine: str) -> dict[str, Any]:
    call = subject.call(0, mask[0])
    known = {name: getattr(call, name).numpy() for name in subject.method().requires}
    options = subject.choice.options
    return {
        "task": {"name": "quadratic", "targets": U, "curvature": H},
        "participation": {"name": "trace", "mask": mask, "wrap": False} | known,
        "algorithm": {"name": subject.choice.factory} | options,
        "local": {"steps": subject.steps, "lr": LR},
        "rounds": len(mask),
        "evaluation": {"every": len(mask)},
        "numerics": {"dtype": "float64", "engine": engine},
    }


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
