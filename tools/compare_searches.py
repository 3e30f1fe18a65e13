"""Halving against the full grid on the quickstart, then fresh seeds at their rates, at the file's, and at one for all.

The searches of the how-to page, with seven methods and 30 rates each. Rerun it to resume.

    python tools/compare_searches.py --store runs/compare_searches
"""

import argparse
from pathlib import Path

import pandas as pd

import rollcall
from rollcall.benchmark.config.experiment import Experiment, distinct, places
from rollcall.benchmark.search.api import Tuning
from rollcall.benchmark.search.cells import Scheduler
from rollcall.benchmark.sweep.jobs import Job, run_inline

RATES = [float(f"{1e-3 * 3e4 ** (i / 29):.3g}") for i in range(30)]
"""30 rates from 0.001 to 30, in equal ratios."""

METHODS = ["fedau", "f3ast"]
"""Besides those of the quickstart."""

ONE = 0.1
"""The rate for all: that of the quickstart's `trial`."""


def search(experiment: Experiment, scheduler: Scheduler, seeds: list[int], store: Path) -> Tuning:
    return rollcall.tune(
        experiment,
        {"local.lr": RATES},
        grid=True,
        scheduler=scheduler,
        seeds=seeds,
        store=store,
        executor="inline",
        mlflow=False,
    )


def costs(tuning: Tuning, name: str) -> pd.DataFrame:
    """For each method, the time and the client gradients of a search, and the best that it found."""
    best = pd.DataFrame(tuning.best).T
    return pd.DataFrame(
        {
            f"{name}: seconds": tuning.samples.groupby("cell")["seconds"].sum().round(0),
            f"{name}: gradients": tuning.samples.groupby("cell")["gradients"].sum(),
            f"{name}: rate": best["settings"].map(lambda settings: settings["local.lr"]),
            f"{name}: validation": best["score"].astype(float).round(4),
        }
    )


def accuracies(experiment: Experiment, store: Path) -> pd.DataFrame:
    """For each method, the mean and the standard deviation over fresh seeds of the test accuracy in percent."""
    jobs = [Job(trial, experiment.home, store) for trial in distinct(places(experiment))]
    run_inline([job for job in jobs if not job.ended])
    rows = []
    for place in places(experiment):
        history = Job(place.trial, experiment.home, store).folder.history()
        window = history[history["round"] > place.trial.rounds - experiment.report.last_rounds]
        rows.append((place.labels["algorithm"], 100 * window["test/accuracy"].mean()))
    return pd.DataFrame(rows, columns=["method", "accuracy"]).groupby("method")["accuracy"].agg(["mean", "std"])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--store", type=Path, default=Path("runs/compare_searches"))
    parser.add_argument("--search-seeds", type=int, nargs="+", default=[1000, 1001, 1002, 1003, 1004])
    parser.add_argument("--fresh-seeds", type=int, nargs="+", default=[0, 1, 2, 3, 4])
    parser.add_argument("--no-grid", action="store_true", help="Leave out the full grid.")
    options = parser.parse_args()
    experiment = Experiment.read("quickstart").joined("algorithm", METHODS)
    halving = search(experiment, "asha", options.search_seeds, options.store / "halving")
    searches = {"halving": halving}
    if not options.no_grid:
        searches["grid"] = search(experiment, "none", options.search_seeds, options.store / "grid")
    print(pd.concat([costs(tuning, name) for name, tuning in searches.items()], axis=1).to_string(), end="\n\n")
    fresh = experiment.varied({"seed": options.fresh_seeds})
    tables = {
        **{f"rates of {name}": tuning.tuned.applied(fresh) for name, tuning in searches.items()},
        "rates of the file": fresh,
        f"{ONE} for all": fresh.varied({"local.lr": [ONE]}),
    }
    results = {name: accuracies(table, options.store / "fresh") for name, table in tables.items()}
    print(pd.concat(results, axis=1).round(1).to_string())


if __name__ == "__main__":
    main()
