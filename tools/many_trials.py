"""Measure a sweep of many tiny trials: overhead per trial, memory of the driver, rows in MLflow, time of the table.

    python tools/many_trials.py                    # 500 trials, one after another
    python tools/many_trials.py --executor ray

It works in a temporary folder, which is deleted. Times are CPU times of the driver, so other load does not count.
"""

import argparse
import json
import os
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory
from time import monotonic

import yaml

EXPERIMENT = {
    "title": "Many tiny trials",
    "trial": {
        "task": {"name": "quadratic", "targets": [[0.0, 1.0], [4.0, 5.0], [2.0, -3.0]]},
        "participation": {"name": "bernoulli", "probability": 0.5},
        "local": {"steps": 2, "lr": 0.1},
        "rounds": 20,
    },
    "report": {"metrics": {"train/distance": "min"}, "last_rounds": 10},
}

DRIVER = """
import json, resource, sys
from benchmark.cli import main
sys.argv = ["rollcall", *sys.argv[1:]]
try:
    main()
except SystemExit as end:
    assert not end.code, end.code
used = resource.getrusage(resource.RUSAGE_SELF)
print(json.dumps({"cpu": used.ru_utime + used.ru_stime, "memory": used.ru_maxrss / 1024}))
"""


def command(*arguments: str) -> dict[str, float]:
    """Run `rollcall ARGUMENTS`.

    Returns:
        CPU seconds and the peak memory in MiB of its process, and seconds by the wall clock.
    """
    start = monotonic()
    done = subprocess.run([sys.executable, "-c", DRIVER, *arguments], capture_output=True, text=True)
    if done.returncode:
        sys.exit(f"rollcall {' '.join(arguments)} failed:\n{done.stdout}\n{done.stderr}")
    measured: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
    return measured | {"wall": monotonic() - start}


def measure(trials: int, executor: str, store: Path) -> None:
    """Run the sweep and the table, and print what they took."""
    from mlflow import MlflowClient

    algorithms = ["fedavg", "fedpbc"]
    grid = {"seed": list(range(trials // len(algorithms))), "algorithm": algorithms}
    file = store / "many.yaml"
    file.write_text(yaml.safe_dump(EXPERIMENT | {"grid": grid}))
    one = command("run", str(file), "--executor", executor, "--seeds", "0", "--only", "algorithm=fedavg")
    run = command("run", str(file), "--executor", executor)
    table = command("leaderboard", str(file))
    client = MlflowClient(os.environ.get("MLFLOW_TRACKING_URI", f"sqlite:///{store / 'runs' / 'mlflow.db'}"))
    known = client.get_experiment_by_name("many")
    rows, token = [], None
    while known is not None:
        page = client.search_runs([known.experiment_id], "tags.`rollcall.trial` != ''", page_token=token)
        rows, token = [*rows, *page], page.token
        if not token:
            break
    finished = sum(row.info.status == "FINISHED" for row in rows)
    count = len(grid["seed"]) * len(algorithms)
    print(f"{count} trials, {executor}")
    print(f"driver, CPU:     {1e3 * (run['cpu'] - one['cpu']) / (count - 1):8.1f} ms a trial ({run['cpu']:.1f} s)")
    print(f"wall clock:      {1e3 * (run['wall'] - one['wall']) / (count - 1):8.1f} ms a trial ({run['wall']:.1f} s)")
    print(f"driver, memory:  {run['memory']:8.0f} MiB (with 1 trial: {one['memory']:.0f} MiB)")
    print(f"MLflow:          {len(rows):8} rows, {finished} finished")
    print(f"leaderboard:     {table['cpu']:8.1f} s CPU")


def main() -> None:
    """Read the options and measure."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--trials", type=int, default=500, help="number of trials; default: 500")
    parser.add_argument("--executor", choices=("inline", "ray"), default="inline")
    options = parser.parse_args()
    with TemporaryDirectory(prefix="rollcall-many-") as folder:
        os.environ["ROLLCALL_STORE"] = str(Path(folder, "runs"))
        measure(options.trials, options.executor, Path(folder))


if __name__ == "__main__":
    main()
