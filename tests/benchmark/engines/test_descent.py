"""Steps of clients that take different numbers of steps, against the sequential engine."""

import numpy as np
import pytest
import torch
from engine_rigs import WRAPS, rigs

from rollcall.benchmark.engines import Adam, LocalTraining

STEPS = np.array([1, 4, 2, 7, 3, 1])


@pytest.mark.parametrize("wrap", WRAPS)
@pytest.mark.parametrize(
    "local",
    [
        LocalTraining(STEPS),
        LocalTraining(STEPS, momentum=0.9, weight_decay=0.01),
        LocalTraining(STEPS, clip_norm=0.1),
        LocalTraining(STEPS, optimizer=Adam()),
    ],
    ids=["sgd", "momentum", "clipped", "adam"],
)
def test_a_client_that_is_done_stays_while_others_go_on(wrap, local):
    sequential, vectorised, x = rigs(local=local, wrap=WRAPS[wrap])
    # Nine clients would be padded to ten. Here the clients with steps left are padded with those that are done.
    vectorised.engine.padded_number = lambda clients: clients + 1 if vectorised.engine.padding else clients
    clients = torch.tensor([3, 0, 5, 1, 4])
    start = x + 0.01 * torch.arange(5, dtype=x.dtype)[:, None]
    correct = 0.01 * torch.ones_like(start) if local.clip_norm is None else None
    ends, expected = (work.sgd(clients, start, correct=correct) for work in (vectorised, sequential))
    assert (ends - expected).abs().max() < 1e-9
    assert (ends - start).abs().amax(dim=1).min() > 1e-3
