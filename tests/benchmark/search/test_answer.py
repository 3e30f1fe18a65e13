"""`tuned.yaml`: reading and writing it, and applying it to an experiment."""

import pytest
import yaml
from command import rollcall, write

from rollcall.benchmark.config.errors import SettingError
from rollcall.benchmark.config.experiment import Experiment
from rollcall.benchmark.config.grid import grid_points
from rollcall.benchmark.search.answer import Best, How, Tuned

SEARCH = {"search": "random", "scheduler": "asha", "seeds": (1000,), "space": {"local.lr": "1"}}
HOW = How(date="2026-01-01", metric="validation/loss", mode="min", **SEARCH)
CELL = {"rounds": 20, "samples": 3, "gradients": 5.0, "score": 0.5, "how": HOW}


def tuned(**changes) -> Tuned:
    best = {
        "fedavg": Best(when={"panel": "", "algorithm": "fedavg"}, settings={"local.lr": 0.5}, **CELL),
        "fedpbc": Best(when={"algorithm": "fedpbc"}, settings={"local.lr": 0.25, "local.steps": 3}, **CELL),
    }
    return Tuned(**{"experiment": "tiny", "best": best} | changes)


def rates(experiment: Experiment) -> dict:
    return {
        point.trial.algorithm.name: (point.trial.local.lr, point.trial.local.steps) for point in grid_points(experiment)
    }


def test_it_is_read_as_it_was_written(tmp_path):
    tuned().write(tmp_path / "tuned.yaml")
    assert Tuned.read(tmp_path / "tuned.yaml") == tuned()
    (tmp_path / "other.yaml").write_text("best: {}")
    with pytest.raises(SettingError, match=r"other\.yaml: experiment: is missing"):
        Tuned.read(tmp_path / "other.yaml")


def test_every_cell_gets_its_settings_and_they_replace_earlier_ones(tmp_path):
    earlier = [{"when": {"algorithm": "fedavg"}, "set": {"local.lr": 9.0}}]
    experiment = Experiment.read(write(tmp_path, overrides=earlier))
    assert rates(tuned().applied(experiment)) == {"fedavg": (0.5, 2), "fedpbc": (0.25, 3)}
    with pytest.raises(SettingError, match=r"^tuned: the file is of other; must be of tiny$"):
        tuned(experiment="other").applied(experiment)


def test_run_takes_the_settings_and_refuses_the_seeds_of_the_search(tmp_path, store, capsys):
    file = write(tmp_path)
    tuned().write(tmp_path / "tuned.yaml")
    options = ["run", file, "--tuned", str(tmp_path / "tuned.yaml"), "--executor", "inline", "--rounds", "1"]
    for seeds in (("--seeds", "1000"), ("--set", "seed=1000")):
        code, _, error = rollcall(capsys, *options, *seeds)
        assert (code, error.splitlines()[-1][:50]) == (2, "error: seeds: 1000 is not allowed with --tuned; th")
    code, _, _ = rollcall(capsys, *options, "--seeds", "4")
    specs = [yaml.safe_load(path.read_text()) for path in (store / "tiny").glob("*/trial.yaml")]
    assert code == 0
    ran = {(spec["algorithm"], spec["local"]["lr"], spec["seed"]) for spec in specs}
    assert ran == {("fedavg", 0.5, 4), ("fedpbc", 0.25, 4)}


def test_settings_of_other_cells_are_refused_and_trials_without_settings_are_counted(tmp_path):
    one = tuned(best={"fedavg": tuned().best["fedavg"]})
    experiment = Experiment.read(write(tmp_path))
    assert one.check_cells(experiment) == len(list(grid_points(experiment))) / 2  # fedpbc has none
    assert one.check_cells(experiment.only({"algorithm": ["fedavg"]})) == 0
    with pytest.raises(SettingError, match=r"^tuned: the file has settings of fedavg; none of them is run$"):
        one.check_cells(experiment.only({"algorithm": ["fedpbc"]}))
