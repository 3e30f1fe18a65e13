"""The statistics of `record`, from a mask of eight rounds by hand."""

import numpy as np
import pytest

from rollcall.participation import Bernoulli, Trace
from rollcall.participation.analyses import record

COLUMNS = ([1, 1, 0, 0, 1, 0, 1, 1], [0, 1, 0, 1, 1, 1, 0, 0], [0, 0, 1, 0, 0, 1, 0, 0])
TOLD = {"probability": [0.5, 0.4, 0.25], "stationary": [0.5, 0.5, 0.25], "correlation": [0.1, 0.2, 0.0]}


def test_every_column_by_hand():
    def model(population):
        return Trace(population, mask=np.transpose(COLUMNS), **{name: np.array(one) for name, one in TOLD.items()})

    found = record(0, participation=model, clients=3, rounds=8, lag=6, sizes=(2, 1))
    expected = {
        "round": 0,
        "share": 11 / 24,
        # Gaps 1, 3, 2, 1; 2, 1, 1; and 3. A gap of k has waits 1 + ... + k.
        "waits": (0.5 * 11 / 7 + 0.4 * 5 / 4 + 0.25 * 6 / 3) / 3,
        "never": 0,
        "separation": 0,
        "differs": 1 / 2,  # round 6 is as round 0, round 7 is not as round 1
        "stretch_on": 1,  # client 1: 1 and 3 rounds
        "stretch_off": 1 / 2,  # client 0: 2 and 1 rounds
        "variance": 15 / 43,  # 1, 2, 1, 1, 2, 2, 1, 1 active; 15/64 + 16/64 + 12/64 if independent
        "within": -4 / 240**0.5,
        "between": (-10 / 180**0.5 + 0) / 2,
        "error_pi": (0.1 + 0 + 0.05) / 3,  # 6/10, 5/10 and 3/10
        "error_lambda": (0.2 + 0.3 + 5 / 28) / 3,  # 3/6 - 3/5, 3/6 - 3/5 and 1/4 - 3/7
        "weights": 0.5**2 / 9,  # 11/5, 11/4, 11/2 against 5/2, 5/2, 5
        "rarest": (2 / 11) / 0.2 - 1,
    }
    assert found.iloc[0].to_dict() == pytest.approx(expected)


def test_clients_that_never_change_and_more_of_them_than_pairs():
    """Clients 1 and 1,001 are always on: no correlation; of the first 1,000 clients the others are independent."""
    p = np.where(np.arange(1100) % 1000 == 1, 1.0, 0.5)
    found = record(0, participation=lambda of: Bernoulli(of, probability=p), clients=1100, rounds=200, sizes=(300, 800))
    assert found[["within", "between"]].to_numpy() == pytest.approx(0, abs=0.001)
    assert found["never"].item() == 0
    alone = record(0, participation=lambda of: Bernoulli(of, probability=p), clients=1100, rounds=20)
    assert np.isnan(alone["within"].item())
