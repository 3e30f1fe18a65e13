import numpy as np
import pytest
import torch
from runs import no_federation_left

from rollcall.benchmark.config.trial import Trial
from rollcall.benchmark.federation.build import build
from rollcall.benchmark.federation.run_folder import RunFolder
from rollcall.benchmark.federation.simulation import simulate
from rollcall.benchmark.process import Interrupted
from rollcall.benchmark.sweep import lockstep
from rollcall.benchmark.sweep.jobs import Job, run_inline
from rollcall.benchmark.sweep.lockstep import run_group, run_lockstep, shared
from rollcall.tasks import supervised

DIGITS = {"name": "digits", "clients": 5, "model": "linear", "partition": {"name": "dirichlet", "alpha": 0.1}}
TRIAL = {"task": DIGITS, "participation": {"name": "bernoulli", "probability": 0.4}, "rounds": 6, "seed": 3}
TRIAL |= {"evaluation": {"every": 4, "splits": ["test"]}, "numerics": {"dtype": "float64"}}


def trial(algorithm, lr, **settings):
    return Trial.read(TRIAL | {"algorithm": algorithm, "local": {"steps": 2, "batch_size": 16, "lr": lr}} | settings)


def test_trials_that_run_together_give_what_each_gives_alone(tmp_path):
    # Plain steps, scaled ones, corrected ones, gradients one by one, inactive clients that train, a rate of the server.
    trials = [trial(name, 0.05) for name in ("fedavg", "fedavg_debiased", "scaffold", "fedprox", "fedpbc")]
    trials.append(trial("mifa", 0.1, server={"lr": 0.5}))
    assert len({shared(one) for one in trials}) == 1
    jobs = [Job(one, "together", tmp_path) for one in trials]
    assert run_lockstep(jobs) == ({}, False)
    for job in jobs:
        alone, folder = simulate(job.trial), job.folder
        assert job.finished
        assert not folder.altered()
        np.testing.assert_allclose(folder.models()["model"], alone.model, rtol=1e-9, atol=1e-12)
        np.testing.assert_allclose(folder.history()[alone.history.columns], alone.history, rtol=1e-9)
        assert simulate(job.trial, folder=folder.path).history.equals(folder.history())  # it counts as finished


def test_one_that_diverges_or_fails_does_not_stop_the_others(tmp_path):
    good, wild = trial("fedavg", 0.1), trial("mifa", 1e300, server={"lr": 1e300})
    alone = trial("fedavg", 0.1, local={"steps": 2, "batch_size": 16, "lr": 0.1, "momentum": 0.9})
    assert shared(alone) == ""
    jobs = [Job(one, "together", tmp_path) for one in (good, wild, alone)]
    assert run_lockstep(jobs) == ({}, False)
    assert [job.folder.state for job in jobs] == ["finished", "diverged", "finished"]
    assert jobs[1].diverged
    assert jobs[1].folder.status["diverged"] == simulate(wild).diverged


FAULTY = """
from rollcall.algorithms import FedAvg


class Faulty(FedAvg):
    def round(self, state, x, call, work):
        return x[call.t + 10 ** 9], state
"""


def test_a_failure_names_the_line_of_ones_own_code_as_a_run_alone_does(tmp_path):
    (tmp_path / "faulty.py").write_text(FAULTY)
    jobs = [Job(trial(f"{tmp_path / 'faulty.py'}:Faulty", 0.1), f"{way}", tmp_path) for way in ("together", "alone")]
    (errors, _), (expected, _) = run_lockstep(jobs[:1]), run_inline(jobs[1:])
    assert errors == expected
    assert "faulty.py:7: IndexError: " in str(errors)


def test_a_trial_that_another_process_has_run_meanwhile_is_left_alone(tmp_path, monkeypatch):
    jobs = [Job(trial("fedavg", rate), "together", tmp_path) for rate in (0.1, 0.2)]
    status = []

    def late(one):
        if one is jobs[1].trial:
            simulate(one, folder=jobs[1].folder.path)
            status.append(jobs[1].folder.status)
        return build(one)

    monkeypatch.setattr("rollcall.benchmark.sweep.lockstep.build", late)
    assert run_lockstep(jobs) == ({}, False)
    assert all(job.finished for job in jobs)
    assert status == [jobs[1].folder.status]


def test_one_that_another_process_runs_is_not_in_the_pace(tmp_path):
    jobs = [Job(trial("fedavg", 0.1, seed=seed), "together", tmp_path) for seed in (1, 2, 3)]
    lines = []
    with RunFolder(jobs[0].folder.path).locked():
        assert run_lockstep(jobs, lines.append) == ({}, False)
    assert [line.partition(";")[0] for line in lines] == ["0 of 3 trials", "1 of 3 trials", "2 of 3 trials"]
    assert [" of one core left" in line for line in lines] == [False, True, True]


def test_a_group_leaves_no_models_in_memory(tmp_path):
    """Python alone would find them late: the next groups of a search would add theirs."""
    with no_federation_left():
        assert run_lockstep([Job(trial("mifa", rate), "together", tmp_path) for rate in (0.1, 0.2)]) == ({}, False)


def test_trials_with_other_data_or_participation_do_not_run_together():
    one = trial("fedavg", 0.1)
    others = [{"seed": 4}, {"participation": "full"}, {"numerics": {"dtype": "float32"}}, {"target": "samples"}]
    others.append({"target": np.arange(1.0, 6.0)})
    assert all(shared(trial("mifa", 0.3, **other)) != shared(one) for other in others)
    assert shared(trial("mifa", 0.3, rounds=7)) == shared(one)


def test_a_trial_with_a_clock_runs_alone(tmp_path):
    """Who is in time depends on the deadline, and on how much the method sends: floats up by hand."""
    quadratic = {"name": "quadratic", "targets": np.arange(10.0)[:, None]}
    base = TRIAL | {"task": quadratic, "participation": "full", "local": {"steps": 1, "lr": 0.1}, "rounds": 2}
    clock = {"speed": [float(speed) for speed in range(1, 11)], "up": 10.0}
    # A client needs 1 / speed + 0.1 seconds, or with two vectors 0.2: four, nine and eight clients are in time.
    cases = [("fedavg", 0.25, 2 * 4), ("fedavg", 0.65, 2 * 9), ("scaffold", 0.65, 2 * 8 * 2)]
    trials = [
        Trial.read(base | {"evaluation": {}, "algorithm": name, "clock": clock | {"wait": {"deadline": end}}})
        for name, end, _ in cases
    ]
    jobs = [Job(one, "timed", tmp_path) for one in trials]
    assert run_lockstep(jobs) == ({}, False)
    for job, (_, _, floats) in zip(jobs, cases, strict=True):
        history = job.folder.history()
        assert history["cost/floats_up"].iloc[-1] == floats
        assert history.equals(simulate(job.trial).history)


class TwoFaced(torch.nn.Linear):
    """Predictions are five times as large in evaluation mode."""

    def forward(self, x):
        return super().forward(x) * (1 if self.training else 5)


def test_evaluations_are_in_evaluation_mode_and_the_data_are_noted(tmp_path):
    x = np.random.default_rng(0).normal(size=(40, 3)).astype(np.float32)  # as the network has them
    task = supervised((x, (x[:, 0] > 0).astype(int)), None, lambda seed: TwoFaced(3, 2), clients=5)
    settings = {"task": task, "evaluation": {"every": 3}}
    jobs = [Job(trial("fedavg", rate, **settings), "modes", tmp_path) for rate in (0.1, 0.3)]
    assert len({shared(job.trial) for job in jobs}) == 1
    assert run_lockstep(jobs) == ({}, False)
    y = torch.from_numpy((x[:, 0] > 0).astype(int))
    for job in jobs:
        folder = job.folder
        weight, bias = np.split(folder.models()["model"], [6])
        logits = 5 * torch.from_numpy(x @ weight.reshape(2, 3).T + bias)
        loss = torch.nn.functional.cross_entropy(logits, y).item()
        np.testing.assert_allclose(folder.history()["train/loss"].iloc[-1], loss, rtol=1e-9)
        alone = simulate(job.trial, folder=tmp_path / "alone" / job.trial.name)
        np.testing.assert_allclose(folder.history()[alone.history.columns], alone.history, rtol=1e-9)
        assert folder.status["data"] == RunFolder(alone.folder).status["data"] != ""


def test_a_group_that_cannot_run_together_has_all_threads(tmp_path, monkeypatch):
    """The buffers of BatchNorm belong to one trial."""
    x = np.random.default_rng(0).normal(size=(40, 3)).astype(np.float32)
    model = torch.nn.Sequential(torch.nn.BatchNorm1d(3), torch.nn.Linear(3, 2))
    task = supervised((x, (x[:, 0] > 0).astype(int)), None, lambda seed: model, clients=5)
    settings = {"task": task, "evaluation": {"every": 3}}
    jobs = [Job(trial("fedavg", rate, **settings), "buffers", tmp_path) for rate in (0.1, 0.3)]
    threads, seen = torch.get_num_threads(), []
    monkeypatch.setattr(
        lockstep, "run_inline", lambda some: seen.append((len(some), torch.get_num_threads())) or ({}, False)
    )
    torch.set_num_threads(2)
    try:
        run_group(jobs)
    finally:
        torch.set_num_threads(threads)
    assert seen == [(2, 2)]
    monkeypatch.setattr(lockstep, "run_inline", lambda some: ({}, True))
    assert run_group(jobs) == ({}, True)


def test_a_signal_that_only_the_trials_of_a_group_see_ends_all_groups(tmp_path, monkeypatch):
    """Trials that cannot run together listen to signals themselves."""
    groups, lines = [], []
    monkeypatch.setattr(lockstep, "run_group", lambda part, requested: groups.append(part) or ({}, True))
    jobs = [Job(trial("fedavg", 0.1, seed=seed), "asked", tmp_path) for seed in (0, 1, 2)]
    assert run_lockstep(jobs, lines.append) == ({}, True)
    assert (len(groups), lines) == (1, [])


def test_an_error_ends_all_trials_and_leaves_no_checkpoint_of_an_earlier_run(tmp_path, monkeypatch):
    """A trial that `simulate` left after three rounds begins anew here."""
    jobs = [Job(trial("fedavg", rate), "ended", tmp_path) for rate in (0.1, 0.3)]
    count = iter(range(1, 100))
    with pytest.raises(Interrupted):
        simulate(jobs[0].trial, folder=jobs[0].folder.path, stop=lambda: next(count) == 3)
    assert jobs[0].folder.checkpoint.exists()
    served, calls = lockstep.serve, iter(range(100))

    def failing(*args):
        if next(calls) == 2:
            raise RuntimeError("out of memory")
        served(*args)

    monkeypatch.setattr(lockstep, "serve", failing)
    with pytest.raises(RuntimeError, match="out of memory"):
        run_lockstep(jobs)
    assert [(job.folder.in_use, job.folder.state) for job in jobs] == [(False, "interrupted")] * 2
    assert not jobs[0].folder.checkpoint.exists()
    monkeypatch.undo()
    assert run_lockstep(jobs) == ({}, False)
    for job in jobs:
        np.testing.assert_allclose(job.folder.history(), simulate(job.trial).history, rtol=1e-9)


def test_trials_whose_steps_differ_in_more_than_the_rate_do_not_run_together():
    """One engine computes a group: with one minibatch size, one decay and one limit."""
    local = {"steps": 2, "batch_size": 16, "lr": 0.1}
    one = shared(trial("fedavg", 0.1))
    for change in ({"steps": 9}, {"batch_size": 7}, {"weight_decay": 0.1}, {"clip": 0.5}, {"last_batch": "drop"}):
        assert shared(trial("fedavg", 0.1, local=local | change)) != one, change
    assert shared(trial("mifa", 0.3)) == one
