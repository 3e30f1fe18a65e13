"""Finished runs: final values by hand; run folders; archives."""

import errno
import math
from dataclasses import replace
from pathlib import Path
from threading import Event, Thread
from time import sleep

import pandas as pd
import pytest
from command import TINY, rollcall, write
from runs import QUADRATIC, Asked

from rollcall import SettingError, Trial, simulate
from rollcall.benchmark.config.metric import Metric
from rollcall.benchmark.config.source import Source, decoded
from rollcall.benchmark.config.trial import Evaluation
from rollcall.benchmark.federation.run_folder import RunFolder
from rollcall.benchmark.process import Interrupted
from rollcall.leaderboard import runs as stored
from rollcall.leaderboard.runs import PACKAGE, Run, _of_one_version, archive, archived, own, settings_file, unarchive
from tests.support.results import COMPARED, ends, keep, runs

HISTORY = {"a": [8.0, 4.0, 2.0, 1.0], "b": [0.0, 0.5, math.nan, 1.0], "cost/floats_up": [50.0, 100.0, 150.0, 200.0]}
RUN = Run({}, {"rounds": 40}, pd.DataFrame(HISTORY, [10, 20, 30, 40]))
FLOATS = Metric("cost/floats_up")


def test_the_seconds_of_a_run_that_is_being_continued():
    """It had finished 10 rounds; now it has 90 seconds after 90 rounds of 100."""
    tags = {"rollcall.seconds": "90.0", "rollcall.finished": "10", "rollcall.round": "90"}
    run = Run(tags, {"rounds": 10}, pd.DataFrame({"a": [8.0, 4.0]}, [5, 10]))
    assert run.spent("time/seconds").to_dict() == {5: 5.0, 10: 10.0}


@pytest.mark.parametrize(
    ("name", "options", "value"),
    [
        ("a", {}, 1.0),
        ("a", {"last_rounds": 20}, 1.5),
        ("a", {"last_rounds": 21}, 7 / 3),  # after rounds 20, 30, 40
        ("b", {"last_rounds": 20}, math.nan),  # not evaluated after round 30, so the window is not covered
        ("b", {"last_rounds": 10}, 1.0),
        ("a", {"at": 20}, 4.0),
        ("a", {"at": 25}, math.nan),
        ("a", {"at": 100, "per": FLOATS}, 4.0),
        ("a", {"at": 199, "per": FLOATS}, 2.0),
        ("a", {"at": 201, "per": FLOATS}, math.nan),  # the run ended earlier
        ("b", {"at": 150, "per": FLOATS}, 0.5),  # not evaluated there
        ("a", {"at": 10, "per": Metric("not measured")}, math.nan),
        ("round_of:b>=0.5", {}, 20.0),
        ("round_of:b>=0.6", {}, 40.0),
        ("round_of:b>=2", {}, math.inf),
        ("a", {"at": 10, "per": FLOATS}, math.nan),  # the first evaluation was later
    ],
)
def test_final_values(name, options, value):
    assert RUN.final(Metric(name), **options) == pytest.approx(value, nan_ok=True)


def test_a_window_that_is_not_covered_has_no_mean():
    """Table I averages the last 100 rounds; runs that were evaluated twice in them had a mean."""
    last = {"rounds": 100, "every": 10, "splits": ["train", "test"]}
    settings = {"evaluation": {"every": 150, "last": last, "splits": ["test"]}, "rounds": 300}
    due = [*range(210, 301, 10)]
    run = Run({}, settings, pd.DataFrame({"test/a": [float(t) for t in due], "train/a": 1.0}, due))
    assert run.window(Metric("test/a"), 100).tolist() == due
    assert run.final(Metric("test/a"), 100) == 255.0
    assert run.final(Metric("train/a"), 100) == 1.0
    for lost in (210, 250, 290, 300):
        assert math.isnan(Run({}, settings, run.history.drop(lost)).final(Metric("test/a"), 100))
    assert run.final(Metric("test/a"), 150) == 255.0  # no evaluation is due after rounds 151 to 200
    assert math.isnan(run.final(Metric("test/a"), 151))  # the one after round 150 was not made
    assert math.isnan(Run({}, settings | {"rounds": 60}, run.history).final(Metric("test/a"), 100))


def test_the_evaluation_of_the_untrained_model_is_never_part_of_a_mean():
    run = Run({}, {"rounds": 20}, pd.DataFrame({"a": [8.0, 4.0, 2.0]}, [0, 10, 20]))
    assert run.final(Metric("a"), last_rounds=20) == 3.0
    assert math.isnan(run.final(Metric("a"), last_rounds=100))
    analysis = Run({}, {"analysis": "x"}, run.history)  # its rows are not rounds of training
    assert analysis.final(Metric("a"), last_rounds=100) == pytest.approx(14 / 3)
    nothing = replace(analysis, history=run.history * math.nan)  # a quantity that does not exist here
    assert math.isnan(nothing.final(Metric("a")))


TRIAL = Trial.read(TINY["trial"] | {"algorithm": "fedpbc", "seed": 3, "evaluation": {"every": 5}})


@pytest.mark.parametrize("last", [None, {"rounds": 4, "every": 2}])
def test_a_run_that_was_continued_counts_as_one_run_of_all_rounds(last, store, tmp_path):
    """Its folder has evaluations after rounds 10 and 12 too, the last ones of the shorter run."""
    trial = TRIAL.model_copy(update={"evaluation": Evaluation.model_validate({"every": 7, "last": last})})
    folder = RunFolder(store / "tiny" / trial.name)
    for rounds in (12, 20):
        simulate(trial.model_copy(update={"rounds": rounds}), folder=folder.path)
    whole = simulate(trial.model_copy(update={"rounds": 20})).history.set_index("round").astype(float)
    assert set(folder.history()["round"]) > set(whole.index)
    metric = Metric("train/loss", "min")
    due = whole["train/loss"][whole.index > 10]
    (run,) = own(store, "tiny", ["train/loss"])
    assert list(run.history) == ["train/loss"]
    assert run.window(metric, 10).tolist() == due.tolist()
    assert run.final(metric, 10) == due.mean()
    archive([run], "tiny", ["train/loss"], tmp_path)
    assert [*unarchive("tiny", tmp_path)[0].history.index] == [*whole.index] == run.evaluated
    if last is not None:  # the last evaluations of the shorter run serve a table of fewer rounds
        assert len(run.until(12).window(metric, 4)) == 2  # after rounds 10 and 12


def test_code_in_a_list_of_a_folder_with_a_space_is_looked_at(tmp_path, capsys):
    file = tmp_path / "my code" / "mine.py"
    file.parent.mkdir()
    file.write_text("class Error: ...\n")
    digest = Source(str(file), decoded(file)).digest[:10]
    spec = {"seed": 0, "rounds": 2, "evaluation": {"metrics": ["f1", f"{file}:Error"]}}
    run = Run({"algorithm": "fedavg", "rollcall.sources": f"{file}={digest}"}, spec, pd.DataFrame())
    assert _of_one_version([run]) == [run]
    file.write_text("class Error:\n    edited = True\n")
    assert _of_one_version([run]) == []
    assert "left out: 1 run of another version of your code (fedavg)" in capsys.readouterr().err


def test_no_mean_mixes_versions_of_the_users_code(store, tmp_path, capsys):
    method = "from rollcall.algorithms.fedavg import FedAvg\n\n\nclass Mine(FedAvg):\n    {}\n"
    for number, seeds in enumerate([(0, 1, 2), (0,)]):
        (tmp_path / "mine.py").write_text(method.format(f"version = {number}"))
        for seed in seeds:
            trial = Trial.read(TINY["trial"] | {"algorithm": f"{tmp_path}/mine.py:Mine", "seed": seed})
            simulate(trial, folder=store / "tiny" / trial.name)
    simulate(TRIAL, folder=store / "tiny" / TRIAL.name)
    assert [(run.tags["algorithm"], run.tags["seed"]) for run in own(store, "tiny")] == [("Mine", "0"), ("fedpbc", "3")]
    assert "left out: 3 runs of another version of your code (Mine)" in capsys.readouterr().err
    (tmp_path / "mine.py").write_text(method.format("version = 0"))  # the edit is taken back
    assert [run.tags["seed"] for run in own(store, "tiny")] == ["0", "1", "2", "3"]
    (tmp_path / "mine.py").write_text(method.format("version = 2"))  # as which it was not run
    assert [run.tags["seed"] for run in own(store, "tiny")] == ["3"]
    (tmp_path / "mine.py").unlink()
    assert [run.tags["seed"] for run in own(store, "tiny")] == ["0", "3"]


def test_ones_own_runs_replace_kept_ones_and_rows_say_so(store, tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    file = write(tmp_path, "mine", source="[X] Fig. 1")
    keep(file, lambda *_: 2.0)
    rollcall(capsys, "run", file, "--executor", "inline", "--only", "algorithm=fedavg,seed=0")
    rollcall(capsys, "run", file, "--executor", "inline", "--only", "algorithm=fedpbc")
    code, text, _ = rollcall(capsys, "leaderboard", file, "--format", "md")
    assert code == 0
    fedavg, fedpbc = (line for line in text.splitlines() if line.startswith("| Fed"))
    assert fedavg.endswith("| 2 of 2 | 20 of 20 | kept |")  # one own seed does not replace two kept ones
    assert fedpbc.endswith("| 2 of 2 | 20 of 20 | own |")
    assert "of your own with fewer rounds or seeds not shown: see --mine" in text
    mine = rollcall(capsys, "leaderboard", file, "--mine", "--format", "md")[1]
    assert "2 ± 0" not in mine
    assert f"runs: your own, in {store}" in mine


def test_results_are_kept_and_read_again(tmp_path):
    made = runs(COMPARED, ends)
    file = archive(made, "paper/fig", ["test/accuracy"], tmp_path)
    again = {run.tags["rollcall.trial"]: run for run in unarchive("paper/fig", tmp_path)}
    assert len(again) == 12
    for run in made:
        kept = again[run.tags["rollcall.trial"]]
        assert (kept.settings, kept.tags) == (run.settings, run.tags)
        pd.testing.assert_series_equal(kept.history["test/accuracy"], run.history["test/accuracy"], check_names=False)
    before = file.read_bytes()
    archive(made[:1], "paper/fig", ["test/accuracy"], tmp_path)  # the others stay
    assert file.read_bytes() == before
    assert unarchive("paper/other", tmp_path) == []


@pytest.mark.parametrize("content", [b"", b"other", "half"])
@pytest.mark.parametrize("of", [Path, settings_file])
def test_an_archive_that_was_cut_off_is_refused_in_one_line(content, of, tmp_path):
    table = tmp_path / "quickstart.csv.xz"
    for file in (table, settings_file(table)):
        file.write_bytes((PACKAGE / file.name).read_bytes())
    whole = of(table).read_bytes()
    of(table).write_bytes(whole[: len(whole) // 2] if content == "half" else content)
    with pytest.raises(
        SettingError, match=r"quickstart.csv.xz: cannot be read with quickstart.json.xz \(.*restore both"
    ):
        archived(table)


def test_an_archive_without_its_table_is_none(tmp_path, monkeypatch):
    """A process that died between the two files of the first archive leaves the settings alone."""
    made, compress, calls = runs(COMPARED, ends), stored._compress, iter(range(9))

    def dying(file, text):
        if next(calls):
            raise KeyboardInterrupt
        compress(file, text)

    monkeypatch.setattr(stored, "_compress", dying)
    with pytest.raises(KeyboardInterrupt):
        archive(made, "paper/fig", ["test/accuracy"], tmp_path)
    assert unarchive("paper/fig", tmp_path) == []
    monkeypatch.undo()
    archive(made, "paper/fig", ["test/accuracy"], tmp_path)
    assert len(unarchive("paper/fig", tmp_path)) == len(made)
    archive(made, "paper/other", ["test/loss"], tmp_path)  # which none of them has
    assert len(unarchive("paper/other", tmp_path)) == len(made)


def test_two_processes_that_archive_at_once_lose_nothing(tmp_path, monkeypatch):
    """The first one is still writing when the second one begins."""
    made, begun = runs(COMPARED, ends), Event()

    def slowly(file, text):
        begun.set()
        sleep(0.1)
        compress(file, text)

    compress = stored._compress
    monkeypatch.setattr(stored, "_compress", slowly)
    first = Thread(target=archive, args=(made[:6], "paper/fig", ["test/accuracy"], tmp_path))
    first.start()
    begun.wait()
    archive(made[6:], "paper/fig", ["test/accuracy"], tmp_path)
    first.join()
    assert len(unarchive("paper/fig", tmp_path)) == len(made)


def test_a_full_disk_leaves_the_archive_as_it_was(tmp_path, monkeypatch):
    made = runs(COMPARED, ends)
    file = archive(made[:1], "paper/fig", ["test/accuracy"], tmp_path)
    before, write_bytes = file.read_bytes(), Path.write_bytes

    def full(path, content):
        write_bytes(path, content[:100])
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(Path, "write_bytes", full)
    with pytest.raises(OSError, match="No space left"):
        archive(made, "paper/fig", ["test/accuracy"], tmp_path)
    assert file.read_bytes() == before
    assert len(unarchive("paper/fig", tmp_path)) == 1


def test_of_two_archives_the_longer_run_of_a_trial_counts_and_of_equal_ones_the_later(tmp_path):
    ours, users = tmp_path / "ours", tmp_path / "users"
    made = runs(COMPARED, lambda *_: 0.25)
    archive(made[:3], "paper/fig", ["test/accuracy"], ours)
    archive(runs(COMPARED, lambda *_: 0.75)[1:4], "paper/fig", ["test/accuracy"], users)
    archive(runs(COMPARED, lambda *_: 0.5, rounds=50)[:1], "paper/fig", ["test/accuracy"], users)
    both = {run.tags["rollcall.trial"]: run for run in unarchive("paper/fig", ours, users)}
    last = [float(both[run.tags["rollcall.trial"]].history["test/accuracy"].iloc[-1]) for run in made[:4]]
    assert last == [0.25, 0.75, 0.75, 0.75]
    assert len(both) == len(unarchive("paper/fig", ours, users)) == 4
    assert len(unarchive("paper/fig", ours, ours)) == 3
    assert len(unarchive("paper/fig", tmp_path / "none", users)) == 4


def test_a_column_of_no_split_is_measured_in_every_evaluation():
    spec = {"rounds": 40, "evaluation": {"every": 10, "splits": ["test"]}}
    run = Run({}, spec, pd.DataFrame({"weight/rare": [0.1, 0.2, 0.3, 0.5]}, [10, 20, 30, 40]))
    assert run.final(Metric("weight/rare"), last_rounds=20) == pytest.approx(0.4)


def test_a_run_that_has_not_ended_is_no_result(tmp_path):
    with pytest.raises(Interrupted):
        simulate(QUADRATIC, folder=tmp_path / "mine" / "one", stop=Asked(12))
    assert own(tmp_path, "mine") == []
