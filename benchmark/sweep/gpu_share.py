"""The share of a GPU that a trial needs, estimated from its memory: `--gpus-per-trial auto`."""

from collections.abc import Iterable

import torch

from benchmark.config.analysis import Analysis
from benchmark.config.trial import Trial
from benchmark.engines.loss import Loss
from benchmark.engines.vectorised import ChunkSize, spread_samples
from benchmark.federation.build import build
from benchmark.federation.memory_check import Need
from benchmark.federation.module import Federation

CONTEXT = 2**29
"""Bytes that every process takes on a GPU before it has any tensor: CUDA's context and torch's kernels, about."""

MARGIN = 1.25
"""Memory planned for a trial, for each byte of the estimate: fragments, workspaces of kernels, an evaluation."""

ROUNDS = 200
"""Rounds in which the active clients are counted."""


def automatic(trials: Iterable[Trial | Analysis]) -> tuple[float, str]:
    """The share of a GPU for each trial of a sweep, and a sentence that says why. Without a GPU it is 0."""
    if not torch.cuda.is_available():
        return 0.0, "gpus-per-trial auto: this machine has no GPU; trials run on the CPU"
    card = torch.cuda.get_device_properties(0).total_memory
    kinds = {trial.model_copy(update={"seed": 0}).digest: trial for trial in trials if isinstance(trial, Trial)}
    return of_card(max(map(gpu_memory, kinds.values()), default=CONTEXT), card)


def of_card(needed: int, card: int) -> tuple[float, str]:
    """The share of a GPU for each trial, and a sentence that says why.

    Args:
        needed: bytes of the largest trial.
        card: bytes of the GPU.
    """
    at_once = max(1, int(card // (MARGIN * needed)))
    share = 1 / at_once
    return share, (
        f"gpus-per-trial auto: {share:.3g}. The largest trial needs about {needed / 2**30:.1f} GiB, a GPU has "
        f"{card / 2**30:.1f} GiB: {at_once} at once on each GPU"
    )


def gpu_memory(trial: Trial) -> int:
    """Bytes that a trial takes on a GPU, about: samples, state, and all active clients of a round side by side."""
    federation = build(trial)
    dtype, d, m = federation.server.dtype, len(federation.server), federation.data.clients
    need = Need.of(federation.algorithm, d, m, dtype)
    if trial.local.keep_momentum:
        need = need.with_rows(d, dtype)
    if trial.numerics.client_memory == "host":
        need = Need(need.fixed, 0)
    samples = sum(
        column.numel() * column.element_size() for split in federation.data.splits.values() for column in split
    )
    return CONTEXT + samples + need.twice(m) + _active(federation) * _client(federation)


def _active(federation: Federation) -> int:
    """The most clients that compute in a round, counted in the first rounds."""
    if federation.algorithm.properties.asks_all:
        return federation.data.clients
    return max(len(federation.participation.active(t)) for t in range(ROUNDS))


def _client(federation: Federation) -> int:
    """Bytes of a client's local training in the vectorised engine."""
    local, minibatches, samples = federation.local, federation.minibatches, federation.data.splits["train"]
    few, loss = spread_samples(samples), Loss(federation.model.task)
    plain = local.optimizer is None and local.clip_norm is None
    size = ChunkSize.measured(federation.model, loss, few, memory=0, copies=4 if plain else 10)
    longest = int(minibatches.parts.sizes.max())
    length = longest if minibatches.size == "full" else min(longest, minibatches.size)
    return size.bytes_each(length, local.most)
