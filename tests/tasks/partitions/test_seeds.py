"""Every partition that draws follows the seed, and nothing else."""

import numpy as np
import pytest

from rollcall.tasks.partitions import PARTITIONS

LABELS = np.random.default_rng(1).permutation(np.repeat(np.arange(4), [400, 100, 50, 250]))
OPTIONS = {
    "by_sizes": {"sizes": np.array([10, 20, 30, 40, 50])},
    "dirichlet": {"alpha": 1.0},
    "dirichlet_by_class": {"alpha": 1.0},
    "by_label": {"sizes": [2, 1, 1, 1]},
}


@pytest.mark.parametrize("name", sorted(set(PARTITIONS) - {"from_file"}))
def test_partitions_follow_the_seed(name):
    options = OPTIONS.get(name, {})
    one, same, other = (PARTITIONS[name](LABELS, 5, seed, **options) for seed in (7, 7, 8))
    assert all(map(np.array_equal, one.rows, same.rows))
    assert np.array_equal(one.classes, same.classes)
    assert not all(map(np.array_equal, one.rows, other.rows))
    for parts in (one, other):
        dealt = np.concatenate(parts.rows)
        assert len(set(dealt.tolist())) == len(dealt)
        assert parts.classes.shape == (5, 4)
