"""Choices from outside the suite: every way to name them means the same; the kind of a part, seen from its base class."""

import importlib.util
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import yaml

from rollcall import SettingError, Trial, algorithms, simulate
from rollcall.benchmark.config.choice import kind_of, read
from rollcall.benchmark.config.digest import digest
from rollcall.benchmark.config.dotted import merged, put
from rollcall.participation import Bernoulli, Population, stream

FILE = Path(__file__).parents[2] / "support" / "own.py"
QUADRATIC = {"name": "quadratic", "targets": [[0.0, 1.0], [4.0, 5.0], [2.0, -3.0]]}


@pytest.fixture
def own(monkeypatch):
    """The file as a module, as a user's script imports it."""
    monkeypatch.syspath_prepend(FILE.parent)
    yield importlib.import_module("own")
    sys.modules.pop("own", None)


def trial(prefix):
    """A trial in which every choice is the user's own; `prefix` makes the name from that in the file."""
    task = {"name": "digits", "clients": 6, "partition": {"name": prefix("stripes"), "offset": 1}}
    return {
        "task": task | {"model": {"name": prefix("network"), "width": 4}},
        "participation": {"name": prefix("Alternating"), "first": 1},
        "algorithm": prefix("Halved"),
        "local": {"steps": 1, "batch_size": 8, "schedule": {"name": prefix("slower")}},
        "server": {"optimizer": {"name": prefix("SignSGD"), "scale": 0.5}, "lr": 0.01},
        "rounds": 2,
    }


def test_file_module_and_object_are_the_same_trial(own, tmp_path):
    by_file = Trial.read(trial(lambda name: f"{FILE}:{name}"))
    by_module = Trial.read(trial(lambda name: f"own:{name}"))
    by_object = Trial.read(trial(lambda name: getattr(own, name)))
    assert by_file.name == by_module.name == by_object.name
    assert by_file.name.startswith("Halved-seed0-")
    results = [simulate(one) for one in (by_file, by_object)]
    assert np.array_equal(results[0].server, results[1].server)
    # Two rounds of sign steps of 0.005: every weight moved by 0, 0.005 or 0.01 from the initial model.
    start = simulate(trial(lambda name: f"{FILE}:{name}") | {"server": {"lr": 1e-30}}).server
    moved = np.abs(results[0].server - start) / 0.005
    assert np.allclose(moved, moved.round(), atol=1e-3)
    assert set(moved.round()) <= {0, 1, 2}


def test_ones_own_optimizer_with_the_name_of_the_suites_has_no_option_of_it(tmp_path):
    file = tmp_path / "mine.py"
    file.write_text("import torch\n\n\ndef sgd(params, lr):\n    return torch.optim.SGD(params, lr)\n")
    settings = {"task": QUADRATIC, "algorithm": "fedavg", "rounds": 2}
    with pytest.raises(SettingError, match=r"^server\.momentum: 0\.9 is not allowed with sgd; must be left out"):
        Trial.read(settings | {"server": {"optimizer": f"{file}:sgd", "momentum": 0.9}})
    own = simulate(settings | {"server": {"optimizer": f"{file}:sgd", "lr": 0.5}})
    assert np.array_equal(own.server, simulate(settings | {"server": {"lr": 0.5}}).server)


@pytest.mark.parametrize(
    ("options", "mean"), [({}, (1 + 0.5 + 1 / 3) / 3), ({"period": 2}, 0.75), ({"period": 0}, None)]
)
def test_the_period_of_a_variation_gives_the_stationary_probabilities(tmp_path, options, mean):
    file = tmp_path / "mine.py"
    file.write_text("def falls(p, t, *, period: int = 3):\n    return p / (1 + t % max(period, 1))\n")
    variation = {"name": f"{file}:falls"} | options
    model = read("participation", {"name": "bernoulli", "probability": 0.6, "variation": variation}).build(
        Population(2)
    )
    assert model.probability(4)[0] == pytest.approx(0.6 / (1 + 4 % max(1, options.get("period", 3))))
    assert model.stationary == (None if mean is None else pytest.approx(np.full(2, 0.6 * mean)))


def test_the_source_is_in_the_run_folder_and_in_the_digest(tmp_path):
    mine, again = tmp_path / "mine.py", tmp_path / "elsewhere.py"
    for file in (mine, again):
        file.write_text(FILE.read_text())
    settings = {"task": QUADRATIC, "algorithm": "fedavg", "rounds": 1, "participation": f"{mine}:Alternating"}
    before = Trial.read(settings)
    simulate(before, folder=tmp_path / "run")
    assert (tmp_path / "run" / "source" / "mine.py").read_text() == FILE.read_text()
    assert yaml.safe_load((tmp_path / "run" / "trial.yaml").read_text())["participation"] == f"{mine}:Alternating"
    assert Trial.read(settings | {"participation": f"{again}:Alternating"}).digest == before.digest
    mine.write_text(FILE.read_text().replace("% 2", "% 3"))
    assert Trial.read(settings).digest != before.digest
    assert digest({"algorithm": f"{mine}:A"}) != digest({"algorithm": f"{mine}:B"})


def test_an_instance_of_a_method(tmp_path):
    choice = read("algorithm", algorithms.MIFA(memory="updates"))
    assert choice.options["memory"] == "updates"
    assert choice.build() == algorithms.MIFA(memory="updates")
    (tmp_path / "mine.py").write_text("from rollcall.algorithms import MIFA\nmethod = MIFA(memory='updates')\n")
    assert read("algorithm", f"{tmp_path}/mine.py:method").build() == choice.build()


def test_an_instance_is_taken_as_it_is():
    model = Bernoulli(Population(3, seed=5), probability=0.5)
    settings = {"task": QUADRATIC, "algorithm": "fedavg", "rounds": 1, "participation": model}
    other = Bernoulli(Population(3, seed=6), probability=0.5)
    assert Trial.read(settings).digest != Trial.read(settings | {"participation": other}).digest
    assert Trial.read(settings).digest == Trial.read(settings).digest
    # A run calls the clients that the instance, of seed 5, calls.
    mask = np.array([np.isin(range(3), model.active(t)) for t in range(20)])
    given, recorded = (
        simulate(settings | {"rounds": 20, "participation": one}) for one in (model, {"name": "trace", "mask": mask})
    )
    assert given.server.tolist() == recorded.server.tolist()
    with pytest.raises(SettingError, match=r"^participation: .*`clients` is 3; must be 2"):
        simulate(settings | {"task": {"name": "quadratic", "targets": [0.0, 1.0]}})


@pytest.mark.parametrize(
    ("kind", "name", "complaint"),
    [
        ("partition", "Halved", r"must be a function of \(labels, clients, seed\) that returns .*; it is a class of FedAvg, at .*own.py:\d+"),
        ("partition", "ramp", r"must be a function of \(labels, clients, seed\) .*; it takes \(population, low\), at .*own.py:\d+"),
        ("algorithm", "ramp", r"must be a subclass of rollcall.algorithms.Algorithm; it is a function, at .*own.py:\d+"),
        ("participation", "Halved", r"must be a function of \(population\) that returns a rollcall.participation.Participation .*; it is a class of FedAvg"),
        ("model", "nn", r"must be a function of \(shape, classes\) that returns a torch.nn.Module; it is a module"),
        ("model", "newtork", r"own.py must define newtork; it defines network, stripes, ramp"),
        ("algorithm", "no_such_package.part:Thing", "there is no module no_such_package. Install its package, or name a file"),
        ("algorithm", "rollcall.algorithms:Nothing_", r"algorithms must define Nothing_; .* Did you mean Nothing\?"),
    ],
)  # fmt: skip
def test_what_is_not_of_the_kind_is_refused(kind, name, complaint):
    with pytest.raises(SettingError, match=complaint):
        read(kind, name if ":" in name else f"{FILE}:{name}")


def decay(factor):
    return lambda t: factor / (t + 1)


class Local:
    def make(self):
        class Mine(algorithms.FedAvg):
            pass

        return Mine


@pytest.mark.parametrize(
    ("change", "named"),
    [
        ({"local": {"schedule": decay(2)}}, r"local\.schedule\.name: decay\.<locals>\.<lambda>, at .*test_contributed\.py:\d+,"),
        ({"participation": lambda t, rng: [t]}, r"participation(\.function)?\.name: <lambda>, at .*test_contributed\.py:\d+,"),
        ({"algorithm": Local().make()}, r"algorithm\.name: Local\.make\.<locals>\.Mine, at .*test_contributed\.py:\d+,"),
    ],
)  # fmt: skip
def test_a_lambda_and_what_a_function_defines_are_refused(change, named):
    """Two of them have the same text, and so would have the same digest."""
    settings = {"task": QUADRATIC, "algorithm": "fedavg", "rounds": 1}
    allowed = " is not allowed; must be a function or class at the top level of a file or notebook"
    with pytest.raises(SettingError, match=f"^{named}{allowed}") as caught:
        Trial.read(settings | change)
    assert "\n" not in str(caught.value)
    with pytest.raises(SettingError, match=allowed):
        digest(settings | change)


ROLL_CALLS = """
import numpy as np

MASK = np.array([[1, 0, 1], [0, 1, 1]], dtype=bool)

def lottery(t, rng, *, chance: float = 0.5):
    return rng.random(3) < chance

class Turns:
    def __init__(self, population, *, first: int = 0):
        self.m, self.first = population.clients, first

    def active(self, t):
        return np.arange(self.m) % 2 == (t + self.first) % 2

class Longer(Turns):
    def active(self, t):
        return np.ones(self.m + 1, dtype=bool)
"""


@pytest.fixture
def roll_calls(tmp_path, monkeypatch):
    """A file with participation models without a base class, and the same as a module."""
    (tmp_path / "roll_calls.py").write_text(ROLL_CALLS)
    monkeypatch.syspath_prepend(tmp_path)
    yield f"{tmp_path}/roll_calls.py", importlib.import_module("roll_calls")
    sys.modules.pop("roll_calls", None)


def quadratic(participation, algorithm="fedavg"):
    return Trial.read({"task": QUADRATIC, "algorithm": algorithm, "rounds": 2, "participation": participation})


def test_a_function_is_a_participation_model(roll_calls):
    file, module = roll_calls
    names = (f"{file}:lottery", "roll_calls:lottery", module.lottery)
    short = [{"name": name, "chance": 0.9, "probability": [0.9] * 3} for name in names]
    long = {"name": "function", "function": {"name": f"{file}:lottery", "chance": 0.9}, "probability": [0.9] * 3}
    assert len({quadratic(value).digest for value in short}) == 1
    assert quadratic(long).complete() == quadratic(short[0]).complete()
    assert quadratic(module.lottery).digest != quadratic(short[0]).digest
    model = quadratic(short[0]).participation.build(Population(3, seed=5))
    assert model.active(1).tolist() == np.flatnonzero(stream(5, "participation", 1).random(3) < 0.9).tolist()
    assert model.probability(0).tolist() == [0.9] * 3
    message = r"^participation.function.chanc: is not an option of .*; allowed: chance. Did you mean chance\?$"
    with pytest.raises(SettingError, match=message):
        quadratic({"name": module.lottery, "chanc": 1})


def test_a_class_and_an_object_with_active_are_participation_models(roll_calls):
    file, module = roll_calls
    by_name, by_object = (quadratic({"name": name, "first": 1}) for name in (f"{file}:Turns", module.Turns))
    assert by_name.digest == by_object.digest
    assert by_name.participation.build(Population(3)).active(0).tolist() == [1]
    held = module.Turns(Population(3), first=1)
    assert np.array_equal(simulate(quadratic(held)).server, simulate(by_name).server)
    assert quadratic(held).digest != quadratic(module.Turns(Population(3))).digest
    message = r"roll_calls.py:\d+: active: a mask of shape \(4,\) is not allowed \(round 0\)"
    with pytest.raises(SettingError, match=message):
        simulate(quadratic(module.Longer))


PARTS = """
import numpy as np
import pandas as pd
import torch
import torchmetrics
from torch import nn

from rollcall.algorithms import FedAvg
from rollcall.participation import Participation
from rollcall.tasks import Task

class Method(FedAvg): ...
class RollCall(Participation): ...
class Duck:
    def active(self, t): ...
class Network(nn.Module): ...
class Count:
    def update(self, predictions, targets): ...
    def compute(self): ...
    def reset(self): ...
class Steps(torch.optim.SGD): ...
class Other: ...
class Problem(Task): ...

def table(seed) -> pd.DataFrame: ...

mask = np.ones((4, 3), bool)
vector = np.ones(3)
duck, kappa, count, net = Duck(), torchmetrics.CohenKappa("multiclass", num_classes=3), Count(), nn.Linear(2, 2)
"""
KINDS = {
    "algorithm": ["Method"],
    "participation": ["RollCall", "Duck", "duck", "mask"],
    "model": ["Network", "net"],
    "metric": ["kappa", "Count", "count"],
    "server_optimizer": ["Steps"],
    "task": ["Problem"],
}


def test_each_part_is_of_its_kind(tmp_path):
    (tmp_path / "parts.py").write_text(PARTS)
    file = f"{tmp_path}/parts.py"
    assert {kind: [kind_of(f"{file}:{name}") for name in names] for kind, names in KINDS.items()} == {
        kind: [kind] * len(names) for kind, names in KINDS.items()
    }
    for name in ("Other", "table", "vector"):
        with pytest.raises(SettingError, match=r"not clear from a base class; say it with --kind \(task, model"):
            kind_of(f"{file}:{name}")


LISTED = """
from dataclasses import dataclass, field
from rollcall.algorithms import FedAvg

@dataclass(frozen=True)
class Listed(FedAvg):
    rates: list = field(default_factory=lambda: [0.5, 1.0])
"""


def test_a_default_that_a_factory_makes_and_a_file_in_another_encoding(tmp_path):
    (tmp_path / "listed.py").write_text(LISTED)
    spec = {"task": QUADRATIC, "rounds": 1}
    listed = Trial.read(spec | {"algorithm": f"{tmp_path}/listed.py:Listed"})
    assert listed.complete()["algorithm"]["rates"] == [0.5, 1.0]
    (tmp_path / "latin.py").write_bytes("# für\n".encode("latin-1") + LISTED.encode())
    (tmp_path / "marked.py").write_bytes(LISTED.encode("utf-8-sig"))  # as some editors write it
    assert Trial.read(spec | {"algorithm": f"{tmp_path}/marked.py:Listed"}).complete() == listed.complete() | {
        "algorithm": listed.complete()["algorithm"] | {"name": f"{tmp_path}/marked.py:Listed"}
    }
    with pytest.raises(SettingError, match=r"latin\.py: is not in UTF-8 \(byte 3\)"):
        Trial.read(spec | {"algorithm": f"{tmp_path}/latin.py:Listed"})


@dataclass(frozen=True)
class Rated(algorithms.FedAvg):
    """A method with an array or a tensor among its fields."""

    rates: Any
    power: float = 1.0


@pytest.mark.parametrize("rates", [np.array([1.0, 2.0]), torch.tensor([1.0, 2.0])], ids=["array", "tensor"])
def test_an_instance_of_a_method_holds_an_array(rates, tmp_path):
    """Its run folder tells it as text, since JSON knows neither."""
    settings = {"task": QUADRATIC, "algorithm": Rated(rates), "rounds": 1}
    assert read("algorithm", Rated(rates)).options["rates"] is rates
    assert Trial.read(settings).digest != Trial.read(settings | {"algorithm": Rated(2 * rates)}).digest
    assert Trial.read(settings).digest != Trial.read(settings | {"algorithm": Rated(rates, 0.5)}).digest
    assert simulate(settings).server.shape == (2,)
    assert simulate(settings, folder=tmp_path).folder is not None


TYPED = """
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal
import numpy as np
from annotated_types import Gt
from torch import Tensor
from rollcall.algorithms import FedAvg

@dataclass(frozen=True)
class Typed(FedAvg):
    scales: Tensor | None = None
    table: Path | None = None
    rows: list[list[float]] | None = None
    rate: Annotated[float, Gt(0)] | np.ndarray = 1.0
    of: Literal["uniform", "samples"] | np.ndarray = "uniform"
"""


def test_options_of_types_that_yaml_lacks_come_back_from_the_run_folder(tmp_path):
    (tmp_path / "typed.py").write_text(TYPED)
    options = {"scales": torch.tensor([1.0, 2.0]), "table": Path("rows.md"), "rows": [[0.5, 1.5]], "of": "samples"}
    settings = {"task": QUADRATIC, "rounds": 1, "algorithm": {"name": f"{tmp_path}/typed.py:Typed"} | options}
    simulate(settings, folder=tmp_path / "run")
    method = Trial.read(tmp_path / "run" / "trial.yaml").algorithm.build()
    assert (method.scales.tolist(), method.table, method.rows) == ([1.0, 2.0], Path("rows.md"), [[0.5, 1.5]])
    assert (method.rate, method.of) == (1.0, "samples")
    for wrong, said in (({"rate": -3}, "-3 is not allowed; must be greater than 0"), ({"of": "rows"}, "'rows' is not")):
        with pytest.raises(SettingError, match=f"^algorithm.{min(wrong)}: {said}"):
            Trial.read(settings | {"algorithm": settings["algorithm"] | wrong})


def test_options_of_a_method_that_is_given_as_a_class():
    spec = {"algorithm": Rated, "local": {"lr": 0.1}}
    assert put(spec, "algorithm.power", 0.5)["algorithm"] == {"name": Rated, "power": 0.5}
    assert merged(spec, {"algorithm": {"power": 0.5}})["algorithm"] == {"name": Rated, "power": 0.5}
    with pytest.raises(SettingError, match=r"^local.lr.x: cannot be set; lr is 0.1"):
        put(spec, "local.lr.x", 1)


def test_a_name_in_a_script(monkeypatch):
    """`__main__` is a module that no file can be found for."""
    monkeypatch.setattr(sys.modules["__main__"], "__spec__", None)
    monkeypatch.setattr(sys.modules["__main__"], "Rated", Rated, raising=False)
    assert len({digest({"algorithm": {"name": f"__main__:{name}"}}) for name in ("Rated", "Other")}) == 2
