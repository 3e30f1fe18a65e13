"""The targets of FedPBC's Fig. 3 against the law that the paper states."""

import numpy as np
import pytest

from rollcall.tasks import fedpbc_quadratic


def targets(data):
    u, h = (column.numpy() for column in data.splits["train"])
    assert (h == 1).all()
    return u


def test_targets_follow_the_law():
    task, data = fedpbc_quadratic(3, clients=50, dimension=2000)
    u = targets(data)
    assert u.shape == (50, 2000)
    assert [rows.tolist() for rows in data.parts] == [[i] for i in range(50)]
    # 2000 draws of sd 0.1: means within 4 standard errors, 0.009; client 0 is the paper's i = 1.
    assert u.mean(axis=1) == pytest.approx(np.arange(1, 51) / 1000, abs=0.009)
    assert u.std(axis=1) == pytest.approx(np.full(50, 0.1), rel=0.08)
    assert abs(np.corrcoef(u)[np.triu_indices(50, 1)]).max() < 0.12  # clients are drawn apart
    assert task.optimum.numpy() == pytest.approx(u.mean(axis=0), rel=1e-12)


def test_without_spread_nothing_is_drawn():
    _, data = fedpbc_quadratic(0, clients=3, dimension=2, slope=0.5, spread=0.0)
    assert targets(data).tolist() == [[0.5, 0.5], [1.0, 1.0], [1.5, 1.5]]


def test_the_seed_decides():
    first, again, other = (targets(fedpbc_quadratic(seed)[1]) for seed in (0, 0, 1))
    assert (first == again).all()
    assert (first != other).all()


@pytest.mark.parametrize(
    ("options", "complaint"),
    [
        ({"clients": 0}, "clients: 0 is not allowed; must be at least 1"),
        ({"dimension": 0}, "dimension: 0 is not allowed; must be at least 1"),
        ({"spread": -0.1}, "spread: -0.1 is not allowed; must be at least 0"),
    ],
)
def test_it_refuses(options, complaint):
    with pytest.raises(ValueError, match=complaint):
        fedpbc_quadratic(0, **options)
