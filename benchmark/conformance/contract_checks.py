"""Checks of what `init` and `round` must keep to: shapes, devices, inputs, random numbers, small rounds.

Each check returns nothing, or raises `CheckFailed`. Its docstring is its title in the report.
"""

from typing import Any

import numpy as np
import torch
from torch import Tensor

from algorithms import Round
from benchmark.conformance.failure import CheckFailed
from benchmark.conformance.subject import EVERYONE, MASK, Subject, U, leaves


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


def empty_rounds(subject: Subject) -> None:
    """a round without active clients works, also as the first round"""
    mask = np.zeros((4, len(U)), dtype=bool)
    mask[2] = True
    for step in subject.rounds(mask):
        if not step.x_after.isfinite().all():
            raise CheckFailed(
                "a finite model after an empty round", f"{step.x_after.tolist()} after round {step.call.t}"
            )


def single_clients(subject: Subject) -> None:
    """a round with one active client works, and so does a federation of one client"""
    for mask, m in ((np.eye(len(U), dtype=bool), len(U)), (np.array([[True], [False], [True]]), 1)):
        for step in subject.rounds(mask, clients=EVERYONE[:m]):
            if not step.x_after.isfinite().all():
                raise CheckFailed(
                    f"finite models with {m} clients", f"{step.x_after.tolist()} after round {step.call.t}"
                )
