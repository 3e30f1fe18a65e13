"""`tuned.yaml`: reading, applying it to an experiment, and writing it into the experiment's file."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
import yaml
from command import TINY, rollcall, write

from benchmark.config.errors import SettingError
from benchmark.config.experiment import Experiment, places
from benchmark.search.answer import Best, How, Tuned
from benchmark.search.writing import write_overrides

HOW = How(
    date="2026-01-01",
    metric="validation/loss",
    mode="min",
    search="random",
    scheduler="asha",
    seeds=(1000,),
    space={"local.lr": "1"},
)
CELL = {"rounds": 20, "samples": 3, "gradients": 5.0, "score": 0.5, "how": HOW}


def tuned(**changes) -> Tuned:
    best = {
        "fedavg": Best(when={"panel": "", "algorithm": "fedavg"}, settings={"local.lr": 0.5}, **CELL),
        "fedpbc": Best(when={"algorithm": "fedpbc"}, settings={"local.lr": 0.25, "local.steps": 3}, **CELL),
    }
    return Tuned(**{"experiment": "tiny", "best": best} | changes)


def rates(experiment: Experiment) -> dict:
    return {place.trial.algorithm.name: (place.trial.local.lr, place.trial.local.steps) for place in places(experiment)}


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


def test_an_answer_for_a_variant_is_of_no_use_for_another(tmp_path):
    variants = {name: {"about": "More steps.", "trial": {"local": {"steps": 5}}} for name in ("more", "most")}
    file = write(tmp_path, variants=variants)
    plain = Experiment.read(file)
    more = plain.as_("more").varied({"rounds": [3]}).only({"seed": [0]})
    assert rates(tuned(variant="more").applied(more)) == {"fedavg": (0.5, 5), "fedpbc": (0.25, 3)}
    for experiment, name in ((plain, "tiny"), (plain.as_("most"), "tiny --variant most")):
        with pytest.raises(SettingError, match=f"^tuned: the file is of tiny --variant more; must be of {name}$"):
            tuned(variant="more").applied(experiment)
    with pytest.raises(SettingError, match=r"^tuned: the file is of tiny; must be of tiny --variant more$"):
        tuned().applied(more)
    text = (tmp_path / "tiny.yaml").read_text()
    with pytest.raises(SettingError, match=r"^--write is not allowed with --variant; .*variants\.more\.overrides$"):
        write_overrides(file, tuned(variant="more"))
    assert (tmp_path / "tiny.yaml").read_text() == text


def test_an_axis_of_the_command_line_is_left_out(tmp_path):
    experiment = Experiment.read(write(tmp_path))
    one = Best(when={"algorithm": "fedavg", "task.validation": "0.3"}, settings={"local.lr": 0.5}, **CELL)
    assert rates(tuned(best={"fedavg": one}).applied(experiment))["fedavg"] == (0.5, 2)
    two = {"a": one, "b": one.model_copy(update={"when": {"algorithm": "fedavg", "task.validation": "0.4"}})}
    with pytest.raises(SettingError, match=r"^tuned: b cannot be told from another cell"):
        tuned(best=two).applied(experiment)


def test_run_takes_the_settings_and_refuses_the_seeds_of_the_search(tmp_path, store, capsys):
    file = write(tmp_path)
    tuned().write(tmp_path / "tuned.yaml")
    options = ["run", file, "--tuned", str(tmp_path / "tuned.yaml"), "--executor", "inline", "--rounds", "1"]
    code, _, error = rollcall(capsys, *options, "--seeds", "1000")
    assert (code, error.splitlines()[-1][:50]) == (2, "error: seeds: 1000 is not allowed with --tuned; th")
    code, _, _ = rollcall(capsys, *options, "--seeds", "4")
    specs = [yaml.safe_load(path.read_text()) for path in (store / "tiny").glob("*/trial.yaml")]
    assert code == 0
    assert {(spec["algorithm"]["name"], spec["local"]["lr"], spec["seed"]) for spec in specs} == {
        ("fedavg", 0.5, 4),
        ("fedpbc", 0.25, 4),
    }


@pytest.mark.parametrize(
    "overrides",
    [
        "",
        "overrides: []  # none yet\n",
        "overrides:\n  # a comment\n  - when: {algorithm: fedavg}\n    set: {local.lr: 9.0}\n\n",
        "overrides:\n- when: {algorithm: fedavg}\n  set: {local.lr: 9.0}\n",
    ],
)
def test_written_overrides_keep_the_text_and_replace_those_of_an_earlier_search(tmp_path, overrides):
    file = tmp_path / "tiny.yaml"
    body = yaml.safe_dump(TINY, sort_keys=False)
    head, tail = body.split("report:")
    before = f"# The licence.\n{head}{overrides}report:{tail}"
    file.write_text(before)
    assert write_overrides(str(file), tuned()) == file
    assert rates(Experiment.read(str(file))) == {"fedavg": (0.5, 2), "fedpbc": (0.25, 3)}
    first = file.read_text()
    kept = [line for line in before.splitlines() if line.strip() and not line.startswith("overrides")]
    assert [line for line in first.splitlines() if line in kept] == kept
    assert "best of 3 samples by validation/loss, random search, successive halving, 20 rounds, seed 1000" in " ".join(
        first.split()
    )
    write_overrides(str(file), tuned())
    assert file.read_text() == first
    better = tuned().best["fedavg"].model_copy(update={"settings": {"local.lr": 0.75}})
    write_overrides(str(file), tuned(best={"fedavg": better}))  # the other cell keeps what was written
    assert rates(Experiment.read(str(file))) == {"fedavg": (0.75, 2), "fedpbc": (0.25, 3)}
    assert file.read_text().count("set:") == first.count("set:")


def test_a_search_of_whole_methods_replaces_those_of_their_cells(tmp_path):
    """Settings of two searches must not be mixed in one cell."""
    file = write(tmp_path, panels={"a": {}, "b": {}})

    def best(settings, **when):
        return Best(when=when, settings=settings, **CELL)

    fine = {
        "a": best({"local.lr": 0.5, "local.steps": 7}, panel="a", algorithm="fedavg"),
        "b": best({"local.lr": 0.25}, panel="a", algorithm="fedpbc"),
    }
    write_overrides(file, tuned(best=fine))
    write_overrides(file, tuned(best={"fedavg": best({"local.lr": 0.125}, algorithm="fedavg")}))
    found = {
        (place.labels["panel"], place.trial.algorithm.name): (place.trial.local.lr, place.trial.local.steps)
        for place in places(Experiment.read(file))
    }
    assert found == {
        ("a", "fedavg"): (0.125, 2),
        ("b", "fedavg"): (0.125, 2),
        ("a", "fedpbc"): (0.25, 2),
        ("b", "fedpbc"): (0.1, 2),
    }
    write_overrides(file, tuned(best={"a": fine["a"]}))  # narrower ones come after
    assert places(Experiment.read(file))[0].trial.local.steps == 7
    assert len(Experiment.read(file).overrides) == 3


def test_a_file_that_would_not_be_valid_stays_as_it_was(tmp_path):
    file = tmp_path / "tiny.yaml"
    text = yaml.safe_dump(TINY, sort_keys=False) + "overrides: [{when: {algorithm: fedavg}, set: {local.lr: 1}}]\n"
    file.write_text(text)
    with pytest.raises(SettingError, match=r"tiny\.yaml: overrides cannot be added .*; copy them from tuned\.yaml"):
        write_overrides(str(file), tuned())
    assert file.read_text() == text


def test_a_disk_that_is_full_leaves_both_files_as_they_were(tmp_path, monkeypatch):
    file = write(tmp_path)
    tuned().write(tmp_path / "tuned.yaml")
    before = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    whole = Path.write_text

    def half(self, text, *arguments, **options):
        whole(self, text[: len(text) // 2], *arguments, **options)
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "write_text", half)
    for writing in (lambda: tuned().write(tmp_path / "tuned.yaml"), lambda: write_overrides(file, tuned())):
        with pytest.raises(OSError, match="No space left"):
            writing()
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == before


WRITING = """
import sys
from pathlib import Path
from benchmark.search.answer import Tuned
from benchmark.search.writing import write_overrides
folder = Path(sys.argv[1])
tuned = Tuned.read(folder / "tuned.yaml")
tuned.write(folder / "tuned.yaml")
write_overrides(str(folder / "tiny.yaml"), tuned)
"""


def test_files_are_utf_8_in_every_locale(tmp_path):
    best = {"é": Best(when={"algorithm": "fedavg"}, settings={"local.lr": 0.5}, **CELL)}
    tuned(best=best).write(tmp_path / "tuned.yaml")
    file = write(tmp_path)
    text = Path(file).read_text(encoding="utf-8").replace("title: Tiny", "title: Élan")
    Path(file).write_text(text, encoding="utf-8")
    environment = os.environ | {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}
    subprocess.run([sys.executable, "-c", WRITING, str(tmp_path)], env=environment, check=True)
    assert list(Tuned.read(tmp_path / "tuned.yaml").best) == ["é"]
    assert Experiment.read(file).title == "Élan"
    assert rates(Experiment.read(file))["fedavg"] == (0.5, 2)
