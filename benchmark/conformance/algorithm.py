"""Checks of algorithms: returned values, side effects, computing clients, states, engines and limits.

Each check returns a remark or nothing, or raises `CheckFailed`. Its docstring is its title in the report.
"""

import io
from itertools import chain
from typing import Any

import numpy as np
import torch
from jaxtyping import Bool
from torch import Tensor

from rollcall.algorithms import KNOWLEDGE, Properties, Round
from rollcall.benchmark.conformance.failure import CheckFailed, expect, twice
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


def declared_knowledge(subject: Subject) -> None:
    """`requires` names what the method reads from `call`"""
    required = subject.method().requires
    is_text = isinstance(required, str)
    expect(not is_text, f'a tuple of names, requires = ("{required}",)', f"the text {required!r}")
    for name in required:
        expect(name in KNOWLEDGE, f"names of {', '.join(KNOWLEDGE)} in `requires`", repr(name))
    declared = subject.method().properties
    seen = f"properties of the type {type(declared).__name__}"
    expect(isinstance(declared, Properties), "properties = Properties(...) of algorithms", seen)
    absent: set[str] = set()

    class Watched(Round):
        """A round that notes which knowledge was read although it is None."""

        def __getattribute__(self, name: str) -> Any:
            value = super().__getattribute__(name)
            if value is None and name in KNOWLEDGE:
                absent.add(name)
            return value

    method, state, x = subject.begin()
    try:
        method.round(state, x, Watched(**vars(subject.call(0, MASK[0]))), subject.work())
    except Exception:
        if absent:
            names = ", ".join(f'"{name}"' for name in (*required, *sorted(absent)))
            line = f"requires = ({names})" if "," in names else f"requires = ({names},)"
            seen = f"call.{min(absent)} is None, because `requires` does not name it"
            raise CheckFailed(f"the line {line} in the class", seen) from None


def runs(subject: Subject) -> None:
    """`init`, `round`, `eval_models` and `traffic` return what they must, with finite numbers"""
    method, state, x = subject.begin()
    check_init(method, state)
    for t, active in enumerate(MASK[MASK.any(axis=1)]):
        call = subject.call(t, active)
        returned = method.round(state, x, call, subject.work())
        check_round(method, returned, state, x)
        update, state = returned
        check_traffic(method, method.traffic(state, call))
        if update is not None:
            seen = f"update {update.tolist()} in round {t}; look for a division by 0, or log or sqrt"
            expect(update.isfinite().all(), "finite numbers", seen)
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
            t, x, form = step.call.t, step.x_after, f"[2] of {dtype}"
            if step.update is not None:
                expect(_form(step.update) == form, f"an update {form}, as x is", _form(step.update))
            expect(x.isfinite().all(), "finite numbers", f"x = {x.tolist()} after round {t}")
            before = leaves(step.before)
            for name, leaf in leaves(step.after).items():
                was = _form(before[name])
                expect(_form(leaf) == was, f"state.{name} {was}, as before", f"{_form(leaf)} after round {t}")
                same = leaf.dtype == dtype or not leaf.is_floating_point()
                expect(same, f"state.{name} of {dtype}, as x is", leaf.dtype)
        for name, model in step.method.eval_models(step.after, x).items():
            expect(_form(model) == form, f"an evaluated model {form}", f"{name!r}: {_form(model)}")


def _form(tensor: Tensor) -> str:
    """The shape and the type of a tensor."""
    return f"{list(tensor.shape)} of {tensor.dtype}"


def returns_the_update(subject: Subject) -> None:
    """`round` returns the update of x, not the new model"""
    shift = torch.tensor([64.0, -32.0], dtype=torch.float64)
    updates = []
    for moved in (torch.zeros_like(shift), shift):
        # The same problem elsewhere: model and targets are both shifted, so the update stays as it is.
        work, x = subject.work(), moved.clone()
        work.u = work.u + moved
        method = subject.method()
        update, _ = method.round(method.init(x, len(U)), x, subject.call(0, np.ones(len(U), bool)), work)
        updates.append(torch.zeros_like(x) if update is None else update)
    expect(
        not torch.allclose(updates[1] - updates[0], shift, rtol=1e-6),
        "the update, such as D.mean(dim=0) with D = work.sgd(A, x.expand(len(A), -1)) - x",
        "the new model: what `round` returns moves with x; subtract x",
    )


def inputs_unmodified(subject: Subject) -> None:
    """`round` does not modify x, state or call"""
    method, state, x = subject.begin()
    for t, active in enumerate(MASK):
        call = subject.call(t, active)
        copies = {name: tensor.clone() for name, tensor in _inputs(x, state, call).items()}
        update, after = method.round(state, x, call, subject.work())
        for name, tensor in _inputs(x, state, call).items():
            expect(torch.equal(tensor, copies[name]), f"{name} not to change", f"it was modified in round {t}")
        x, state = x if update is None else x + update, after


def _inputs(x: Tensor, state: Any, call: Round) -> dict[str, Tensor]:
    """The tensors that a round receives, by name; vectors of clients are copied into dense form."""
    of_call = {f"call.{name}": value for name, value in vars(call).items() if isinstance(value, Tensor)}
    return {"x": x} | {f"state.{name}": leaf for name, leaf in leaves(state).items()} | of_call


def deterministic(subject: Subject) -> None:
    """the result does not depend on global random generators"""
    runs = twice(lambda: [step.x_after for step in subject.rounds()], "call.generator()")
    for t, (one, other) in enumerate(zip(*runs, strict=True)):
        seen = f"{one.tolist()} and {other.tolist()} after round {t}"
        expect(torch.equal(one, other), "equal models in two runs", seen)


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
                    expect(not leaf.is_meta, f"{name} on the device of x", "a tensor on the default device")
    except (RuntimeError, NotImplementedError) as error:
        seen = str(error).splitlines()[0]
        raise CheckFailed("tensors made with device=x.device (or x.new_zeros ...)", seen) from None


def renumbering(subject: Subject) -> None:
    """the numbering of the clients does not change the model"""
    order = np.array([3, 0, 4, 1, 2])
    renumbered = subject.rounds(MASK[:, order], clients=order)
    for one, other in zip(subject.rounds(), renumbered, strict=True):
        same = torch.allclose(one.x_after, other.x_after, rtol=1e-9, atol=1e-9)
        seen = f"{one.x_after.tolist()} and {other.x_after.tolist()} after round {one.call.t}"
        expect(same, "the same model when clients are renumbered", seen)


def only_the_active_work(subject: Subject) -> None:
    """only active clients compute (unless properties.asks_all)"""
    # In mirrored rounds, client 0 is inactive first: ids that are positions in A show.
    for step in chain(subject.rounds(), subject.rounds(MASK[:, ::-1])):
        active = step.call.active.tolist()
        inactive = sorted(step.work.asked - set(active))
        expect(
            not inactive or step.method.properties.asks_all,
            f"work only for clients {active} in round {step.call.t}",
            f"clients {inactive} computed too; pass only the active ids instead of weights of 0",
        )


def own_steps(subject: Subject) -> None:
    """no client takes more than its own number of local steps"""
    if subject.steps == 1 or any(step.work.beyond for step in subject.rounds()):
        return  # one gradient per round, or the method draws the number of steps itself
    for step in subject.rounds(steps=np.array([3, 1, 2, 1, 3])):
        expect(
            not step.work.beyond,
            "K_i = work.steps_of(clients) steps of each client (see algorithms.local_steps)",
            f"clients {sorted(step.work.beyond)} computed gradients after their last step in round {step.call.t}",
        )


def inactive_clients_stay(subject: Subject) -> None:
    """the state of inactive clients does not change (unless named in properties.ages)"""
    for step in subject.rounds():
        after = by_client(step.after)
        for name, was in by_client(step.before).items():
            if name.partition(".")[0] in step.method.properties.ages:
                continue
            for i in set(range(len(U))) - set(step.call.active.tolist()):
                expect(
                    torch.equal(was[i], after[name][i]),
                    f"state.{name}[{i}] unchanged in round {step.call.t}, in which client {i} is inactive",
                    f"{was[i].tolist()} became {after[name][i].tolist()}",
                )


def state_is_kept(subject: Subject) -> None:
    """the state of a client changes when the client is active"""
    changed: dict[str, bool] = {}
    for step in subject.rounds():
        after, A = by_client(step.after), step.call.active
        for name, was in by_client(step.before).items():
            changed[name] = changed.get(name, False) or not torch.equal(was[A], after[name][A])
    for name, ever in changed.items():
        expect(ever, f"state.{name} to change for active clients", f"it is the same after {len(MASK)} rounds")


def state_is_used(subject: Subject) -> None:
    """the state of a client influences a later round"""
    steps = list(subject.rounds())
    rows = by_client(steps[0].after)
    used = not rows or any(
        _later_models(subject, step, step.after) != _later_models(subject, step, shifted(step.after, client))
        for step in steps
        for client in range(len(U))
    )
    expected = f"other models after a change of state.{', state.'.join(rows)} of a client"
    expect(used, expected, "the same models in all later rounds")


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
    expect(step.x_after.isfinite().all(), expected, f"{step.x_after.tolist()} after round {step.call.t}")


def reload(subject: Subject) -> None:
    """a run that is saved and loaded between rounds is bit-identical"""
    whole = [step.x_after for step in subject.rounds()]
    method, state, x = subject.begin()
    buffers = StateBuffers(state)
    for t, active in enumerate(MASK):
        update, state = method.round(buffers.get(), x, subject.call(t, active), subject.work())
        x = x if update is None else x + update
        buffers.set(state)
        file = io.BytesIO()
        torch.save(buffers.state_dict(), file)
        file.seek(0)
        method, state, _ = subject.begin()  # a new process has only the checkpoint
        buffers = StateBuffers(state)
        buffers.load_state_dict(torch.load(file, weights_only=True))
        expect(
            torch.equal(x, whole[t]),
            "the same model with a checkpoint after every round (all memory must be in the state)",
            f"{x.tolist()} instead of {whole[t].tolist()} after round {t}",
        )


def engines(subject: Subject) -> None:
    """every engine matches the closed form to 1e-10"""
    path = [step.x_after.numpy() for step in subject.rounds()]
    size = max(1.0, float(np.abs(path).max()))
    for engine in ("sequential", "vectorised"):
        server = simulate(_trial(subject, MASK, engine)).server
        same = np.abs(server - path[-1]).max() < 1e-10 * size
        expect(same, f"{path[-1].tolist()} from engine {engine}", server.tolist())


def the_future(subject: Subject) -> None:
    """a round does not depend on who is active in later rounds"""
    for t in (5, 8):
        other = MASK.copy()
        other[t:] = ~other[t:]
        short = {"rounds": t, "evaluation": {"every": t}}
        one, two = (simulate(_trial(subject, mask, "sequential") | short).server for mask in (MASK, other))
        expected = f"the same model after {t} rounds, whoever is active from round {t} on"
        expect(np.array_equal(one, two), expected, f"{one.tolist()} and {two.tolist()}")


def _trial(subject: Subject, mask: Bool[np.ndarray, "T m"], engine: str) -> dict[str, Any]:
    call = subject.call(0, mask[0])
    known = {name: getattr(call, name).numpy() for name in subject.method().requires}
    return {
        "task": {"name": "quadratic", "targets": U, "curvature": H},
        "participation": {"name": "trace", "mask": mask, "wrap": False} | known,
        "algorithm": {"name": subject.choice.factory} | subject.choice.options,
        "local": {"steps": subject.steps, "lr": LR},
        "rounds": len(mask),
        "evaluation": {"every": len(mask)},
        "numerics": {"dtype": "float64", "engine": engine},
    }


def full_participation(subject: Subject) -> None:
    """with full participation and K = 1, the first round is a gradient step on F (properties.step)"""
    (step,) = subject.rounds(np.ones((1, len(U)), dtype=bool), p=np.ones(len(U)), steps=1)
    x, descent, declared = step.x_after.numpy(), (H[:, None] * U).mean(axis=0), step.method.properties.step
    if declared == "coordinates":
        expect((x * descent > 0).all(), f"a step with the signs of {descent.tolist()}", x.tolist())
        return
    size = {"mean": LR, "sum": LR * len(U), "some": float(x @ descent / (descent @ descent))}[declared]
    expected = size * descent
    same = np.allclose(x, expected, rtol=1e-10, atol=0)
    expect(same, f"x = {expected.tolist()}, a step of {size:g} (properties.step: {declared})", x.tolist())


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
    expect(np.isfinite(path).all(), "finite models", f"it diverges within {T} rounds")
    if declared == "elsewhere":
        return f"on average {away:.2g} from the optimum"
    if declared == "optimum":
        last = float(np.linalg.norm(path[-1] - optimum))
        expect(last <= 1e-8, "the optimum to 1e-8 (properties.limit)", f"{last:.2g} away after {T} rounds")
        return f"{last:.0e} from the optimum"
    weights = {"optimum on average": np.ones(len(P)), "shares": shares(P), "probabilities": P}[declared] * H
    expected = weights @ U / weights.sum()
    limit, seen, spread, best = (np.round(vector, 3).tolist() for vector in (expected, mean, error, optimum))
    expect(
        (np.abs(mean - expected) <= np.maximum(5 * error, 0.01)).all(),
        f"{limit} on average (properties.limit: {declared})",
        f"{seen} +- {spread}; the optimum is {best}",
    )
    return f"on average {away:.2g} from the optimum, as declared"
