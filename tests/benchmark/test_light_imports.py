import subprocess
import sys
from typing import Any

import pytest
import torchmetrics

from rollcall.benchmark.light_imports import defer_torchmetrics


@pytest.fixture
def deferred(monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.delitem(sys.modules, "torchmetrics")
    defer_torchmetrics()
    return sys.modules["torchmetrics"]


def test_lightning_is_imported_without_torchvision() -> None:
    code = "import rollcall, sys, lightning.pytorch; print('torchvision' in sys.modules)"
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert out.strip() == "False"


def test_what_lightning_needs_is_there_without_the_rest(deferred: Any) -> None:
    assert deferred is not torchmetrics
    assert deferred.Metric is torchmetrics.Metric
    assert deferred.MetricCollection is torchmetrics.MetricCollection
    assert deferred.__version__ == torchmetrics.__version__
    assert "MeanSquaredError" not in vars(deferred)


def test_all_other_names_follow_when_one_is_asked_for(deferred: Any) -> None:
    assert deferred.MeanSquaredError is torchmetrics.MeanSquaredError
    assert set(torchmetrics.__all__) <= vars(deferred).keys()
    with pytest.raises(AttributeError, match="no_such_metric"):
        deferred.no_such_metric  # noqa: B018


def test_an_imported_torchmetrics_stays() -> None:
    before = sys.modules["torchmetrics"]
    defer_torchmetrics()
    assert sys.modules["torchmetrics"] is before
