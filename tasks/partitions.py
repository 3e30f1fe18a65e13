"""Partitions of the training samples among clients.

A partition takes the labels [n] of the training samples, the number of clients m and the trial's seed. Its keyword
arguments are the options of an experiment file. Parts are disjoint. A partition uses all samples,
unless its docstring says otherwise. It raises ValueError for an option out of range, for fewer samples than clients,
and if it divides samples by class but the targets are real numbers.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal, TypeAlias

import numpy as np
from jaxtyping import Float, Int, Num

from rollcall.tasks.base import Holdings
from rollcall.tasks.streams import stream

ATTEMPTS = 100
"""Number of draws of a random partition before it is refused because a client is too small."""


@dataclass(frozen=True)
class Parts:
    """The samples of each client.

    Attributes:
        rows: for each client the samples that it holds.
        classes: [m, C], nu, the class distribution that its samples were drawn from.
    """

    rows: list[Int[np.ndarray, "_"]]
    classes: Float[np.ndarray, "m C"]

    def fault(self, samples: int, clients: int) -> str:
        """The first error in the samples of the clients, in words; empty if there is none."""
        if len(self.rows) != clients:
            return f"{len(self.rows)} parts are not allowed; must be {clients}, one for each client"
        return Holdings.of(self.rows).fault(samples)


def checked_parts(parts: Any, labels: Num[np.ndarray, "n"], clients: int, seed: int) -> Any:
    """The parts that a user's partition made, also from a list of the samples of each client.

    Raises ValueError: `Parts.fault`.
    """
    is_list = isinstance(parts, list | tuple | np.ndarray)
    made = Parts(_rows(parts), np.ones((len(parts), 1))) if is_list else parts
    if isinstance(made, Parts) and (fault := made.fault(len(labels), clients)):
        raise ValueError(fault)
    return Parts(made.rows, realised(labels, made.rows)) if is_list else made


def _rows(parts: Sequence[Any] | np.ndarray) -> list[Int[np.ndarray, "_"]]:
    arrays = [array if array.size else np.empty(0, np.int64) for array in map(np.asarray, parts)]
    for array in arrays:
        if array.ndim != 1:
            must = "must be a list of the samples' numbers of each client"
            raise ValueError(f"a part of shape {array.shape} is not allowed; {must}")
    return arrays


def made_parts(partition: Any, labels: Num[np.ndarray, "n"], clients: int, seed: int) -> Parts:
    """The checked parts of a partition that may be a user's function, whose place its errors name."""
    try:
        made = partition(labels, clients, seed)
        parts = checked_parts(made, labels, clients, seed)
        if not isinstance(parts, Parts):
            must = "must be Parts, or a list of the samples' numbers of each client"
            raise ValueError(f"a {type(made).__name__} is not allowed; {must}")
        return parts
    except Exception as error:
        if str(error).startswith(("partition", "clients: ")):  # of the suite's own partitions
            raise
        kind = "" if isinstance(error, ValueError) else f"{type(error).__name__}: "
        raise ValueError(f"partition: {kind}{error} ({place(partition)})") from error


def place(part: Any) -> str:
    """Where a function was written, for errors."""
    while isinstance(part, partial):  # of a choice: its factory comes last
        part = part.args[-1] if part.args else part.func
    code = getattr(part, "__code__", None)
    return f"{code.co_filename}:{code.co_firstlineno}" if code else repr(part)


@contextmanager
def made_by(partition: Any) -> Iterator[None]:
    """Add the place of a partition to errors about the data that it made."""
    try:
        yield
    except ValueError as error:
        raise ValueError(f"{error} ({place(partition)})") from None


Partition: TypeAlias = Callable[[Num[np.ndarray, "n"], int, int], Parts]
"""From the targets [n] of the training samples, the number of clients and the seed to the parts. Targets are labels
(whole numbers from 0), or real numbers for regression."""


def iid(labels: Num[np.ndarray, "n"], clients: int, seed: int) -> Parts:
    """Random division of the samples into parts whose sizes differ by one at most."""
    need_samples(labels, clients)
    rows = np.array_split(stream(seed, "partition").permutation(len(labels)), clients)
    return Parts(rows, np.tile(realised(labels, [np.arange(len(labels))]), (clients, 1)))


def dirichlet(
    labels: Num[np.ndarray, "n"],
    clients: int,
    seed: int,
    *,
    alpha: float,
    volumes: Literal["proportional", "equal"] = "proportional",
    minimum: int = 1,
) -> Parts:
    """Each client has a class distribution nu_i ~ Dirichlet(alpha) ([PBC] section VII-B).

    `proportional`: the samples of each class are divided among the clients in proportion to their nu_i of that class.
    The number of samples varies between clients. `equal`: one client after another, in random order, draws n/m samples
    (sizes differ by one at most) by its nu_i (Hsu 2019). When a class is used up, it is removed from the nu_i of the
    remaining clients, which are scaled to sum 1. A client none of whose classes is left draws from all samples that are
    left. So the last clients take what remains, and may differ much from their nu_i.

    Args:
        alpha: concentration, above 0. If small, each client holds few classes.
        volumes: `proportional` or `equal`, see above.
        minimum: smallest number of samples of a client. The draw is repeated up to 100 times to reach it.
    """
    _check_dirichlet("dirichlet", labels, clients, alpha, minimum)
    deal = _proportional if volumes == "proportional" else _equal

    def draw(stream: np.random.Generator) -> Parts:
        nu = stream.dirichlet(np.full(labels.max() + 1, alpha), size=clients)
        return Parts(deal(labels, nu, stream), nu)

    return drawn(draw, seed, minimum, f"partition.alpha: {alpha}")


def dirichlet_by_class(
    labels: Num[np.ndarray, "n"], clients: int, seed: int, *, alpha: float, minimum: int = 1
) -> Parts:
    """Each class is divided among the clients by q_c ~ Dirichlet(alpha) (Yurochkin 2019, whose code also caps clients).

    In that code, and in FedMA's, a client that holds n/m samples already gets none of the next classes; this is left
    out here, as in debiased FedAvg's code.

    The number of samples varies between clients, more than with `dirichlet`. A client's nu_i is its expected number of
    samples of each class, n_c q_ci, divided by their sum.

    Args:
        alpha: concentration, above 0. If small, few clients hold each class.
        minimum: smallest number of samples of a client; 10 in Yurochkin's code. The draw is repeated up to 100 times
            to reach it.
    """
    _check_dirichlet("dirichlet_by_class", labels, clients, alpha, minimum)
    sizes = np.bincount(labels)

    def draw(stream: np.random.Generator) -> Parts:
        q = stream.dirichlet(np.full(clients, alpha), size=len(sizes))
        due = (q * sizes[:, None]).T
        total = due.sum(axis=1, keepdims=True)
        # A client whose expected number is 0 has no samples; then the draw is repeated.
        return Parts(_proportional(labels, q.T, stream), np.divide(due, total, out=np.zeros_like(due), where=total > 0))

    return drawn(draw, seed, minimum, f"partition.alpha: {alpha}")


def _check_dirichlet(name: str, labels: Num[np.ndarray, "n"], clients: int, alpha: float, minimum: int) -> None:
    need_classes(labels, name)
    if not alpha > 0:
        raise ValueError(f"partition.alpha: {alpha} is not allowed; must be greater than 0")
    need_samples(labels, clients, minimum)


def _proportional(
    labels: Int[np.ndarray, "n"], weights: Float[np.ndarray, "m C"], stream: np.random.Generator
) -> list[Int[np.ndarray, "_"]]:
    """Divide each class among the clients in proportion to its column of weights; sizes are off by one at most."""
    held: list[list[np.ndarray]] = [[] for _ in weights]
    for c, column in enumerate(weights.T):
        samples = stream.permutation(np.flatnonzero(labels == c))
        if not column.any():  # alpha is so small that all draws round to 0
            column = np.ones_like(column)
        bounds = np.cumsum(column) / column.sum() * len(samples)
        for mine, piece in zip(held, np.split(samples, np.rint(bounds[:-1]).astype(np.int64)), strict=True):
            mine.append(piece)
    return [np.concatenate(pieces) for pieces in held]


def _equal(
    labels: Int[np.ndarray, "n"], nu: Float[np.ndarray, "m C"], stream: np.random.Generator
) -> list[Int[np.ndarray, "_"]]:
    """Draw n/m samples for each client by its nu_i, from the classes that are not used up."""
    m, C = nu.shape
    pools = [stream.permutation(np.flatnonzero(labels == c)) for c in range(C)]
    left = np.array([len(pool) for pool in pools])
    rows: list[np.ndarray] = [np.empty(0, dtype=np.int64)] * m
    sizes = np.diff(np.arange(m + 1) * len(labels) // m)
    for client, size in zip(stream.permutation(m), sizes, strict=True):
        taken = np.zeros(C, dtype=np.int64)
        while taken.sum() < size:
            law = np.where(left > taken, nu[client], 0.0)
            if not law.any():  # none of its classes is left
                law = (left - taken).astype(np.float64)
            # Draws beyond the end of a class are repeated without it, as if samples had been drawn one by one.
            taken = np.minimum(taken + stream.multinomial(size - taken.sum(), law / law.sum()), left)
        rows[client] = np.concatenate([pools[c][left[c] - taken[c] : left[c]] for c in range(C)])
        left -= taken
    return rows


def shards(labels: Num[np.ndarray, "n"], clients: int, seed: int, *, each: int = 2) -> Parts:
    """Samples are sorted by label and divided into shards, of which each client gets some (McMahan 2017).

    There are m * each shards, whose sizes differ by one sample at most. Samples of the same label keep their order.

    Args:
        each: number of shards for each client, at least 1.
    """
    need_classes(labels, "shards")
    if each < 1:
        raise ValueError(f"partition.each: {each} is not allowed; must be at least 1")
    need_samples(labels, clients, each)
    pieces = np.array_split(np.argsort(labels, kind="stable"), clients * each)
    hands = stream(seed, "partition").permutation(len(pieces)).reshape(clients, each)
    rows = [np.concatenate([pieces[shard] for shard in hand]) for hand in hands]
    return Parts(rows, realised(labels, rows))


def by_label(labels: Num[np.ndarray, "n"], clients: int, seed: int, *, sizes: Sequence[int]) -> Parts:
    """Groups of clients that hold one label only ([HAR] Fig. 1).

    The samples of a label are divided at random among its clients; sizes differ by one at most. Samples of other labels
    are left out.

    Args:
        sizes: number of clients of each group, in the order of ids and of labels; they add up to m.
    """
    need_classes(labels, "by_label")
    if sum(sizes) != clients or min(sizes, default=0) < 1:
        raise ValueError(f"partition.sizes: {list(sizes)} is not allowed; must be from 1 and add up to {clients}")
    rows: list[np.ndarray] = []
    draw = stream(seed, "partition")
    for c, size in enumerate(sizes):
        samples = draw.permutation(np.flatnonzero(labels == c))
        if len(samples) < size:
            raise ValueError(
                f"partition.sizes: {list(sizes)} is not allowed; {size} clients are to hold label {c}, "
                f"of which there are {len(samples)} samples"
            )
        rows += np.array_split(samples, size)
    return Parts(rows, np.eye(labels.max() + 1)[np.repeat(range(len(sizes)), sizes)])


def from_file(labels: Num[np.ndarray, "n"], clients: int, seed: int, *, assignment: np.ndarray) -> Parts:
    """The client of each training sample is given by a .npy or .npz file; samples of client -1 are left out.

    Args:
        assignment: [n], the id of a client or -1, in the order of the training samples.
    """
    if assignment.shape != labels.shape or assignment.dtype.kind not in "iu":
        raise ValueError(
            f"partition.assignment: {assignment.dtype} of shape {assignment.shape} is not allowed; must be "
            f"{len(labels)} whole numbers, one for each training sample"
        )
    wrong = np.flatnonzero((assignment < -1) | (assignment >= clients))
    if len(wrong):
        raise ValueError(
            f"partition.assignment: client {assignment[wrong[0]]} of sample {wrong[0]} is not allowed; "
            f"must be in [-1, {clients - 1}]"
        )
    rows = rows_of(assignment, clients)
    return Parts(rows, realised(labels, rows))


PARTITIONS: dict[str, Callable[..., Parts]] = {
    "iid": iid,
    "dirichlet": dirichlet,
    "dirichlet_by_class": dirichlet_by_class,
    "shards": shards,
    "by_label": by_label,
    "from_file": from_file,
}


def need_classes(labels: Num[np.ndarray, "n"], partition: str) -> None:
    """Raise unless the targets are labels, which a partition by classes needs."""
    if labels.dtype.kind == "f":
        raise ValueError(
            f"partition: {partition} is not allowed; it divides samples by class, and the targets of this task are "
            "real numbers. Use iid or from_file"
        )


def rows_of(owner: Int[np.ndarray, "n"], clients: int) -> list[Int[np.ndarray, "_"]]:
    """The samples of each client, ascending; those of a negative owner are left out."""
    order = owner.argsort(kind="stable")
    return np.split(order, np.searchsorted(owner[order], np.arange(clients + 1)))[1:-1]


def realised(labels: Num[np.ndarray, "n"], rows: list[Int[np.ndarray, "_"]]) -> Float[np.ndarray, "m C"]:
    """The actual class distribution [m, C] of each client; one class if the targets are real numbers."""
    if labels.dtype.kind == "f":
        return np.ones((len(rows), 1))
    classes = labels.max() + 1
    return np.stack([np.bincount(labels[mine], minlength=classes) / max(len(mine), 1) for mine in rows])


def need_samples(labels: Num[np.ndarray, "n"], clients: int, minimum: int = 1) -> None:
    """Raise unless there are `minimum` samples for each client, and `minimum` is at least 1."""
    if minimum < 1:
        raise ValueError(f"partition.minimum: {minimum} is not allowed; must be at least 1")
    if len(labels) < clients * minimum:
        each = "" if minimum == 1 else f", {minimum} for each"
        raise ValueError(
            f"clients: {clients} is not allowed; must be at most {len(labels) // minimum} with {len(labels)} training "
            f"samples{each}"
        )


def drawn(draw: Callable[[np.random.Generator], Parts], seed: int, minimum: int, cause: str) -> Parts:
    """Draw a partition up to `ATTEMPTS` times, until every client has at least `minimum` samples.

    Raises ValueError: no draw gave every client enough samples. It names `cause`, a setting and its value.
    """
    for attempt in range(ATTEMPTS):
        parts = draw(stream(seed, "partition", attempt))
        sizes = [len(mine) for mine in parts.rows]
        if min(sizes) >= minimum:
            return parts
    client = int(np.argmin(sizes))
    raise ValueError(
        f"{cause} with {len(sizes)} clients is not allowed here; the last of {ATTEMPTS} draws leaves client {client} "
        f"(seed {seed}) with {sizes[client]} samples, less than {minimum}: must be larger, or the clients fewer"
    )
