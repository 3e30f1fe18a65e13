"""Every point of the grids of the suite's experiments is read, and two rounds of every cell are run, so that none fails after hours, or shows what nobody measures.

Image sets are stand-ins of the genuine number of samples, with labels in turn, whose images are one and the same in
memory: partitions meet the sizes they were written for, and nothing need be read. Evaluation sees eight samples. Every network runs
once with its data. Each method runs with each participation model once, with softmax regression.
"""

from dataclasses import replace

import numpy as np
import pytest
import torch

from rollcall import simulate
from rollcall.benchmark.config.choice import read
from rollcall.benchmark.config.experiment import names
from rollcall.benchmark.config.grid import grid_points
from rollcall.benchmark.config.trial import Analysis
from rollcall.leaderboard.paper.experiment import PaperExperiment
from rollcall.participation import recording
from rollcall.tasks import Batches, images
from rollcall.tasks.base import ClientData

LINEAR = read("model", "linear")

SIZES = {
    "mnist": {"train": 60_000, "test": 10_000},
    "fashion_mnist": {"train": 60_000, "test": 10_000},
    "svhn": {"train": 73_257, "test": 26_032},
    "cifar10": {"train": 50_000, "test": 10_000},
    "cifar100": {"train": 50_000, "test": 10_000},
    "cinic10": {"train": 90_000, "valid": 90_000, "test": 90_000},
}


PHONES = np.array(
    [(k, 3600.0 * (k % 24), 5e5 - 1000 * k) for k in range(300)],
    dtype=[("client", np.int64), ("start", float), ("end", float)],
)
"""In the place of the recording, whose file does not come with the suite."""


def stand_in(source):
    """A set's splits; of those that are not listed the genuine ones."""
    shape = (1, 28, 28) if "mnist" in source.name else (3, 32, 32)
    image = torch.from_numpy(np.random.default_rng(0).integers(0, 256, (1, *shape), dtype=np.uint8))
    classes = 100 if source.name == "cifar100" else 10
    return {split: (image.expand(n, -1, -1, -1), torch.arange(n) % classes) for split, n in SIZES[source.name].items()}


def eight(data, split):
    """The first eight samples of a split, in one batch."""
    return Batches(tuple(column[:8] for column in data.splits[split]), 8)


@pytest.fixture(scope="module")
def seen():
    """The trials that were run already, with the columns of their histories."""
    genuine, recorded = images.load, recording.load
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(images, "load", lambda of, root: stand_in(of) if of.name in SIZES else genuine(of, root))
        patch.setattr(ClientData, "evaluation", eight)
        patch.setattr(recording, "load", lambda mask: PHONES if str(mask) == "phones" else recorded(mask))
        yield {}


def short(trial):
    """Two rounds of a trial; of networks and image sets, one step on two samples."""
    local = trial.local
    if "model" in trial.task.options:
        local = local.model_copy(update={"steps": 1, "epochs": None, "batch_size": 2})
    evaluation = trial.evaluation.model_copy(update={"every": 1})
    return trial.model_copy(update={"rounds": 2, "local": local, "evaluation": evaluation})


SMALL = {"units": 10, "rounds": 2, "separation": 2}


def small(analysis):
    """An analysis of ten units at most, at the least two separations, in two rounds."""
    options = analysis.analysis.options
    tiny = {name: min(options[name], most) for name, most in SMALL.items() if name in options}
    if "separations" in options:
        tiny["separations"] = np.array([0, 9])
    return replace(analysis.analysis, options=options | tiny)


def kind(trial):
    """The settings of a trial that choose code rather than numbers, without its network and that network's data."""
    task = "of a network" if "model" in trial.task.options else trial.task.name
    code = task, trial.algorithm.name, trial.participation.name
    return *code, trial.evaluation.splits, trial.evaluation.by, trial.evaluation.weights


def columns(trial, seen):
    """The columns of the history of a trial or of the table of an analysis."""
    if isinstance(trial, Analysis):
        analysis = small(trial)
        if str(analysis) not in seen:
            seen[str(analysis)] = set(analysis.build(trial.seed))
        return seen[str(analysis)]
    model = trial.task.options.get("model")
    if model is not None and (trial.task.name, model.name) not in seen:
        seen[trial.task.name, model.name] = run(trial)
    if kind(trial) not in seen:
        linear = replace(trial.task, options=trial.task.options | ({"model": LINEAR} if model is not None else {}))
        seen[kind(trial)] = run(trial.model_copy(update={"task": linear}))
    return seen[kind(trial)]


def run(trial):
    history = simulate(short(trial)).history
    assert history["round"].tolist() == [0, 1, 2]
    assert np.isfinite(history.iloc[-1].to_numpy()).all()
    return set(history)


def cells(experiment):
    """The trials of one seed of an experiment and of its variants."""
    for reading in (experiment, *map(experiment.as_, experiment.variants)):
        yield [point.trial for point in grid_points(reading.varied({"seed": [0]}))]


def test_the_settings_of_every_grid_are_allowed():
    # `ca_fed/rates` has 7,920 points, which differ in rates, and all others 3,046. The next test reads them.
    for experiment in map(PaperExperiment.read, {*names()} - {"ca_fed/rates"}):
        assert all(cells(experiment))


@pytest.mark.full
@pytest.mark.parametrize("name", names())
def test_two_rounds_of_every_cell(name, seen):
    experiment = PaperExperiment.read(name)
    for trials in cells(experiment):
        # What its report and claims speak of is a column of some panel.
        assert set(experiment.metrics) <= set().union(*(columns(trial, seen) for trial in trials))
