"""Metrics that no trial records are refused before anything runs."""

import pytest
from command import TINY

from rollcall import SettingError, Trial, simulate
from rollcall.benchmark.config.metric import Metric
from rollcall.benchmark.federation.build import build
from rollcall.benchmark.sweep.jobs import check_metrics, recorded

EVALUATION = {"by": ["client"], "weights": ["availability"]}
TRIAL = TINY["trial"] | {"rounds": 2, "evaluation": EVALUATION}
DIGITS = {
    "task": {"name": "digits", "clients": 3, "model": "linear"},
    "rounds": 1,
    "evaluation": {"metrics": ["f1", "client_variance"], "by": ["class"]},
}


@pytest.mark.parametrize("trial", [TRIAL, TRIAL | {"algorithm": "fedpbc"}, DIGITS])  # fedpbc evaluates two models
def test_every_column_of_the_history_is_known_or_begins_with_a_known_name(trial):
    trial = Trial.read({"algorithm": "fedavg"} | trial)
    names, history = recorded(build(trial)), simulate(trial).history
    assert all(any(f"{column}/".startswith(f"{name}/") for name in names) for column in history if column != "round")
    assert {name.partition("/")[0] for name in names} == {column.partition("/")[0] for column in history} - {"round"}


def test_a_metric_that_no_trial_records_is_refused():
    def check(*names, **changes):
        named = {"report.metrics": [Metric(name) for name in names]}
        trials = [TRIAL | changes, TRIAL]  # the second is not run now
        check_metrics(named, [Trial.read({"algorithm": "fedavg"} | trial) for trial in trials])

    check("train/distance", "train/distance/client0", "round_of:train/loss>=0.5", "cost/memory")
    check("weight/often", evaluation={"weights": []})
    with pytest.raises(SettingError, match=r"^report.metrics: 'train/dist' is not allowed; .* train/distance, "):
        check("train/loss", "train/dist")
