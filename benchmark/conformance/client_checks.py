"""Checks of the clients: who computes, how many steps, and that their numbering means nothing.

Each check returns nothing, or raises `CheckFailed`. Its docstring is its title in the report.
"""

from itertools import chain

import numpy as np
import torch

from benchmark.conformance.failure import CheckFailed
from benchmark.conformance.subject import MASK, Subject


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
