"""Buffers of clients in the vectorised engine, against the sequential one."""

import torch
from engine_rigs import Normalising, rigs


def test_buffers_follow_all_that_a_client_computes():
    sequential, vectorised, x = rigs(wrap=Normalising)
    everyone = torch.arange(6)
    for work in (sequential, vectorised):
        assert work.buffers(everyone) is None
        ends = work.sgd(everyone[1:4], x.expand(3, -1))
        work.gradients(everyone[2:], ends[[0, 1, 2, 2]], 3)
    for client in range(1, 6):
        one, other = (work.buffers(everyone[client : client + 1]) for work in (vectorised, sequential))
        assert [mean.item() for mean in (one[2], other[2])] == [
            6.0 if 2 <= client < 4 else 5.0 if client == 1 else 1.0
        ] * 2
        assert all(torch.allclose(a, b, rtol=0, atol=1e-12) for a, b in zip(one, other, strict=True))
    assert vectorised.buffers(everyone[:1]) is None
    for one, other in zip(vectorised.buffers(everyone), sequential.buffers(everyone), strict=True):
        assert torch.allclose(one, other, rtol=0, atol=1e-12)
    norm = vectorised.engine.model.task.network[1]
    assert not norm.running_mean.any()  # the server's own have not moved, neither by work nor by trying
    assert norm.num_batches_tracked == 0
