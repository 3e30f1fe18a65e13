"""The peer's side of a trial; the main process is played by the test, and the peer by a thread."""

import sys
from concurrent.futures import ThreadPoolExecutor

import pytest
import torch
import torch.distributed as dist

from benchmark.cli import main
from benchmark.config.trial import Trial
from benchmark.engines.distributed import Request
from benchmark.engines.peers import Messages, PeerFailed, Peers
from benchmark.federation import peer, processes
from benchmark.federation.processes import Begin, End, packed

TRIAL = Trial.read(
    {
        "task": {"name": "quadratic", "targets": [[0.0, 1.0], [4.0, 5.0]], "curvature": [1.0, 0.5]},
        "algorithm": "fedavg",
        "local": {"steps": 2, "lr": 0.1, "batch_size": "full"},
        "rounds": 1,
        "numerics": {"dtype": "float64", "engine": "sequential"},
    }
)


@pytest.fixture
def following():
    """The peers of the main process: one, which follows a trial in a thread; and what it returns."""
    store = dist.HashStore()
    with ThreadPoolExecutor(2) as pool:
        main, messages = pool.map(lambda rank: Messages(store, rank, 2, same_machine=True), (0, 1))
        peers = Peers(main)
        result = pool.submit(peer.follow, messages)
        yield peers, result
        if not result.done():
            peers.end(End(None))


def ask(peers, request, tensors=()):
    peers.ask(1, request, tensors)
    return peers.answer(1)


def test_a_peer_computes_with_the_main_process_models(following):
    peers, result = following
    assert ask(peers, Begin(packed(TRIAL), "cpu", 1)) == ([], [])
    request = Request("sgd", [1], names=["start"], round=(0, 0.1, False), begins=True)
    _, (ends,) = ask(peers, request, [torch.tensor([[0.0, 1.0]], dtype=torch.float64)])
    # Client 1: x <- x - 0.1 * 0.5 * (x - u) twice, so x - u shrinks by 0.95 ** 2.
    expected = torch.tensor([[4.0, 5.0]], dtype=torch.float64) - 0.95**2 * 4.0
    assert torch.allclose(ends, expected, rtol=0, atol=1e-12)
    peers.end(End({"diverged": None}))
    assert result.result() == {"diverged": None}


def test_a_request_that_fails_is_answered_and_the_peer_goes_on(following):
    peers, result = following
    with pytest.raises(PeerFailed, match="process 1 of 2 failed: UnpicklingError"):
        ask(peers, Begin(b"no trial", "cpu", 1))
    ask(peers, Begin(packed(TRIAL), "cpu", 1))
    rows = [torch.zeros(1, 2, dtype=torch.float64)]
    with pytest.raises(PeerFailed, match="failed: ValueError: losses: 'validation' is not allowed"):
        ask(peers, Request("losses", [0], {"split": "validation"}, ["x"], (0, 0.1, False), True), rows)
    peers.end(End(None))
    with pytest.raises(PeerFailed, match="the main process of the trial failed or was interrupted"):
        result.result()


def test_the_command_line_follows_on_other_ranks(monkeypatch):
    followed = []
    monkeypatch.setattr(peer, "follow_all", followed.append)
    monkeypatch.setattr(sys, "argv", ["rollcall", "no such command"])
    monkeypatch.setenv("TORCHELASTIC_RUN_ID", "x")
    monkeypatch.setenv("RANK", "1")
    main()
    assert followed == [processes.messages_of_torchrun]
