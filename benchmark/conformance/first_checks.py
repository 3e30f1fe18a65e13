"""Checks of algorithms that all others rely on: a round runs, knows what it declares, and returns the update.

Each check returns nothing, or raises `CheckFailed`. Its docstring is its title in the report.
"""

import dataclasses
from typing import Any

import numpy as np
import torch

from algorithms import KNOWLEDGE, Properties, Round
from benchmark.conformance.failure import CheckFailed
from benchmark.conformance.subject import EVERYONE, MASK, Subject, U
from benchmark.federation.checked import check_eval_models, check_init, check_round, check_traffic


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
