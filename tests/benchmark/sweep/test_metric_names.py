"""The columns that are known in advance are those that a run records."""

import pytest
from command import TINY

from rollcall import SettingError, Trial, simulate
from rollcall.benchmark.config.metric import Metric
from rollcall.benchmark.federation.build import build
from rollcall.benchmark.sweep.jobs import check_metrics, columns

TRIAL = TINY["trial"] | {
    "algorithm": "fedavg",
    "rounds": 2,
    "evaluation": {"by": ["client"], "weights": ["availability"]},
}


def named(*names: str) -> dict[str, list[Metric]]:
    return {"report.metrics": [Metric(name) for name in names]}


@pytest.mark.parametrize("algorithm", ["fedavg", "fedpbc"])  # the latter names two models to evaluate
def test_columns_are_those_of_the_history(algorithm):
    trial = Trial.read(TRIAL | {"algorithm": algorithm})
    assert {"round", *columns(build(trial))[0]} == set(simulate(trial).history)


def test_a_metric_that_no_trial_records_is_refused():
    trial = Trial.read(TRIAL)
    allowed = ["train/distance", "round_of:train/loss>=0.5", "cost/memory"]
    check_metrics(named(*allowed), [trial])
    with pytest.raises(SettingError, match=r"^report.metrics: 'train/dist' is not allowed; .* train/distance, "):
        check_metrics(named("train/loss", "train/dist"), [trial])
    other = Trial.read(TRIAL | {"evaluation": {"weights": []}})
    check_metrics(named("weight/often"), [other, trial])  # recorded by a trial that is not run now


def test_metrics_over_whole_splits_are_recorded():
    task = {"name": "digits", "clients": 3, "model": "linear"}
    evaluation = {"metrics": ["f1", "client_variance"], "by": ["class"]}
    trial = Trial.read({"task": task, "algorithm": "fedavg", "rounds": 1, "evaluation": evaluation})
    names, whole = columns(build(trial))
    assert whole == ["train/f1", "train/client_variance", "test/f1"]  # clients hold training samples only
    history = set(simulate(trial).history)
    assert {*whole, "test/f1/class3"} <= history
    assert history - {"round", *names, *whole} == {
        f"{split}/f1/class{number}" for split in ("train", "test") for number in range(10)
    }
    check_metrics(named("test/f1", "test/f1/class3", "train/client_variance"), [trial])
    with pytest.raises(SettingError, match=r"^report.metrics: 'test/auroc' is not allowed; .* test/f1"):
        check_metrics(named("test/auroc"), [trial])
