"""Results made up by hand: an experiment of four cells, and runs of its trials with given endings."""

from dataclasses import replace
from pathlib import Path

import pandas as pd

from rollcall.benchmark.config.digest import nested, serialised
from rollcall.benchmark.config.grid import grid_points
from rollcall.leaderboard.paper.experiment import PaperExperiment
from rollcall.leaderboard.runs import Run, archive

TASK = {"name": "quadratic", "targets": [[0.0], [1.0]]}


def experiment(**changes):
    """Two methods under two labelled participation models, three seeds of 100 rounds."""
    content = {
        "name": "paper/fig",
        "title": "A figure",
        "source": "[X] Fig. 1",
        "trial": {"task": TASK, "rounds": 100, "evaluation": {"every": 10}},
        "grid": {
            "seed": [0, 1, 2],
            "participation": {
                "often": {"name": "bernoulli", "probability": [0.9, 0.9]},
                "seldom": {"name": "bernoulli", "probability": [0.1, 0.1]},
            },
            "algorithm": ["fedavg", "mifa"],
        },
        "report": {"metrics": {"test/accuracy": "max"}},
    }
    return PaperExperiment.model_validate(content | changes)


def runs(of, ends, rounds=None, metric="test/accuracy", skip=()):
    """A run for every trial; it ends, after evaluations at 0, with what `ends(labels, seed)` says.

    Args:
        of: the experiment.
        ends: labels by axis and the seed to a value, or to the list of evaluations after 0, 10, 20, ... rounds.
        rounds: instead of the experiment's.
        metric: which the value is of.
        skip: seeds that were not run.
    """
    found = []
    for point in grid_points(of):
        if point.seed in skip:
            continue
        spec = point.spec | ({"rounds": rounds} if rounds and "rounds" in point.spec else {})
        value = ends(point.labels, point.seed)
        index = [0, spec.get("rounds", 1)] if not isinstance(value, list) else [10 * i for i in range(len(value))]
        history = pd.DataFrame({metric: value if isinstance(value, list) else [0.0, value]}, index=index)
        tags = {"seed": str(point.seed), "commit": "abc", "version": "1", "rollcall.trial": point.digest}
        found.append(Run(tags | {"rollcall.seconds": "36.0", "device": "cpu"}, serialised(spec), history))
    return found


def nearer(labels, seed):
    """FedAvg ends at 2, FedPBC at 1."""
    return {"fedavg": 2.0, "fedpbc": 1.0}[labels["algorithm"]]


def keep(experiment, ends=nearer, folder="leaderboard/results", covered=False, loss=False):
    """Put `runs` of an experiment like TINY, or of its file, into an archive: by default that of the working directory.

    Args:
        ends: of the distance.
        covered: whether all evaluations of the last ten rounds were made.
        loss: whether the training loss was measured, too; it is 3.
    """
    if isinstance(experiment, str):
        experiment = PaperExperiment.read(experiment)
    made = runs(experiment, ends, metric="train/distance")
    for run in made:
        if covered:
            run.history.loc[15] = run.history.loc[20]
        if loss:
            run.history["train/loss"] = 3.0
    archive(made, experiment.home, ["train/distance", "train/loss"], Path(folder))


def run_of(method, seed, history, **settings):
    """A run of the user, whose last evaluation is after its last round."""
    tags = {"algorithm": method.rpartition(":")[2], "seed": str(seed), "commit": "abc", "version": "1"}
    spec = nested({"algorithm": method, "seed": str(seed), "rounds": str(history.index[-1]), **settings})
    return Run(tags | {"rollcall.seconds": "20"}, spec, history)


def diverging(run, t=50):
    """The run, as if it had diverged after this round."""
    return replace(run, tags=run.tags | {"rollcall.diverged": str(t)})


def ends(labels, seed):
    """FedAvg ends at 0.5, 0.6, 0.7, mifa 0.2 above it."""
    return 0.5 + 0.1 * seed + (0.2 if labels["algorithm"] == "mifa" else 0.0)


COMPARED = experiment(
    report={"metrics": {"test/accuracy": "max"}, "columns": ["participation"]},
    reported=[{"file": "numbers", "axes": {"participation": "scheme", "algorithm": "method"}, "metric": "{split}/accuracy", "value": "percent", "spread": "sd", "scale": 0.01}],
    claims=[{"says": "mifa leads", "tag": "ours", "of": {"algorithm": "mifa"}, "minus": {"algorithm": "fedavg"}, "least": 0.1}],
    findings=["Seen."],
    choices={"local.lr": "the paper is silent"},
    variants={"as_released": {"about": "raw updates", "grid": {"algorithm": {"mifa": {"name": "mifa", "memory": "updates"}}}}},
)  # fmt: skip
"""An experiment that is compared with printed numbers; see `printed_numbers`."""

PRINTED = (
    "scheme,method,split,percent,sd\noften,fedavg|mifa,test,61.5,0.5\nseldom,fedavg,test,-,\nseldom,mifa,test,40,\n"
)


def printed_numbers(folder, monkeypatch):
    """The numbers of COMPARED, read from a file in a folder."""
    from rollcall.leaderboard.paper import experiment as told

    (folder / "numbers.csv").write_text(PRINTED)
    monkeypatch.setattr(told, "FOLDER", folder)
    return told.printed(COMPARED)
