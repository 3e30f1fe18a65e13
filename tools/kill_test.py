"""Kill a sweep again and again, and compare its results with those of an undisturbed sweep, byte for byte.

python tools/kill_test.py                  20 random SIGKILLs hit the driver, a worker, or all processes of the sweep
python tools/kill_test.py --cluster        two nodes that share only --storage; one node is killed in the middle

The methods of the sweep are stateful, and trials save a checkpoint every second. A killed sweep is started again by the
same command, as a user would. Takes some minutes, most of them for starting Ray.
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
"""How Ray names a process that runs trials."""


class Sweep:
    """A sweep with the command line, and its processes.

    Args:
        folder: where the experiment file and the store are.
        store: name of the store.
        options: of `rollcall run`.
    """

    def __init__(self, folder: Path, store: str, options: list[str]) -> None:
        self.store = folder / store
        self.log = folder / f"{store}.log"
        self.command = [sys.executable, "-m", "rollcall.benchmark.cli", "run", str(folder / "killed.yaml"), "--store"]
        self.command += [str(self.store), "--checkpoint-every", "1s", *options]

    def start(self) -> subprocess.Popen[bytes]:
        with self.log.open("ab") as log:
            return subprocess.Popen(self.command, stdout=log, stderr=log, start_new_session=True)

    def rounds(self) -> int:
        """Rounds done by all trials, as the run folders say."""
        return sum(status.get("round", 0) for status in self.statuses())

    def statuses(self) -> list[dict]:
        return [json.loads(file.read_text()) for file in self.store.glob("killed/*/status.json")]

    def finished(self, trials: int) -> bool:
        statuses = self.statuses()
        return len(statuses) == trials and all(status["state"] == "finished" for status in statuses)


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


def wait_for_end(pids: list[int], seconds: float = 120) -> None:
    """Wait until the processes that a killed driver leaves have ended by themselves."""
    until = time.monotonic() + seconds
    while time.monotonic() < until and any(Path(f"/proc/{pid}").exists() for pid in pids):
        time.sleep(0.2)
    kill(pids)


def strike(driver: subprocess.Popen[bytes], kind: str) -> bool:
    """Kill the driver, a worker that runs a trial, or all. Returns whether there was something to kill."""
    processes = descendants(driver.pid)
    workers = [pid for pid, command in processes.items() if command.startswith(WORKER)]
    if not workers:
        return False
    if kind == "worker":
        kill([random.choice(workers)])
        return True
    kill([driver.pid, *processes] if kind == "all" else [driver.pid])
    driver.wait()
    wait_for_end(list(processes))
    return True


def run_killed(sweep: Sweep, kills: int, trials: int, rounds: int) -> Counter[str]:
    """Run the sweep to its end, with the kills at random points of its progress."""
    points = sorted(random.uniform(0.02, 0.95) * trials * rounds for _ in range(kills))
    kinds = random.sample(["driver", "worker", "all"] * (kills // 3 + 1), kills)
    counts: Counter[str] = Counter()
    while not sweep.finished(trials):
        driver = sweep.start()
        counts["starts of the driver"] += 1
        while driver.poll() is None:
            time.sleep(0.1)
            if kinds and sweep.rounds() >= points[0] and strike(driver, kinds[0]):
                print(f"killed: {kinds[0]} at {sweep.rounds()} of {trials * rounds} rounds", flush=True)
                counts[f"killed: {kinds.pop(0)}"] += 1
                points.pop(0)
    counts["kills left over"] = len(kinds)
    return counts


def run_on_cluster(sweep: Sweep, folder: Path, trials: int, rounds: int) -> Counter[str]:
    """Run the sweep on two nodes, and kill the second one in the middle, with all its processes."""
    os.environ["RAY_USAGE_STATS_ENABLED"] = "0"
    from ray.cluster_utils import Cluster

    disks = [folder / "disk of the head", folder / "disk of the second node"]
    for disk in disks:
        disk.mkdir()
    cluster = Cluster()
    cluster.add_node(num_cpus=1, include_dashboard=False, env_vars={"TMPDIR": str(disks[0])})
    second = cluster.add_node(num_cpus=1, env_vars={"TMPDIR": str(disks[1])})
    sweep.command += ["--ray-address", cluster.address, "--storage", str(folder / "storage")]
    seen: dict[str, list[str]] = {}
    counts: Counter[str] = Counter()
    before: dict[str, int] = {}
    driver = sweep.start()
    while driver.poll() is None:
        time.sleep(0.1)
        for disk in disks:
            for lock in disk.glob("rollcall-*/*/lock"):
                disks_of_trial = seen.setdefault(lock.parent.name, [])
                disks_of_trial += [] if disk.name in disks_of_trial else [disk.name]
        reached = {status["name"]: status["round"] for status in sweep.statuses()}
        counts["rounds lost in the store"] += sum(before[name] > reached[name] for name in before)
        before = reached
        running = {lock.parent.name for lock in disks[1].glob("rollcall-*/*/lock")}
        if not counts["killed: node"] and any(rounds / 4 < reached.get(name, 0) < rounds for name in running):
            cluster.remove_node(second, allow_graceful=False)
            counts["killed: node"] += 1
            print(f"killed: the second node, with {', '.join(running)} at {reached}", flush=True)
    cluster.shutdown()
    counts["trials that moved to the other node"] = sum(len(names) > 1 for names in seen.values())
    counts["run folders outside the disks of the nodes"] = trials - len(seen)
    return counts


def compare(one: Path, other: Path) -> Counter[str]:
    """Compare two stores: rows of metrics and models."""
    counts: Counter[str] = Counter()
    for folder in sorted(one.glob("killed/*/")):
        twin = other / "killed" / folder.name
        rows = [[json.loads(line)["round"] for line in (at / "metrics.jsonl").open()] for at in (folder, twin)]
        counts["trials"] += 1
        counts["rows"] += len(rows[0])
        counts["rows lost"] += len(set(rows[0]) - set(rows[1]))
        counts["rows doubled"] += len(rows[1]) - len(set(rows[1]))
        for name in ("metrics.jsonl", "model.npz"):
            counts[f"{name} equal"] += (folder / name).read_bytes() == (twin / name).read_bytes()
    return counts


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--cluster", action="store_true", help="two nodes without a shared disk")
    options.add_argument("--kills", type=int, default=20)
    options.add_argument("--rounds", type=int, default=400, help="of each trial")
    options.add_argument("--seed", type=int, default=0, help="of the kills")
    options.add_argument("--folder", type=Path, help="default: a new temporary folder")
    chosen = options.parse_args()
    random.seed(chosen.seed)
    folder = (chosen.folder or Path(mkdtemp(prefix="rollcall-kill-"))).resolve()
    folder.mkdir(exist_ok=True)
    experiment = EXPERIMENT.replace("ROUNDS", str(chosen.rounds)).replace("METHODS", ", ".join(METHODS))
    (folder / "killed.yaml").write_text(experiment)

    undisturbed = Sweep(folder, "undisturbed", ["--executor", "inline"])
    if not undisturbed.finished(len(METHODS)):
        undisturbed.start().wait()
    sweep = Sweep(folder, "cluster" if chosen.cluster else "killed", ["--executor", "ray"])
    if chosen.cluster:
        counts = run_on_cluster(sweep, folder, len(METHODS), chosen.rounds)
    else:
        counts = run_killed(sweep, chosen.kills, len(METHODS), chosen.rounds)
    counts.update(compare(undisturbed.store, sweep.store))
    for what, count in counts.items():
        print(f"{what}: {count}")
    trials = counts["trials"]
    lost = counts["rows lost"] + counts["rows doubled"] + counts["rounds lost in the store"] + counts["kills left over"]
    equal = counts["metrics.jsonl equal"] == counts["model.npz equal"] == trials == len(METHODS)
    print(f"folder: {folder}")
    sys.exit(0 if equal and not lost else 1)


if __name__ == "__main__":
    main()
