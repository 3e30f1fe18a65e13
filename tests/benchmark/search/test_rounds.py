"""Rounds of a search: each cell has those of its part of the experiment, unless the search has its own."""

import pandas as pd
import pytest
import yaml
from command import TINY

import rollcall
from rollcall.benchmark.config.errors import SettingError
from rollcall.benchmark.config.experiment import Experiment
from rollcall.benchmark.config.metric import Metric
from rollcall.benchmark.search.cells import cells_of
from rollcall.benchmark.search.space import Space

RATE = {"local.lr": [0.1]}


def experiment(**changes) -> Experiment:
    """Two panels: `short` has 8 rounds and `long` the 20 of the experiment."""
    panels = {"short": {"trial": {"rounds": 8}}, "long": {}}
    spec = {"name": "two", **TINY, "grid": {"algorithm": ["fedavg"], "seed": [0]}, "panels": panels}
    return Experiment.model_validate(spec | changes)


def cells(*, per=(), **options) -> dict:
    made = cells_of(experiment(), Space.read(RATE), per, Metric("train/loss", "min"), **options)
    return {cell.name: cell for cell in made}


def test_a_cell_has_the_rounds_of_its_panel():
    assert {name: cell.rungs for name, cell in cells().items()} == {"short/fedavg": [8], "long/fedavg": [20]}
    # report.last_rounds is 10: half of 20 rounds, and all 8.
    assert {name: cell.share for name, cell in cells().items()} == {"short/fedavg": 1.0, "long/fedavg": 0.5}
    halving = {name: cell.rungs for name, cell in cells(scheduler="asha").items()}
    assert halving == {"short/fedavg": [1, 3, 8], "long/fedavg": [3, 7, 20]}
    assert {name: cell.rungs for name, cell in cells(rounds=5).items()} == {"short/fedavg": [5], "long/fedavg": [5]}


def test_a_cell_of_different_rounds_is_refused():
    with pytest.raises(
        SettingError, match=r"^rounds: cell fedavg has trials of 8 and 20 rounds; give .*--rounds.*--per"
    ):
        cells(per=["algorithm"])
    assert cells(per=["algorithm"], rounds=5)["fedavg"].rungs == [5]


def test_panels_that_share_a_trial_run_it_once_to_the_longest(tmp_path):
    options = {"metric": "train/distance", "executor": "inline", "mlflow": False}
    often = experiment(trial=TINY["trial"] | {"evaluation": {"every": 4}})
    tuning = rollcall.tune(often, RATE, store=tmp_path, **options)
    (file,) = tmp_path.rglob("trial.yaml")
    assert yaml.safe_load(file.read_text())["rounds"] == 20
    alone = rollcall.simulate(file).history.set_index("round")["train/distance"]
    assert tuning.best["short/fedavg"]["score"] == pytest.approx(alone[[4, 8]].mean())
    assert tuning.best["long/fedavg"]["score"] == pytest.approx(alone[[12, 16, 20]].mean())


def test_a_trial_that_diverges_later_counts_in_the_short_panel(tmp_path):
    options = {"metric": "train/distance", "executor": "inline", "mlflow": False}
    often = experiment(trial=TINY["trial"] | {"evaluation": {"every": 4}})
    for _ in range(2):  # a rerun, too
        tuning = rollcall.tune(often, {"local.lr": [8.0]}, store=tmp_path, **options)
        assert list(tuning.best) == ["short/fedavg"]
        assert tuning.notes[-1].startswith("Warning: long/fedavg: all samples failed; there is no answer.")


def one(store, **options):
    """A search of one method with evaluations every 10 of 100 rounds, at rates that do not diverge."""
    trial = TINY["trial"] | {"rounds": 100, "evaluation": {"every": 10}}
    single = {"name": "one", **TINY, "trial": trial, "grid": {"algorithm": ["fedavg"], "seed": [0]}}
    single["report"] = {"metrics": {"train/distance": "min"}}
    options = {"metric": "train/distance", "executor": "inline", "mlflow": False, "store": store} | options
    return rollcall.tune(Experiment.model_validate(single), {"local.lr": [0.02, 0.05, 0.1]}, **options)


KEPT = ["index", "local.lr", "score", "rounds", "state", "error"]


@pytest.mark.parametrize("options", [{"scheduler": "asha"}, {"rounds": 95}])
def test_a_store_of_another_scheduler_or_other_rounds_gives_the_same_answer(options, tmp_path):
    fresh = one(tmp_path / "fresh", **options)
    one(tmp_path / "used")
    again = one(tmp_path / "used", **options)
    assert set(again.samples["error"]) == {""}
    pd.testing.assert_frame_equal(again.samples[KEPT], fresh.samples[KEPT])
    assert again.best == fresh.best


def test_more_rounds_on_the_grid_of_evaluations_continue_the_runs(tmp_path):
    one(tmp_path, rounds=50)
    one(tmp_path, rounds=100)
    assert len(list(tmp_path.rglob("trial.yaml"))) == 3


def test_a_run_without_the_evaluation_is_an_error_of_its_own(tmp_path):
    one(tmp_path)
    file = next(tmp_path.rglob("metrics.jsonl"))
    lines = file.read_text().splitlines(keepends=True)
    file.write_text("".join(lines[:-1]))
    with pytest.raises(SettingError, match=r"metrics\.jsonl has no evaluation after round 99 up to round 100\. Remove"):
        one(tmp_path)


def test_an_answer_is_not_overwritten_by_a_search_without_one(tmp_path):
    answer = one(tmp_path)
    before = answer.file.read_bytes()
    single = Experiment.model_validate({"name": "one", **TINY, "grid": {"algorithm": ["fedavg"], "seed": [0]}})
    options = {"metric": "train/distance", "executor": "inline", "mlflow": False}
    failed = rollcall.tune(single, {"local.lr": [1e30]}, store=tmp_path, **options)
    assert failed.best == {}
    assert failed.file.read_bytes() == before
