"""Ray workers run choices of the user's own, also those of a file that they do not have, and Python objects."""

import numpy as np

from benchmark import Trial, simulate
from benchmark.federation.run_folder import RunFolder
from benchmark.sweep.jobs import CallbackList, Job
from benchmark.sweep.ray_executor import run_ray

FILE = """
import numpy as np
from participation import Participation


class Alternating(Participation):
    def __init__(self, population):
        self.clients = population.clients

    def active(self, t):
        return np.arange(t % 2, self.clients, 2)
"""


def test_workers_need_no_file(tmp_path):
    def halving(t):
        return 0.5**t

    file = tmp_path / "mine.py"
    file.write_text(FILE)
    common = {"task": {"name": "quadratic", "targets": [0.0, 1.0, 4.0]}, "algorithm": "fedavg", "rounds": 4}
    trials = [
        Trial.read(common | {"participation": f"{file}:Alternating"}),
        Trial.read(common | {"local": {"schedule": halving}}),
    ]
    here = [simulate(trial).server for trial in trials]
    file.unlink()  # as on another machine
    jobs = [Job(trial, "own", tmp_path / "runs") for trial in trials]
    run_ray(jobs, CallbackList())
    for job, server in zip(jobs, here, strict=True):
        assert job.folder.status["state"] == "finished"
        assert np.array_equal(RunFolder(job.folder.path).models()[1], server)
    assert (jobs[0].folder.path / "source" / "mine.py").read_text() == FILE
