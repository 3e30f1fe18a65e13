"""Checks of algorithms: returned values, side effects, computing clients, states, engines and limits.

Each check returns a remark or nothing, or raises `CheckFailed`. Its docstring is its title in the report.
"""

import io
from copy import deepcopy
from itertools import chain
from typing import Any

import numpy as np
import torch

from rollcall.algorithms import KNOWLEDGE, Properties, Round
from rollcall.benchmark.config.source import fingerprint
from rollcall.benchmark.conformance.failure import CheckFailed, expect, twice
from rollcall.benchmark.conformance.subject import EVERYONE, LR, MASK, H, P, Step, Subject, U, by_client, leaves, shares
from rollcall.benchmark.federation.build import check_names
from rollcall.benchmark.federation.checked import check_eval_models, check_traffic
from rollcall.benchmark.federation.state import StateBuffers


def declared_knowledge(subject: Subject) -> None:
    """`requires` names what the method reads from `call`"""
    required, declared = subject.method().requires, subject.method().properties
    check_names(subject.choice, required)
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
            seen = f"call.{min(absent)} is None, because `requires` does not name it"
            raise CheckFailed(f"the line requires = {(*required, *sorted(absent))} in the class", seen) from None


def runs(subject: Subject) -> None:
    """`init`, `round`, `eval_models` and `traffic` return finite values of the shape, dtype and type that they must"""
    for dtype in (torch.float32, torch.float64):
        for step in subject.rounds(MASK[MASK.any(axis=1)], dtype=dtype):
            t, before = step.call.t, leaves(step.before)
            for name, leaf in leaves(step.after).items():
                form, was = (f"{list(one.shape)} of {one.dtype}" for one in (leaf, before[name]))
                expect(form == was, f"state.{name} {was}, as before", f"{form} after round {t}")
                same = leaf.dtype == dtype or not leaf.is_floating_point()
                expect(same, f"state.{name} of {dtype}, as x is", leaf.dtype)
            check_traffic(step.method, step.method.traffic(step.before, step.call))
            check_eval_models(step.method, step.method.eval_models(step.after, step.x_after), step.x_after)
            _finite(step, "finite numbers", "; look for a division by 0, or log or sqrt")


EMPTY = "; return None, state if no client is active"


def empty_rounds(subject: Subject) -> None:
    """a round without active clients works, also as the first round, and so does a single client"""
    empty = np.zeros((4, len(U)), dtype=bool)
    empty[2] = True
    for mask in (empty, np.eye(len(U), dtype=bool), np.array([[True], [False], [True]])):
        for step in subject.rounds(mask, clients=EVERYONE[: mask.shape[1]]):
            _finite(step, f"a finite model of {mask.shape[1]} clients", "" if len(step.call.active) else EMPTY)


def _finite(step: Step, expected: str, hint: str = "") -> None:
    seen = f"x = {step.x_after.tolist()} after round {step.call.t} with {len(step.call.active)} clients{hint}"
    expect(step.x_after.isfinite().all(), expected, seen)


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
        inputs = {"x": x, "state": state, "call": call}
        copies = deepcopy(inputs)
        update, after = method.round(state, x, call, subject.work())
        for name, one in inputs.items():
            same = fingerprint(one) == fingerprint(copies[name])
            expect(same, f"{name} not to change", f"it was modified in round {t}")
        x, state = x if update is None else x + update, after


def deterministic(subject: Subject) -> None:
    """the result does not depend on global random generators"""
    twice(lambda: [step.x_after for step in subject.rounds()], "call.generator()")


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
    """the state of inactive clients does not change (unless named in properties.changes_while_inactive)"""
    for step in subject.rounds():
        after = by_client(step.after)
        for name, was in by_client(step.before).items():
            if name.partition(".")[0] in step.method.properties.changes_while_inactive:
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
    for step in subject.rounds(np.tile(MASK, (6, 1))):  # a state may change once in a period
        after, A = by_client(step.after), step.call.active
        for name, was in by_client(step.before).items():
            rows = slice(None) if name.partition(".")[0] in step.method.properties.changes_while_inactive else A
            changed[name] = changed.get(name, False) or not torch.equal(was[rows], after[name][rows])
        if all(changed.values()):
            return
    for name, ever in changed.items():
        expect(ever, f"state.{name} to change for active clients", f"it is the same after {6 * len(MASK)} rounds")


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
