"""Which cells a search has, their names and their spaces; and the answer of one."""

from command import TINY

from rollcall.benchmark.config.experiment import Experiment
from rollcall.benchmark.config.metric import Metric
from rollcall.benchmark.search.answer import How, answer_of, found
from rollcall.benchmark.search.cells import Cell, cells_of
from rollcall.benchmark.search.space import Options, Space
from rollcall.benchmark.search.study import Sample

DISTANCE = Metric("train/distance", "min")
HOW = How(
    date="2026-01-01",
    metric=DISTANCE.name,
    mode="min",
    search="random",
    scheduler="none",
    seeds=(1000, 1001),
    space={"local.lr": [0.1]},
)


def cells(space=None, **changes) -> dict[str, Cell]:
    experiment = Experiment.model_validate({"name": "tiny"} | TINY | changes)
    return {one.name: one for one in cells_of(experiment, Space.read(space or {"local.lr": [0.1]}), (), DISTANCE)}


def test_the_space_of_a_method_replaces_the_common_one():
    """Which may have values that no method allows."""
    space = {"local.lr": [0.1, -1], "fedavg": {"local.lr": [0.2]}, "fedpbc": {"local.lr": [0.3]}}
    spaces = {name: one.space for name, one in cells(space).items()}
    assert spaces == {"fedavg": {"local.lr": Options((0.2,))}, "fedpbc": {"local.lr": Options((0.3,))}}


def test_analyses_are_not_searched():
    law = {"analysis": "rollcall.benchmark.experiments.fedpbc.analyses:class_weights_sorted"}
    assert list(cells(panels={"law": law, "runs": {}})) == ["runs/fedavg", "runs/fedpbc"]


def test_a_setting_with_one_value_is_no_part_of_the_name():
    assert list(cells(grid=TINY["grid"] | {"local.steps": [2]})) == ["fedavg", "fedpbc"]
    assert list(cells(grid={"algorithm": ["fedavg"], "local.steps": [2, 3]})) == ["fedavg/2", "fedavg/3"]


def test_an_answer_counts_the_samples_that_failed():
    cell = cells()["fedavg"]
    scores = {20: {1000: 3.0, 1001: 5.0}}
    samples = [
        Sample(0, {"local.lr": 0.1}, gradients=7.0, error="diverged"),
        Sample(1, {"local.lr": 0.2}, gradients=8.0, scores=scores),
        Sample(2, {"local.lr": 0.3}, gradients=9.0, error="diverged"),
    ]
    assert answer_of(cell, samples[:1], DISTANCE, HOW) is None
    cell = Cell("fedavg", {}, cell.specs, {"local.lr": Options((0.2,))}, [20], 0.0, False)
    best = answer_of(cell, samples, DISTANCE, HOW)
    assert (best.samples, best.failed, best.gradients) == (3, 2, 24.0)
    assert (best.score, best.spread, best.settings) == (4.0, 2**0.5, {"local.lr": 0.2})
    line = "rollcall tune, 2026-01-01: best of {} samples by train/distance, random search, {} rounds, seeds 1000, 1001"
    assert found([best]) == line.format(3, 20)
    assert found([best, best.model_copy(update={"samples": 2, "rounds": 8})]) == line.format("2 to 3", "8 to 20")
