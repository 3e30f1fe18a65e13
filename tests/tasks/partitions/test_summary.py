"""A partition's summary, against counts that can be read off."""

import numpy as np
import pytest

from rollcall.tasks.partitions import summarise

HISTOGRAM = np.array([[4, 0, 0, 0], [10, 0, 10, 20], [1, 1, 1, 0]])


def test_a_summary_is_least_median_and_largest_over_clients():
    summary = summarise(HISTOGRAM)
    assert (summary.clients, summary.classes) == (3, 4)
    assert summary.samples == (3, 4, 40)
    assert summary.held == (1, 3, 3)
    assert summary.largest == pytest.approx((1 / 3, 1 / 2, 1))
