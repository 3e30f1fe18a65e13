"""Settings of a trial that are refused, and the line that says so. Mistakes in a user's code: `test_mistakes.py`."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import pytest

from rollcall import SettingError, Trial, simulate
from rollcall.algorithms import Memoryless

TRIAL = {
    "task": {"name": "quadratic", "targets": np.arange(6.0).reshape(3, 2)},
    "participation": {"name": "trace", "mask": [[1, 0, 1]], "probability": [0.5, 0.5, 0.5]},
    "algorithm": "fedavg",
    "rounds": 4,
}
DIGITS = {"name": "digits", "clients": 3}


def sent(probability):
    return {"participation": {"name": "bernoulli", "probability": probability}}


def clock(**settings):
    return {"clock": {"speed": 1} | settings}


REFUSED = [
    # the task and the participation
    ({"task": DIGITS | {"partition": {"name": "dirichlet", "beta": 1}}}, "task.partition.beta: is not an option of dirichlet; allowed: alpha"),
    ({"task": DIGITS | {"partition": "slices"}}, "task.partition: 'slices' is not allowed; must be one of iid, dirichlet"),
    ({"task": {"name": "quadratic", "targets": "none.npy"}}, "task.targets: 'none.npy' is not allowed; there is no file /.*/none.npy"),
    ({"task": {"name": "quadratic", "targets": "none"}}, "task.targets: 'none' is not allowed; must be numbers, or the path of a .npy or .npz file"),
    ({"task": {"name": "quadratic", "targets": [[1, 2], [1]]}}, "must be numbers in rows of equal length"),
    ({"participation": {"name": "trace", "mask": "none.csv"}}, "participation.mask: 'none.csv' is not allowed; there is no file /.*/none.csv"),
    ({"participation": {"name": "trace", "mask": "none.csv.gz"}}, "participation.mask: 'none.csv.gz' is not allowed; there is no file /.*/none.csv.gz"),
    (sent({"name": "constant", "p": "a"}), "participation.probability.p: 'a' is not allowed; must be a number"),
    (sent("halfs"), "participation.probability: 'halfs' is not allowed; must be numbers, or the path of a .npy or .npz file"),
    (sent(None), "participation.probability: null is not allowed; must be numbers"),
    (sent(True), "participation.probability: true is not allowed; must be a number"),
    ({"task": {"name": "leaf_synthetic", "labelling": "y"}}, "task.labelling: 'y' is not allowed; must be 'own' or 'shared' or a number"),
    # types
    ({"local": 3}, "local: 3 is not allowed; must be a mapping of settings to values"),
    ({"local": {"steps": 1.5}}, "local.steps: 1.5 is not allowed; must be a whole number"),
    ({"local": {"lr": float("inf")}}, "local.lr: inf is not allowed; must be a finite number"),
    ({"local": {"keep_momentum": None}}, "local.keep_momentum: null is not allowed; must be true or false"),
    ({"local": {"batch_size": 0}}, "local.batch_size: 0 is not allowed; must be greater than 0 or 'full'"),
    ({"local": {"schedule": {"name": "inverse_sqrt", "period": 0}}}, "local.schedule.period: 0 is not allowed; must be greater than 0"),
    ({"evaluation": {"splits": [1]}}, "evaluation.splits.0: 1 is not allowed; must be a text"),
    # settings that do not go together
    ({"local": {"steps": 2, "epochs": 1}}, "local.epochs: 1 is not allowed together with steps; set only one of the two"),
    ({"local": {"steps": None}}, "local.steps: null is not allowed without epochs"),
    ({"local": {"keep_momentum": True}}, "local.keep_momentum: true is not allowed without momentum"),
    ({"local": {"momentum": 1.0}}, "local.momentum: 1 is not allowed; must be less than 1"),
    ({"server": {"optimizer": {"name": "sgd", "lr": 1}, "lr": 0.1}}, "server.lr: 0.1 is not allowed beside optimizer.lr; leave one of them out"),
    ({"server": {"optimizer": "adam", "momentum": 0.9}}, "server.momentum: 0.9 is not allowed with adam; must be left out"),
    ({"evaluation": {"metrics": ["auc"]}}, "evaluation.metrics.*'auc' is not allowed; must be one of auroc"),
    ({"evaluation": {"metrics": ["auroc"]}}, "evaluation.metrics: auroc cannot be computed from the predictions of this task: .*missing the required .forward"),
    ({"evaluation": {"metrics": ["client_variance"]}}, "evaluation.metrics: client_variance needs the accuracy of each sample"),
    ({"evaluation": {"by": ["class"]}}, "evaluation.by: 'class' is not allowed"),
    ({"evaluation": {"by": ["client"]}}, "evaluation.by: is not allowed with quadratic, which measures no single sample"),
    ({"evaluation": {"weights": ["client"]}, "server": {"optimizer": "adam"}}, "evaluation.weights: needs .* linear in the client updates; server.optimizer adam is not$"),
    ({"evaluation": {"weights": ["client"]}, "algorithm": {"name": "fedawe", "clip": 0.5}}, "evaluation.weights: needs .*; fedawe with these options is not$"),
    # methods
    ({"algorithm": {"name": "mifa", "memory": "x"}}, "algorithm.memory: 'x' is not allowed; must be 'gradients', 'updates' or 'differences'"),
    ({"algorithm": "my_method.py"}, "algorithm.*'my_method.py' is not allowed; must say what in the file: my_method.py:NAME"),
    ({"algorithm": {"name": "fedstale", "beta": 1.5}}, "algorithm.beta: 1.5 is not allowed"),
    ({"algorithm": {"name": "amplified_fedavg", "P": 0}}, "algorithm.P: 0 is not allowed"),
    ({"algorithm": "fednova", "local": {"momentum": 0.5}}, "local.momentum: 0.5 is not allowed with fednova's rho 0;"),
    ({"algorithm": {"name": "fednova", "rho": 0.9}, "local": {"momentum": 0.9, "keep_momentum": True}}, "local.keep_momentum: true is not allowed with fednova"),
    ({"algorithm": {"name": "fedavg_debiased", "oracle": True, "horizon": 9}}, "algorithm.horizon: 9 is not allowed with oracle; must be left out"),
    ({"algorithm": "fedsgd", "local": {"steps": None, "epochs": 1, "batch_size": 8}}, "local.epochs is not allowed with fedsgd, which uses one gradient"),
    ({"algorithm": "unbiased", "participation": {"name": "weighted", "per_round": 1, "probability": [0.2, 0.4, 0.1]}}, "algorithm.name: 'unbiased' .*does not provide stationary"),
    ({"algorithm": "local_sgd"} | clock(), "algorithm.name: 'local_sgd' is not allowed with a clock; it exchanges"),
    # the objective
    ({"target": "size"}, "target: 'size' is not allowed; must be uniform, samples, or numbers from 0 for each client"),
    ({"target": [1, 2]}, "target: .*2 weights are not allowed; must be 3"),
    ({"target": [0, 0, 0]}, "target: .*not all 0"),
    # the clock
    ({"clock": {}}, "clock.speed: is missing; it must be given"),
    (clock(speed=0), r"clock.speed: 0 \(client 0\) is not allowed; must be above 0"),
    (clock(speed=[1.0, 2.0]), r"clock.speed: shape \(2,\) is not allowed; must be one number or \[3\], one for each client"),
    (clock(speed={"name": "lognormal", "median": -1}), "clock.median: -1 is not allowed; must be at least 0"),
    (clock(wait="some"), "clock.wait: 'some' is not allowed; must be all, {first: N}, {deadline: SECONDS}, or both keys"),
    (clock(wait={"first": 4}), r"clock.wait.first: 4 is not allowed; must be in \[1, 3\]"),
    (clock(wait={"deadline": 0.5}), "clock.wait.deadline: 0.5 is not allowed; must be at least 1, which the fastest client needs"),
    (clock(failure=1.5), r"clock.failure: 1.5 \(client 0\) is not allowed; must be in \[0, 1\]"),
]  # fmt: skip


@pytest.mark.parametrize(("changes", "complaint"), REFUSED)
def test_one_line_says_what_is_wrong(changes, complaint):
    with pytest.raises(SettingError, match=complaint) as caught:
        simulate(TRIAL | changes)
    assert "\n" not in str(caught.value)


def test_the_name_of_an_experiment_is_no_trial():
    message = (
        "^trial: 'quickstart' is not allowed; must be a mapping or a YAML file of one trial; for an experiment use "
    )
    with pytest.raises(SettingError, match=message):
        simulate("quickstart")


@pytest.mark.parametrize(
    ("methods", "changes", "complaint"),
    [
        ("fedprox scaffold scaffnew focus feddyn amplified_scaffold", {"local": {"momentum": 0.9}}, "local.momentum: 0.9 is not allowed with {}, which changes the direction"),
        ("fedsgd fedsgd_iw", {"local": {"steps": 3}}, "local.steps: 3 is not allowed with {}, which uses one gradient in each round; must be local.steps: 1"),
        ("fedpbc fedawe scaffnew feddyn fedavgm amplified_fedavg amplified_scaffold", {"server": {"lr": 0.1}}, "server: .* is not allowed with {}"),
    ],
)  # fmt: skip
def test_settings_that_several_methods_do_not_allow(methods, changes, complaint):
    for name in methods.split():
        with pytest.raises(SettingError, match=f"^{complaint.format(name)}"):
            Trial.read(TRIAL | {"algorithm": name} | changes)


@dataclass(frozen=True)
class Hasty(Memoryless):
    needs: ClassVar = ("no_momentm",)

    def round(self, state, x, call, work):
        return None, state


def test_a_need_that_does_not_exist_is_refused():
    message = "^needs: 'no_momentm' is not allowed in Hasty; must be a tuple of names out of one_step, no_momentum, "
    with pytest.raises(SettingError, match=message):
        Trial.read(TRIAL | {"algorithm": Hasty()})


class Careful(Hasty):
    needs = ("no_momentum",)

    def check(self, setting):
        if setting.steps == 1:
            raise ValueError("local.steps: 1 is not allowed with careful; must be more")


def test_a_method_may_have_needs_and_a_check():
    for local, complaint in (
        ({"steps": 1}, "local.steps: 1 "),
        ({"steps": 2, "momentum": 0.9}, "local.momentum: 0.9 "),
    ):
        with pytest.raises(SettingError, match=f"^{complaint}is not allowed with "):
            Trial.read(TRIAL | {"algorithm": Careful(), "local": local})
    Trial.read(TRIAL | {"algorithm": Careful(), "local": {"steps": 2}})
