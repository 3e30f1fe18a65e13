"""The peer of a main process: computes shares of the clients' work, and saves nothing.

`python -m benchmark.federation.peer` is such a process; `benchmark.federation.processes` starts it.
"""

import os
import signal
import traceback
from collections.abc import Callable
from contextlib import ExitStack, suppress
from typing import Any, TypeAlias

import torch
from lightning.pytorch.plugins.precision import DoublePrecision, MixedPrecision, Precision
from torch import Tensor

from benchmark.allocator import keep_freed_memory
from benchmark.config.source import supply
from benchmark.config.trial import Trial
from benchmark.engines import Evaluator
from benchmark.engines.distributed import Peer, Request
from benchmark.engines.peers import Disconnected, Messages, PeerFailed
from benchmark.engines.threads import kernels_of_one_thread
from benchmark.federation.build import build
from benchmark.federation.processes import Begin, End, messages_of_started, unpacked
from benchmark.federation.trainer import PRECISIONS, matrix_products, quiet

Answer: TypeAlias = Callable[[Request, list[Tensor]], tuple[list[str], list[Tensor]]]
"""Computes the names and the tensors of an answer."""


def follow(messages: Messages) -> dict[str, Any]:
    """Take part in one trial. A request that fails is answered with the traceback.

    Returns:
        the fields of its `Result` besides the trial.

    Raises:
        PeerFailed: the main process failed or was interrupted.
        Disconnected: the main process has ended.
    """
    with ExitStack() as settings:
        answer: Answer | None = None
        while True:
            request, tensors = messages.receive(0)
            names: list[str] = []
            values: list[Tensor] = []
            if isinstance(request, End):
                if request.result is None:
                    raise PeerFailed("the main process of the trial failed or was interrupted; its output says more")
                return request.result
            try:
                if isinstance(request, Begin):
                    answer = begun(request, messages, settings)
                else:
                    assert answer is not None
                    names, values = answer(request, tensors)
            except Exception as error:
                failure = f"{type(error).__name__}: {error}", traceback.format_exc()
                messages.send(0, (None, failure))
            else:
                messages.send(0, (names, None), values)


def begun(request: Begin, messages: Messages, settings: ExitStack) -> Answer:
    """Load a trial.

    Args:
        request: of the main process.
        messages: to the main process.
        settings: of this process, for the time of the trial.
    """
    spec, sources = unpacked(request.trial)
    supply(sources)
    trial = Trial.read(spec)
    precision = PRECISIONS[trial.numerics.dtype]
    device = torch.device(f"cuda:{os.environ['LOCAL_RANK']}" if request.device == "cuda" else request.device)
    messages.use(device)
    settings.enter_context(quiet())
    settings.enter_context(kernels_of_one_thread())
    settings.enter_context(matrix_products(precision.products))
    federation = build(trial, request.threads).to(device)
    peer = Peer(federation.local_engine(), federation.model, Evaluator(federation.model.task, request.threads), device)
    plugins: dict[str, Precision] = {
        "32-true": Precision(),
        "64-true": DoublePrecision(),
        "bf16-mixed": MixedPrecision("bf16-mixed", device.type),
    }

    def answer(request: Request, tensors: list[Tensor]) -> tuple[list[str], list[Tensor]]:
        with plugins[precision.lightning].forward_context():  # as Lightning does in the main process
            return peer.answer(request, tensors)

    return answer


def follow_all(connect: Callable[[], Messages]) -> None:
    """Take part in all trials of the main process, until it ends. Signals are for the main process.

    Args:
        connect: makes the connection to the main process.
    """
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.SIG_IGN)
    with suppress(Disconnected):
        messages = connect()
        while True:
            with suppress(PeerFailed):
                follow(messages)


if __name__ == "__main__":
    keep_freed_memory()
    follow_all(messages_of_started)
