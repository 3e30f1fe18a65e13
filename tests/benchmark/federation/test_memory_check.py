"""What methods keep, against sizes written out; and a run that cannot fit is refused before it begins."""

from types import SimpleNamespace

import numpy as np
import pytest
import torch

from rollcall import SettingError, simulate
from rollcall.algorithms import ALGORITHMS
from rollcall.benchmark.config.trial import Numerics
from rollcall.benchmark.federation.state import Need, StateBuffers, refuse_what_cannot_fit, taking_part
from rollcall.participation import MODELS, Population, Trace

M, D = 7, 5


@pytest.mark.parametrize(
    ("name", "floats", "others", "row"),
    [
        ("fedavg", 0, 0, 0),
        ("mifa", 0, 8 * M, D),
        ("scaffold", D, 8 * M, D),
        ("scaffnew", M, 2 * 8 * M, 2 * D),
        ("fedawe", 0, 8 * M + 8 * M, D),
        ("fedpbc", M * D, 0, 0),
        ("f3ast", M, 0, 0),
    ],
)
def test_bytes_by_hand(name, floats, others, row):
    """Floats, and integers of eight bytes: where a client's row is, and FedAWE's tau."""
    for dtype, size in ((torch.float32, 4), (torch.float64, 8)):
        need = Need.of(ALGORITHMS[name](), D, M, dtype)
        assert need == Need(fixed=floats * size + others, row=row * size)
        assert need.twice(3) == 2 * (floats * size + others + 4 * row * size)


@pytest.mark.parametrize("name", ["fedavg", "mifa", "scaffnew"])
def test_what_is_said_is_what_is_kept(name):
    method = ALGORITHMS[name]()
    state = StateBuffers(method.init(torch.zeros(D), M))
    kept = sum(len(buffer.numpy().tobytes()) for buffer in state.buffers())
    need = Need.of(method, D, M, torch.float32)
    assert need.fixed + need.row == kept


FULL = {"task": {"name": "quadratic", "targets": np.zeros((40, 30))}, "numerics": {"dtype": "float64"}}
UNIFORM = {"participation": {"name": "uniform", "per_round": 4}}
PLACES, ROW = 40 * 8, 30 * 8  # bytes of mifa: where each client's row is, and a row


def machine(patch, size):
    """A machine of so many bytes."""
    patch.setattr("os.sysconf", {"SC_PAGE_SIZE": 1, "SC_PHYS_PAGES": size}.__getitem__)


def test_a_state_that_cannot_fit_is_refused(monkeypatch):
    """All take part at once: 40 rows and that of all others, twice."""
    trial = FULL | {"algorithm": "mifa", "rounds": 1}
    machine(monkeypatch, 2 * (PLACES + 41 * ROW))
    simulate(trial)
    machine(monkeypatch, 2 * (PLACES + 41 * ROW) - 1)
    with pytest.raises(SettingError) as refusal:
        simulate(trial)
    assert str(refusal.value) == (
        "algorithm.name: 'mifa' is not allowed with 40 clients and 30 parameters: the machine has 0.0 GiB, enough for "
        "the rows of 39 clients (for two rounds), but 40 take part by round 1 of 1; must be a method that stores less, "
        "fewer rounds or fewer clients"
    )


def test_rows_are_needed_by_those_who_take_part(monkeypatch):
    """Four of 40 a round: the different ones among them, counted here from the roll call itself."""
    model = MODELS["uniform"](Population(40, 0), per_round=4)
    so_far = [len({i for t in range(rounds) for i in model.active(t).tolist()}) for rounds in range(31)]
    assert so_far[:2] == [0, 4]
    assert 30 < so_far[30] <= 40
    rounds = next(t for t in range(31) if so_far[t] > 20)
    room = so_far[rounds - 1]
    machine(monkeypatch, 2 * (PLACES + (1 + room) * ROW))
    simulate(FULL | UNIFORM | {"algorithm": "mifa", "rounds": rounds - 1})
    wanted = f"enough for the rows of {room} clients .*, but {so_far[rounds]} take part by round {rounds} of 1,000"
    with pytest.raises(SettingError, match=wanted):
        simulate(FULL | UNIFORM | {"algorithm": "mifa", "rounds": 1000})


def test_a_state_for_all_clients_is_needed_at_once(monkeypatch):
    need = 2 * 40 * ROW
    for algorithm, size in (("fedpbc", need), ("mifa", 2 * PLACES)):
        machine(monkeypatch, size - 1)
        with pytest.raises(SettingError, match=f"'{algorithm}' is not allowed .*: its state takes 0.0 GiB .for two"):
            simulate(FULL | UNIFORM | {"algorithm": algorithm, "rounds": 1})
    machine(monkeypatch, need)
    simulate(FULL | UNIFORM | {"algorithm": "fedpbc", "rounds": 1})


@pytest.mark.parametrize("most", [0, 3, 5, 100])
def test_counting_stops_when_it_is_decided(most):
    mask = np.zeros((5, 9), dtype=bool)
    for t, active in enumerate([[1, 2], [], [2, 8], [0, 1, 3], [4]]):  # 2, 2, 3, 5, 6 different ones so far
        mask[t, active] = True
    assert taking_part(Trace(Population(9), mask=mask), 5, most) == {0: (2, 1), 3: (5, 4), 5: (6, 5), 100: (6, 5)}[most]


@pytest.mark.parametrize(
    ("gpu", "host", "given", "complaint"),
    [
        (2 * (PLACES + 41 * ROW), 0, {}, None),
        (2 * (PLACES + 31 * ROW), 10**6, {}, "the GPU has .* rows of 30 clients .* or `numerics.client_memory: host`, which has room for 40 clients$"),
        (2 * (PLACES + 31 * ROW), 2 * 31 * ROW, {}, "the GPU has .* rows of 30 clients .* fewer clients$"),
        (2 * PLACES, 2 * 41 * ROW, {"client_memory": "host"}, None),
        (2 * PLACES, 2 * 31 * ROW, {"client_memory": "host"}, "the machine has .* rows of 30 clients"),
        (2 * PLACES - 1, 10**6, {"client_memory": "host"}, "its state takes 0.0 GiB .*; the GPU has 0.0"),
        (0, 2 * (PLACES + 41 * ROW), {"device": "cpu"}, None),
        (10**6, 2 * (PLACES + 31 * ROW), {"device": "cpu"}, "the machine has .* rows of 30 clients"),
    ],
)  # fmt: skip
def test_each_memory_holds_its_part(monkeypatch, gpu, host, given, complaint):
    machine(monkeypatch, host)
    monkeypatch.setattr("torch.cuda.is_available", lambda: True)
    monkeypatch.setattr("torch.cuda.get_device_properties", lambda index: SimpleNamespace(total_memory=gpu))
    everybody = MODELS["full"](Population(40))
    need = Need.of(ALGORITHMS["mifa"](), 30, 40, torch.float64)
    run = (need, "mifa", 30, everybody, 3, Numerics(**given))
    if complaint is None:
        refuse_what_cannot_fit(*run)
    else:
        with pytest.raises(SettingError, match=complaint):
            refuse_what_cannot_fit(*run)
