"""A run whose state cannot fit in memory is refused before it begins, against sizes written out."""

from types import SimpleNamespace

import numpy as np
import pytest
import torch

from rollcall import SettingError, simulate
from rollcall.algorithms import ALGORITHMS
from rollcall.benchmark.config.trial import Numerics
from rollcall.benchmark.federation.state import refuse_what_cannot_fit
from rollcall.participation import MODELS, Population

FULL = {"task": {"name": "quadratic", "targets": np.zeros((40, 30))}, "numerics": {"dtype": "float64"}, "rounds": 3}
PLACES, ROW = 40 * 8, 30 * 8  # bytes of mifa: where each client's row is, and a row


def machine(patch, size):
    """A machine of so many bytes."""
    patch.setattr("os.sysconf", {"SC_PAGE_SIZE": 1, "SC_PHYS_PAGES": size}.__getitem__)


def test_a_state_that_cannot_fit_is_refused(monkeypatch):
    """All take part at once: 40 rows and that of all others, twice."""
    machine(monkeypatch, 2 * (PLACES + 41 * ROW))
    simulate(FULL | {"algorithm": "mifa"})
    machine(monkeypatch, 2 * (PLACES + 41 * ROW) - 1)
    with pytest.raises(SettingError) as refusal:
        simulate(FULL | {"algorithm": "mifa"})
    assert str(refusal.value) == (
        "algorithm.name: 'mifa' is not allowed with 40 clients and 30 parameters: its state, with rows of the 40 "
        "clients that take part, needs 0.0 GiB (for two rounds), and the machine has 0.0 GiB; must be a method that "
        "stores less, fewer rounds or fewer clients"
    )


def test_rows_are_needed_by_those_who_take_part(monkeypatch):
    """Four of 40 a round: the different ones among them, counted here from the roll call itself."""
    model = MODELS["uniform"](Population(40, 0), per_round=4)
    so_far = [len({i for t in range(rounds) for i in model.active(t).tolist()}) for rounds in range(31)]
    rounds = next(t for t in range(31) if so_far[t] > 20)
    trial = FULL | {"algorithm": "mifa", "participation": {"name": "uniform", "per_round": 4}}
    machine(monkeypatch, 2 * (PLACES + (1 + so_far[rounds - 1]) * ROW))
    simulate(trial | {"rounds": rounds - 1})
    with pytest.raises(SettingError, match=f"with rows of the {so_far[rounds]} clients"):
        simulate(trial | {"rounds": rounds})


def test_a_state_for_all_clients_is_needed_at_once(monkeypatch):
    trial = FULL | {"algorithm": "fedpbc", "participation": {"name": "uniform", "per_round": 4}}
    machine(monkeypatch, 2 * 40 * ROW - 1)
    with pytest.raises(SettingError, match=r"'fedpbc' is not allowed .*: its state needs 0.0 GiB"):
        simulate(trial)
    machine(monkeypatch, 2 * 40 * ROW)
    simulate(trial)


@pytest.mark.parametrize(
    ("gpu", "host", "given", "complaint"),
    [
        (2 * (PLACES + 41 * ROW), 0, {}, None),
        (2 * (PLACES + 31 * ROW), 10**6, {}, "the GPU has .* fewer clients$"),
        (0, 2 * (PLACES + 41 * ROW), {"device": "cpu"}, None),
        (10**6, 2 * (PLACES + 31 * ROW), {"device": "cpu"}, "the machine has"),
    ],
)
def test_on_a_machine_with_a_gpu(monkeypatch, gpu, host, given, complaint):
    machine(monkeypatch, host)
    monkeypatch.setattr("torch.cuda.is_available", lambda: True)
    monkeypatch.setattr("torch.cuda.get_device_properties", lambda index: SimpleNamespace(total_memory=gpu))
    state = ALGORITHMS["mifa"]().init(torch.empty(30, dtype=torch.float64, device="meta"), 40)
    run = ([state], "mifa", 30, MODELS["full"](Population(40)), 3, Numerics(**given))
    if complaint is None:
        refuse_what_cannot_fit(*run)
    else:
        with pytest.raises(SettingError, match=complaint):
            refuse_what_cannot_fit(*run)
