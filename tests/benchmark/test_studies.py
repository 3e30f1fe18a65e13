"""What the papers show of roll calls, against closed forms and brute force."""

import numpy as np
import pytest

from benchmark import simulate, studies
from benchmark.experiment import Experiment
from benchmark.plan import places


def test_proposition_1_for_two_clients():
    for p2 in (0.05, 0.5, 1.0):
        (row,) = studies.prop1_limit(0, targets=np.array([0, 100]), probability=np.array([0.5, p2])).to_dict("records")
        assert row["x"] == pytest.approx(150 * p2 / (1 + p2), rel=1e-12)
        assert row["train/bias"] == pytest.approx(150 * p2 / (1 + p2) - 50, abs=1e-12)


def test_one_step_of_fedpbc_fig3_stands_for_a_hundred():
    def end(experiment):
        spec = next(place.trial for place in places(experiment) if place.labels["participation"] == "0.1, 0.9").spec(
            str
        )
        spec["task"] |= {"clients": 6, "dimension": 3}
        return simulate(spec | {"rounds": 4}).server

    experiment = Experiment.read("fedpbc/fig3")
    hundred, one = end(experiment), end(experiment.as_("in_one_step"))
    assert np.abs(hundred).min() > 1e-4
    assert one == pytest.approx(hundred, rel=1e-11)
