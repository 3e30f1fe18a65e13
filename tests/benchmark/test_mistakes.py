"""Typical mistakes in a user's file: the message is short, names file and line, says what to do, without a traceback.

Each mistake has a file `mine.py` and a command. The line of the mistake ends with `# here`.
"""

import json
import re
import subprocess
import sys

import pytest
import yaml
from command import TINY

pytestmark = pytest.mark.full

METHOD = """from rollcall.algorithms import FedAvg, Memoryless
import torch

class Mine(Memoryless):
    def round(self, state, x, call, work):{mark}
        A = call.active
        if len(A) == 0:
            return None, state
        D = work.sgd(A, x.expand(len(A), -1)) - x
{body}
"""


def method(body: str, mark: str = "") -> str:
    return METHOD.format(body="\n".join(f"        {line}" for line in body.splitlines()), mark=mark)


HERE = "  # here"
CHECK = ("check", "mine.py:Mine")
DIGITS = {"name": "digits", "clients": 4}


def run(**settings):
    """The command that runs a trial with these settings."""
    return ("run", json.dumps(settings), "--executor", "inline", "--seeds", "0", "--only", "algorithm=fedavg")


OWN = run(algorithm={"name": "mine.py:Mine"})
AFTER = "from rollcall.algorithms import FedAvg\n\nclass Mine(FedAvg):\n"
EVALUATED = AFTER + "    def eval_models(self, state, x):  # here\n        {}\n"
COUNTED = """from dataclasses import dataclass
from rollcall.algorithms import FedAvg

@dataclass(frozen=True)
class Count:
    rounds: int

class Mine(FedAvg):
    def init(self, x, clients):  # here
        return Count(0)
"""
TASK = """from rollcall.tasks import TASKS

def Mine(seed):
    task, data = TASKS["quadratic"](seed, targets=[[0.0], [1.0]])
    task.__class__ = Other
    return task, data

class Other(type(TASKS["quadratic"](0, targets=[[0.0]])[0])):
    def {}(self, batch):  # here
        {}
"""
OF_TASK = run(task="mine.py:Mine")
# For each mistake: the file, the command, and parts of the message.
MISTAKES = {
    "syntax error": ("class Mine(:  # here\n    pass\n", CHECK, ["this is not Python: invalid syntax"]),
    "forgotten import": ("class Mine(Memoryless):  # here\n    pass\n", CHECK, ["name 'Memoryless' is not defined"]),
    "module that is not installed": ("import tensorlow  # here\n", CHECK, ["No module named 'tensorlow'", "Install it, or correct the import"]),
    "misspelt name": (method("return D.mean(dim=0), state"), ("check", "mine.py:Mien"), ["mine.py must define Mien; it defines Mine"]),
    "forgotten requires": (method("return (D / call.probability[A, None]).mean(dim=0), state", HERE), CHECK, ["requires = ('probability',)", "call.probability is None"]),
    "forgotten dataclass": (
        "from rollcall.algorithms import FedAvg\n\nclass Mine(FedAvg):\n    damping: float = 0.5\n",
        run(algorithm={"name": "mine.py:Mine", "damping": 0.3}),
        ["algorithm.damping: is not an option of", "mine.py:Mine; allowed: none"],
    ),
    "wrong shape in a run": (method("return D, state", HERE), OWN, ["Mine.round returned (a float32 tensor [", "must return (update, state): a float32 tensor [2] or None"]),
    "wrong type in a run": (method("return D.mean(dim=0).double(), state", HERE), OWN, ["Mine.round returned (a float64 tensor [2], a Nothing); must return (update, state): a float32 tensor [2]"]),
    "no state before a run": ("from rollcall.algorithms import FedAvg\n\nclass Mine(FedAvg):\n    def init(self, x, clients):  # here\n        return {'x': x}\n", OWN, ["Mine.init returned a dict; must return a dataclass of tensors"]),
    "no model to evaluate in a run": (EVALUATED.format("pass"), OWN, ['Mine.eval_models returned None; must return the models to evaluate by name, such as {"": x}: each a float32 tensor [2]']),
    "all models to evaluate": (EVALUATED.format("return {'': x.expand(3, -1)}"), OWN, ["Mine.eval_models returned '': a float32 tensor [3, 2]; must return the models to evaluate by name"]),
    "a number in the state": (COUNTED, OWN, ["Mine.init returned a Count whose rounds is an int; must return a dataclass of tensors"]),
    "no metrics in a run": (TASK.format("metrics", "pass"), OF_TASK, ["task: mine.py:9: Other.metrics returned None; must return a dict of tensors with the key `loss`"]),
    "a loss for each sample": (TASK.format("loss", "return batch[0].new_zeros(2)"), OF_TASK, ["Other.loss returned a float32 tensor [2]; must return one number, the mean over the samples"]),
    "a network for other images": ("from torch import nn\n\ndef Mine(shape, classes):  # here\n    return nn.Sequential(nn.Flatten(), nn.Linear(63, 10))\n", run(task=DIGITS | {"model": "mine.py:Mine"}), ["for images of shape [1, 8, 8]: addmm: mat1 and mat2 shapes cannot be multiplied (2x64 and 63x10)"]),
    "exception in a run": (method('raise RuntimeError("no luck")' + HERE), OWN, ["failed: Mine-seed0", "RuntimeError: no luck"]),
    "wrong signature": (
        "def Mine(labels, clients):  # here\n    return [labels]\n",
        run(task=DIGITS | {"partition": "mine.py:Mine"}),
        ["partition.name", "must be a function of (labels, clients, seed)", "it takes (labels, clients)"],
    ),
    "a client without samples": (
        "def Mine(labels, clients, seed):  # here\n    return [[0], [1], [2], []]\n",
        run(task=DIGITS | {"partition": "mine.py:Mine"}),
        ["task.data: client 3 without training samples is not allowed; must have one; `empty_clients: keep` keeps"],
    ),
    "a mask for another number of clients": (
        "import numpy as np\n\nclass Mine:  # here\n    def __init__(self, population):\n        pass\n"
        "    def active(self, t):\n        return np.ones(5, bool)\n",
        run(participation="mine.py:Mine"),
        ["active: a mask of shape (5,) is not allowed (round 0); must be a mask of 3 values true or false"],
    ),
    "knowledge that is misspelt": (
        "from rollcall.algorithms.fedavg import FedAvg\n\nclass Mine(FedAvg):  # here\n    requires = ('probabilty',)\n",
        OWN,
        ["requires: ('probabilty',) is not allowed; must be a tuple of names, such as ('probability',), out of probability,"],
    ),
    "the data before the task": (
        "from rollcall.tasks import TASKS\n\ndef Mine(seed):  # here\n    task, data = TASKS['digits'](seed, clients=3)\n"
        "    return data, task\n",
        run(task="mine.py:Mine"),
        ["task: mine.py:3: must return (rollcall.tasks.Task, rollcall.tasks.ClientData); ", "returned (ClientData, "],
    ),
    "an error in a metric": (
        "class Mine:\n    def reset(self):\n        pass\n    def compute(self):\n        return 0.0\n"
        "    def update(self, predictions, targets):\n        {}['no such key']  # here\n",
        run(task=DIGITS, evaluation={"metrics": ["mine.py:Mine"]}),
        ["evaluation.metrics: Mine cannot be computed from the predictions of this task: ", "KeyError: 'no such key'"],
    ),
    "an option that is misspelt": (
        "def Mine(t, *, rate: float = 0.5):\n    return rate\n",
        run(local={"schedule": {"name": "mine.py:Mine", "rat": 1}}),
        ["local.schedule.rat: is not an option of", "allowed: rate"],
    ),
}  # fmt: skip

LOOP = """
import contextlib, io, json, sys
from pathlib import Path
from rollcall.cli import main
said = {}
for name, (text, arguments) in json.loads(Path("mistakes.json").read_text()).items():
    Path("mine.py").write_text(text)
    sys.argv = ["rollcall", *arguments]
    stream = io.StringIO()
    with contextlib.redirect_stdout(stream), contextlib.redirect_stderr(stream):
        try:
            main()
            code = 0
        except SystemExit as end:
            code = end.code
    said[name] = (code, stream.getvalue())
Path("said.json").write_text(json.dumps(said))
"""


@pytest.fixture(scope="module")
def said(tmp_path_factory):
    """Exit code and output for each mistake, all from one process, without the type checker that watches the tests."""
    folder = tmp_path_factory.mktemp("mistakes")
    commands = {}
    for name, (text, command, _) in MISTAKES.items():
        arguments = list(command)
        if arguments[0] == "run":
            settings = json.loads(arguments[1])
            file = folder / f"{name.replace(' ', '-')}.yaml"
            own = "algorithm" in settings
            trial = {**TINY["trial"], **settings, "rounds": 2}
            grid = {"seed": [0]} if own else {"seed": [0], "algorithm": ["fedavg"]}
            file.write_text(yaml.safe_dump(TINY | {"trial": trial, "grid": grid}))
            arguments = ["run", str(file), "--executor", "inline", "--store", str(folder / "runs")]
        commands[name] = (text, arguments)
    (folder / "mistakes.json").write_text(json.dumps(commands))
    done = subprocess.run([sys.executable, "-c", LOOP], cwd=folder, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return json.loads((folder / "said.json").read_text())


@pytest.mark.parametrize("name", MISTAKES)
def test_the_message(name, said):
    text, _, parts = MISTAKES[name]
    code, message = said[name]
    assert code in (1, 2)
    assert "Traceback" not in message
    assert len(message.splitlines()) <= 30
    plain = " ".join(message.split())
    for part in parts:
        assert " ".join(part.split()) in plain, message
    lines = [number for number, line in enumerate(text.splitlines(), 1) if line.endswith(HERE)]
    if lines:
        assert re.search(rf"mine\.py:{lines[0]}\b", message), message
    else:
        assert "mine.py" in message
