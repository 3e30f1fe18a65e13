"""From an experiment to its places."""

import subprocess
import sys

import pytest

from benchmark import SettingError
from benchmark.config.experiment import Experiment
from benchmark.config.grid import distinct, drafts, places

EXPERIMENT = {
    "name": "e",
    "title": "E",
    "trial": {"task": {"name": "quadratic", "targets": [[0.0], [1.0]]}, "rounds": 3, "local": {"lr": 0.1}},
    "grid": {"seed": [0, 1], "algorithm": ["fedavg", "mifa"]},
    "panels": {"short": {}, "long": {"trial": {"rounds": 5}}},
    "overrides": [{"when": {"algorithm": "mifa", "panel": "long"}, "set": {"local.lr": 0.5}}],
}


def test_drafts_are_the_plain_settings_of_the_places():
    experiment = Experiment.model_validate(EXPERIMENT)
    settings = [
        (draft.labels["panel"], draft.spec["seed"], draft.spec["algorithm"], draft.spec["rounds"], draft.spec["local"]["lr"])
        for draft in drafts(experiment)
    ]  # fmt: skip
    assert settings == [
        ("short", 0, "fedavg", 3, 0.1),
        ("short", 0, "mifa", 3, 0.1),
        ("short", 1, "fedavg", 3, 0.1),
        ("short", 1, "mifa", 3, 0.1),
        ("long", 0, "fedavg", 5, 0.1),
        ("long", 0, "mifa", 5, 0.5),
        ("long", 1, "fedavg", 5, 0.1),
        ("long", 1, "mifa", 5, 0.5),
    ]
    assert [place.labels for place in places(experiment)] == [draft.labels for draft in drafts(experiment)]
    assert "seed" not in drafts(experiment)[0].labels


def test_of_equal_trials_the_longest_is_run():
    trials = distinct(places(Experiment.model_validate(EXPERIMENT)))
    assert [(trial.seed, trial.algorithm.name, trial.rounds, trial.local.lr) for trial in trials] == [
        (0, "fedavg", 5, 0.1),
        (0, "mifa", 3, 0.1),
        (1, "fedavg", 5, 0.1),
        (1, "mifa", 3, 0.1),
        (0, "mifa", 5, 0.5),
        (1, "mifa", 5, 0.5),
    ]


def test_an_error_names_the_panel():
    wrong = EXPERIMENT | {"panels": {"short": {}, "long": {"trial": {"rounds": 0}}}}
    with pytest.raises(SettingError, match=r"^panel long: rounds: 0 is not allowed; must be greater than 0"):
        places(Experiment.model_validate(wrong))


def test_drafts_need_no_heavy_import():
    code = (
        "import sys\n"
        "from benchmark.config.experiment import Experiment\n"
        "from benchmark.config.grid import drafts\n"
        "assert drafts(Experiment.read('fedpbc/table1'))\n"
        "print([name for name in ('torch', 'lightning', 'pandas', 'scipy') if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
