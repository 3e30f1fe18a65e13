"""Kill a sweep twenty times, and compare its results with those of an undisturbed sweep, byte for byte.

    python tools/kill_test.py

Random SIGKILLs hit the driver, a worker, or all processes of a sweep with Ray. The methods are stateful, and trials
save a checkpoint every second. A killed sweep is started again by the same command. Takes some minutes, most of them
for starting Ray.
"""

import argparse
import json
import os
import random
import signal
import subprocess
import sys
import time
from collections import Counter
from contextlib import suppress
from pathlib import Path
from tempfile import mkdtemp

METHODS = ("mifa", "fedau", "fedpbc", "scaffold", "fedvarp")
EXPERIMENT = """
title: kill test
trial:
  task: {name: digits, clients: 10}
  participation: {name: bernoulli, probability: 0.3}
  local: {steps: 2, lr: 0.05, batch_size: 16}
  rounds: ROUNDS
  evaluation: {every: 10}
grid: {algorithm: [METHODS], seed: [0]}
"""
WORKER = "ray::ImplicitFunc"
"""Ray's name of a process that runs trials."""


def start(folder: Path, store: str, executor: str) -> subprocess.Popen[bytes]:
    """Start `rollcall run`. Its output is appended to a log beside the store."""
    command = [sys.executable, "-m", "rollcall.benchmark.cli", "run", str(folder / "killed.yaml")]
    command += ["--store", str(folder / store), "--checkpoint-every", "1s", "--executor", executor]
    with (folder / f"{store}.log").open("ab") as log:
        return subprocess.Popen(command, stdout=log, stderr=log, start_new_session=True)


def statuses(store: Path) -> list[dict]:
    """The status of each trial that has begun."""
    return [json.loads(file.read_text()) for file in store.glob("killed/*/status.json")]


def finished(store: Path) -> bool:
    """Whether every trial has finished."""
    return [status["state"] for status in statuses(store)] == ["finished"] * len(METHODS)


def descendants(pid: int) -> dict[int, str]:
    """The processes below a process, each with its command line."""
    table = subprocess.run(["ps", "-eo", "pid=,ppid=,args="], capture_output=True, text=True, check=True).stdout
    rows = [line.split(None, 2) for line in table.splitlines()]
    below, size = {pid}, 0
    while len(below) > size:
        size = len(below)
        below |= {int(row[0]) for row in rows if int(row[1]) in below}
    return {int(row[0]): row[2] for row in rows if int(row[0]) in below and int(row[0]) != pid}


def kill(pids: list[int]) -> None:
    for pid in pids:
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)


def strike(driver: subprocess.Popen[bytes], kind: str) -> bool:
    """Kill the driver, a worker that runs a trial, or all. Returns whether a worker was there."""
    processes = descendants(driver.pid)
    workers = [pid for pid, command in processes.items() if command.startswith(WORKER)]
    if workers and kind == "worker":
        kill([random.choice(workers)])
    elif workers:
        kill([driver.pid, *processes] if kind == "all" else [driver.pid])
        driver.wait()
        until = time.monotonic() + 120  # the processes that a killed driver leaves end by themselves
        while time.monotonic() < until and any(Path(f"/proc/{pid}").exists() for pid in processes):
            time.sleep(0.2)
        kill(list(processes))
    return bool(workers)


def run_killed(folder: Path, kills: int, rounds: int) -> Counter[str]:
    """Run the sweep to its end, with the kills at random points of its progress."""
    store, total = folder / "killed", len(METHODS) * rounds
    points = sorted(random.uniform(0.02, 0.95) * total for _ in range(kills))
    kinds = random.sample(["driver", "worker", "all"] * (kills // 3 + 1), kills)
    counts: Counter[str] = Counter()
    while not finished(store):
        driver = start(folder, "killed", "ray")
        counts["starts of the driver"] += 1
        while driver.poll() is None:
            time.sleep(0.1)
            done = sum(status.get("round", 0) for status in statuses(store))
            if kinds and done >= points[0] and strike(driver, kinds[0]):
                print(f"killed: {kinds[0]} at {done} of {total} rounds", flush=True)
                counts[f"killed: {kinds.pop(0)}"] += 1
                points.pop(0)
    counts["kills left over"] = len(kinds)
    return counts


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kills", type=int, default=20)
    parser.add_argument("--rounds", type=int, default=400, help="of each trial")
    parser.add_argument("--seed", type=int, default=0, help="of the kills")
    options = parser.parse_args()
    random.seed(options.seed)
    folder = Path(mkdtemp(prefix="rollcall-kill-"))
    experiment = EXPERIMENT.replace("ROUNDS", str(options.rounds)).replace("METHODS", ", ".join(METHODS))
    (folder / "killed.yaml").write_text(experiment)
    start(folder, "undisturbed", "inline").wait()
    counts = run_killed(folder, options.kills, options.rounds)
    for one in (folder / "undisturbed").glob("killed/*/"):
        for name in ("metrics.jsonl", "model.npz"):
            twin = folder / "killed" / "killed" / one.name / name
            counts[f"{name} equal"] += (one / name).read_bytes() == twin.read_bytes()
    for name, count in counts.items():
        print(f"{name}: {count}")
    print(f"folder: {folder}")
    equal = counts["metrics.jsonl equal"] == counts["model.npz equal"] == len(METHODS)
    sys.exit(0 if equal and not counts["kills left over"] else 1)


if __name__ == "__main__":
    main()
