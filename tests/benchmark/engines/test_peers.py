"""Messages between two processes, here two threads, and what the main process says of a peer that fails."""

import traceback
from concurrent.futures import ThreadPoolExecutor

import pytest
import torch
import torch.distributed as dist

from benchmark.engines.peers import Messages, PeerFailed, Peers


@pytest.fixture
def ends():
    """The messages of process 0 and of process 1."""
    store = dist.HashStore()
    with ThreadPoolExecutor(2) as pool:
        return list(pool.map(lambda rank: Messages(store, rank, 2, same_machine=True), (0, 1)))


def both(send, receive):
    with ThreadPoolExecutor(1) as pool:
        sending = pool.submit(send)
        answer = receive()
        sending.result()
    return answer


def test_data_and_tensors_arrive(ends):
    main, peer = ends
    tensors = [torch.arange(6.0).view(2, 3).T, torch.tensor(3), torch.empty(0, 4, dtype=torch.bfloat16)]
    data, copies = both(lambda: main.send(1, {"ids": [4, 1]}, tensors), lambda: peer.receive(0))
    assert data == {"ids": [4, 1]}
    for tensor, copy in zip(tensors, copies, strict=True):
        assert torch.equal(tensor, copy)
        assert tensor.dtype == copy.dtype


def test_answers(ends):
    main, peer = ends
    peers = Peers(main)
    assert list(peers.ranks) == [1]
    both(lambda: peers.ask(1, "one"), lambda: peer.receive(0))
    values = [torch.ones(2)]
    (names, tensors) = both(lambda: peer.send(0, (["loss"], None), values), lambda: peers.answer(1))
    assert names == ["loss"]
    assert torch.equal(tensors[0], values[0])


def test_a_failure_brings_its_traceback(ends):
    main, peer = ends
    peers = Peers(main)
    both(lambda: peers.ask(1, "one"), lambda: peer.receive(0))
    failure = "KeyError: 'x'", 'Traceback\n  File "own.py", line 3'
    with pytest.raises(PeerFailed, match=r"^process 1 of 2 failed: KeyError: 'x'$") as raised:
        both(lambda: peer.send(0, (None, failure)), lambda: peers.answer(1))
    assert 'File "own.py", line 3' in "".join(traceback.format_exception(raised.value))


def test_an_answer_that_nobody_waited_for_is_dropped_at_the_end(ends):
    main, peer = ends
    peers = Peers(main)
    both(lambda: peers.ask(1, "one"), lambda: peer.receive(0))

    def answer_late():
        peer.send(0, ([], None), [torch.ones(3)])
        return peer.receive(0)

    data, _ = both(lambda: peers.end("end"), answer_late)
    assert data == "end"
    both(lambda: peers.ask(1, "two"), lambda: peer.receive(0))
    assert both(lambda: peer.send(0, ([], None)), lambda: peers.answer(1)) == ([], [])
