"""Checks of the state: it belongs to its client, changes, is used, and survives a checkpoint.

Each check returns nothing, or raises `CheckFailed`. Its docstring is its title in the report.
"""

import io
from typing import Any

import torch

from benchmark.conformance.failure import CheckFailed
from benchmark.conformance.subject import MASK, Step, Subject, U, by_client, shifted
from benchmark.federation.state import StateBuffers


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
