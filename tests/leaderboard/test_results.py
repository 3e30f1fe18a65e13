"""Runs in archives, and out of a made-up MLflow."""

from dataclasses import replace
from types import SimpleNamespace

import pandas as pd
import pytest

from rollcall.leaderboard import archive, load, unarchive
from tests.support.results import COMPARED, ends, runs


def test_results_are_kept_and_read_again(tmp_path):
    made = runs(COMPARED, ends)
    file = archive(made, "paper/fig", ["test/accuracy"], tmp_path)
    again = {run.tags["rollcall.trial"]: run for run in unarchive("paper/fig", tmp_path)}
    assert len(again) == 12
    for run in made:
        kept = again[run.tags["rollcall.trial"]]
        assert (kept.settings, kept.tags) == (run.settings, run.tags)
        pd.testing.assert_series_equal(kept.history["test/accuracy"], run.history["test/accuracy"], check_names=False)
    before = file.read_text()
    archive(made[:1], "paper/fig", ["test/accuracy"], tmp_path)  # the others stay
    assert file.read_text() == before
    assert unarchive("paper/other", tmp_path) == []


def test_of_two_archives_the_longer_run_of_a_trial_counts_and_of_equal_ones_the_later(tmp_path):
    ours, users = tmp_path / "ours", tmp_path / "users"
    made = runs(COMPARED, lambda *_: 0.25)
    archive(made[:3], "paper/fig", ["test/accuracy"], ours)
    archive(runs(COMPARED, lambda *_: 0.75)[1:4], "paper/fig", ["test/accuracy"], users)
    archive(runs(COMPARED, lambda *_: 0.5, rounds=50)[:1], "paper/fig", ["test/accuracy"], users)
    both = {run.identity: run for run in unarchive("paper/fig", ours, users)}
    last = [float(both[run.identity].history["test/accuracy"].iloc[-1]) for run in made[:4]]
    assert last == [0.25, 0.75, 0.75, 0.75]
    assert len(both) == len(unarchive("paper/fig", ours, users)) == 4
    assert len(unarchive("paper/fig", ours, ours)) == 3
    assert len(unarchive("paper/fig", tmp_path / "none", users)) == 4


def test_a_shorter_run_replaces_no_longer_one(tmp_path):
    whole, short = (runs(COMPARED, lambda *_: 0.5, rounds=rounds)[0] for rounds in (100, 50))
    short = replace(short, settings=short.settings | {"local.lr": "written otherwise"})  # of the same trial
    archive([whole], "paper/fig", ["test/accuracy"], tmp_path)
    archive([short], "paper/fig", ["test/accuracy"], tmp_path)
    assert [run.rounds for run in unarchive("paper/fig", tmp_path)] == [100]


@pytest.mark.parametrize("digest", ["1234567890", "0012345678", "12345e6789"])
def test_a_digest_may_look_like_a_number(tmp_path, digest):
    run = runs(COMPARED, lambda *_: 0.5)[0]
    archive([replace(run, tags=run.tags | {"rollcall.trial": digest})], "paper/fig", ["test/accuracy"], tmp_path)
    (again,) = unarchive("paper/fig", tmp_path)
    assert again.history["test/accuracy"].tolist() == run.history["test/accuracy"].tolist()


class Client:
    """An MLflow client with three runs on two pages."""

    def get_experiment_by_name(self, name):
        return SimpleNamespace(experiment_id="7") if name == "known" else None

    def search_runs(self, ids, order_by, page_token):
        assert (ids, order_by) == (["7"], ["start_time"])
        pages = {None: ("next", [self.run("a", "FINISHED"), self.run("b", "RUNNING")])}
        pages["next"] = (None, [self.run("c", "RUNNING", {"rollcall.finished": "10"})])
        token, entries = pages[page_token]
        return type("Page", (list,), {"token": token})(entries)

    def run(self, name, status, tags=None):
        data = SimpleNamespace(params={"rounds": "30"}, tags=tags or {}, metrics={"test/loss": 0.0, "train/loss": 0.0})
        return SimpleNamespace(data=data, info=SimpleNamespace(status=status, run_id=name))

    def get_metric_history(self, run_id, metric):
        return [SimpleNamespace(step=step, value=float(step)) for step in (30, 0, 10)]


def test_finished_runs_of_mlflow():
    whole, continued = load(Client(), "known", ["test/loss"])
    assert whole.history["test/loss"].to_dict() == {0: 0.0, 10: 10.0, 30: 30.0}
    assert list(whole.history) == ["test/loss"]
    assert (continued.rounds, continued.history.index.tolist()) == (10, [0, 10])  # what it had finished
    assert sorted(load(Client(), "known")[0].history) == ["test/loss", "train/loss"]
    assert load(Client(), "unknown") == []


@pytest.mark.parametrize("name", ["sun/fig2", "fedpbc/fig2"])
def test_the_results_that_come_with_rollcall_are_the_default(name):
    assert len(unarchive(name)) > 0
