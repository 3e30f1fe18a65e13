"""A Ray cluster of two nodes that share only a storage. Choices of the user's own reach nodes without their files.

Ray of this machine alone, too: it dies, it listens on this machine only, and trials share its GPUs.
"""

import json
import os
import signal
import socket
import subprocess
import time
from datetime import timedelta
from pathlib import Path
from threading import Thread

import numpy as np
import pytest

import rollcall
from rollcall import Trial, simulate
from rollcall.benchmark.config.experiment import Experiment
from rollcall.benchmark.federation.run_folder import RunFolder
from rollcall.benchmark.sweep.jobs import Job, Sweep, run_inline, run_job
from rollcall.benchmark.sweep.run import Execution

pytestmark = [pytest.mark.full, pytest.mark.fault]

# A method that writes down its rounds, is slow enough for checkpoints, and waits in round 40.
FILE = """
import time
from pathlib import Path
from rollcall.algorithms.mifa import MIFA


class Mine(MIFA):
    def round(self, state, x, call, work):
        with Path("FOLDER/rounds").open("a") as file:
            file.write(f"{call.seed} {call.t}\\n")
        if call.t < 40 or Path("FOLDER/slow").exists():
            time.sleep(0.03)
        while call.t == 40 and not Path("FOLDER/open").exists():
            time.sleep(0.05)
        return super().round(state, x, call, work)
"""


# Writes down the GPUs that its process sees, and waits until all five trials have.
SEEING = """
import os, time
from pathlib import Path
from rollcall.algorithms.fedavg import FedAvg


class Seeing(FedAvg):
    def round(self, state, x, call, work):
        Path("FOLDER", f"{call.seed}").write_text(os.environ.get("CUDA_VISIBLE_DEVICES", ""))
        until = time.monotonic() + 120
        while len(list(Path("FOLDER").iterdir())) < 5 and time.monotonic() < until:
            time.sleep(0.05)
        return super().round(state, x, call, work)
"""


@pytest.fixture
def nodes(tmp_path, one_ray):
    """A cluster, its second node, and the disks of both nodes."""
    from rollcall.benchmark.sweep import ray_executor  # it sets what Ray reads when it is imported

    # isort: split
    from ray.cluster_utils import Cluster

    disks = [tmp_path / "disk0", tmp_path / "disk1"]
    cluster = Cluster()
    for disk in disks:
        disk.mkdir()
        node = cluster.add_node(num_cpus=1, include_dashboard=False, env_vars={"TMPDIR": str(disk)})
    yield cluster, node, disks
    ray_executor.end_ray()
    cluster.shutdown()


def slower(t):
    return 1 / (1 + t)


def trials(folder: Path, **settings) -> list[Trial]:
    file = folder / "mine.py"
    file.write_text(FILE.replace("FOLDER", str(folder)))
    common = {
        "task": {"name": "quadratic", "targets": [0.0, 1.0, 4.0]},
        "participation": {"name": "bernoulli", "probability": 0.5},
        "local": {"schedule": slower},
        "algorithm": f"{file}:Mine",
        "rounds": 60,
    }
    return [Trial.read(common | settings | {"seed": seed}) for seed in (0, 1)]


def run(jobs, say, **how):
    from rollcall.benchmark.sweep.ray_executor import Plan, run_plan

    execution = Execution(store=jobs[0].store, **how)
    execution.say = say
    grid, errors, _ = run_plan(Plan(jobs), jobs[0].folder.path.parent, execution)
    return Sweep(jobs, jobs, errors, grid)


def test_a_node_dies_and_its_trial_goes_on_elsewhere(nodes, tmp_path):
    cluster, second, disks = nodes
    gate, log = tmp_path / "open", tmp_path / "rounds"
    gate.touch()
    jobs = [Job(trial, "own", tmp_path / "runs") for trial in trials(tmp_path)]
    undisturbed = [simulate(job.trial, folder=tmp_path / "undisturbed" / job.trial.name) for job in jobs]
    for file in (gate, log, tmp_path / "mine.py"):  # nodes do not have the file of the method
        file.unlink()
    statuses = [job.folder.path / "status.json" for job in jobs]
    seen, settings = [], []

    def kill() -> None:
        def carried() -> list[int]:
            return [len({path.parent for path in disk.glob("rollcall-*/carried/*/*.ckpt")}) for disk in disks]

        def uploaded(status: Path) -> bool:
            return status.exists() and json.loads(status.read_text())["round"] > 0

        until = time.monotonic() + 400
        while time.monotonic() < until and not (all(map(uploaded, statuses)) and all(carried())):
            time.sleep(0.1)
        settings.extend((status.parent / "trial.yaml").exists() for status in statuses)
        seen.extend(carried())
        cluster.remove_node(second, allow_graceful=False)

    lines = []

    def say(line: str) -> None:
        lines.append(line)
        gate.touch()

    killer = Thread(target=kill)
    killer.start()
    every = timedelta(seconds=0.1)
    how = {"checkpoint_every": every, "storage": str(tmp_path / "storage"), "address": cluster.address}
    ends = run(jobs, say, **how)
    killer.join()

    assert (ends.finished, ends.failed) == (2, {})
    assert seen == [1, 1]  # each node had a run folder on its own disk
    assert settings == [True, True]  # for MLflow, which reads the home folders meanwhile
    assert len(lines) == 1
    assert "resumes from its checkpoint" in lines[0]
    rounds = [line.split() for line in log.read_text().splitlines()]
    for job, result in zip(jobs, undisturbed, strict=True):
        assert job.folder.state == "finished"
        assert np.array_equal(RunFolder(job.folder.path).models()["server"], result.server)
        for name in ("metrics.jsonl", "model.npz", "source/mine.py"):
            assert (job.folder.path / name).read_bytes() == (result.folder / name).read_bytes()
        done = [int(t) for seed, t in rounds if int(seed) == job.trial.seed]
        assert done.count(0) == 1  # it went on from a checkpoint
        assert set(done) == set(range(60))


def test_a_storage_brings_no_folder_home_that_is_older_there(nodes, tmp_path):
    """Both trials have run folders from an earlier sweep, which end while the other one goes on."""
    cluster, _, _ = nodes
    (tmp_path / "open").touch()
    jobs = [Job(trial, "own", tmp_path / "runs") for trial in trials(tmp_path)]
    for job in jobs:
        rounds = iter(range(1, 100))
        run_job(job.trial, job.folder.path, lambda rounds=rounds: next(rounds) == 5, timedelta(0))
        assert job.folder.state == "interrupted"
    how = {"checkpoint_every": timedelta(0), "storage": str(tmp_path / "storage"), "address": cluster.address}
    ends = run(jobs, print, **how)
    assert (ends.finished, ends.failed) == (2, {})
    assert [RunFolder(job.folder.path).state for job in jobs] == ["finished"] * 2


def test_ray_dies_and_starts_again_as_often_as_retries_allow(tmp_path, one_ray):
    jobs = [Job(trial, "own", tmp_path / "runs") for trial in trials(tmp_path, rounds=1200, local={})]
    slow = tmp_path / "slow"
    for file in (slow, tmp_path / "open"):
        file.touch()
    statuses = [job.folder.path / "status.json" for job in jobs]
    elsewhere = []

    def rounds() -> list[int]:
        return [json.loads(status.read_text())["round"] if status.exists() else 0 for status in statuses]

    def kill() -> None:
        import ray

        for deaths in range(2):
            until = time.monotonic() + 200
            while time.monotonic() < until and len(lines) < deaths:  # workers outlive Ray
                time.sleep(0.1)
            before = rounds()
            while time.monotonic() < until and any(now <= was for now, was in zip(rounds(), before, strict=True)):
                time.sleep(0.1)
            (node,) = ray.nodes()
            for port in (
                node["NodeManagerPort"],
                node["ObjectManagerPort"],
                ray.get_runtime_context().gcs_address.split(":")[1],
            ):
                for address in ("127.0.0.1", "127.0.0.2"):
                    with socket.socket() as asked:
                        elsewhere.append(asked.connect_ex((address, int(port))) == 0)
            (raylet,) = subprocess.check_output(["pgrep", "-P", str(os.getpid()), "-x", "raylet"]).split()
            os.kill(int(raylet), signal.SIGKILL)

    lines = []
    killer = Thread(target=kill)
    killer.start()
    ends = run(jobs, lines.append)
    killer.join()
    died = "Ray died on this machine; memory may have run out. "
    assert lines == [f"{died}It starts again; trials resume (retry 1 of 1)", f"{died}Rerun the command to resume"]
    assert (ends.interrupted, ends.failed) == (2, {})
    assert elsewhere == [True, False] * 6  # every address of 127.0.0.0/8 reaches what listens on all interfaces
    slow.unlink()
    assert run_inline(jobs) == ({}, False)

    done = [line.split() for line in (tmp_path / "rounds").read_text().splitlines()]
    for job, mifa in zip(jobs, trials(tmp_path, rounds=1200, local={}, algorithm="mifa"), strict=True):
        assert [t for seed, t in done if int(seed) == job.trial.seed] == [str(t) for t in range(job.trial.rounds)]
        undisturbed = simulate(mifa, folder=tmp_path / mifa.name)
        assert np.array_equal(job.folder.models()["server"], undisturbed.server)
        assert job.folder.metrics.read_bytes() == (undisturbed.folder / "metrics.jsonl").read_bytes()


def test_four_trials_share_a_gpu_two_gpus_are_used_and_without_a_share_none(tmp_path, one_ray, monkeypatch):
    from command import TINY  # here, for nodes of the cluster load this file, and do not have the other

    from rollcall.benchmark.sweep import ray_executor

    # isort: split
    import ray

    ray_executor.end_ray()
    monkeypatch.delenv("RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO")  # as on the nodes of a cluster
    ray.init(address="local", num_cpus=5, num_gpus=2, include_dashboard=False, log_to_driver=False)  # need not be there
    (tmp_path / "seen").mkdir()
    (tmp_path / "mine.py").write_text(SEEING.replace("FOLDER", str(tmp_path / "seen")))
    experiment = Experiment.model_validate(
        {"name": "tiny"} | TINY | {"grid": {"algorithm": [f"{tmp_path / 'mine.py'}:Seeing"], "seed": list(range(5))}}
    )
    for share, seen in ((0.25, ["0"] * 4 + ["1"]), (0, [""] * 5)):
        result = rollcall.run(experiment, store=tmp_path / f"runs{share}", gpus_per_trial=share, mlflow=False)
        assert set(result.frame["state"]) == {"finished"}
        assert sorted(file.read_text() for file in (tmp_path / "seen").iterdir()) == seen
        for file in (tmp_path / "seen").iterdir():
            file.unlink()
    ray.shutdown()
