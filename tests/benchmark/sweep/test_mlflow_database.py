"""MLflow's SQLite file: a killed creation leaves none, and a damaged one is named with the next step."""

import socket
import sqlite3
import subprocess
import sys
import time
from contextlib import closing

import pytest
from command import TINY, rollcall

from rollcall import Trial, simulate
from rollcall.benchmark.federation.run_folder import RunFolder
from rollcall.benchmark.sweep.mlflow_client import address, client, file_of
from rollcall.benchmark.sweep.mlflow_runs import Runs

TRIAL = Trial.read(TINY["trial"] | {"algorithm": "fedavg"})

CREATE = "import sys; from pathlib import Path; from rollcall.benchmark.sweep.mlflow_client import client; client(Path(sys.argv[1]))"


@pytest.fixture
def bare(tmp_path):
    """A store without a database."""
    return tmp_path


def test_a_creation_that_is_killed_leaves_no_database(bare):
    process = subprocess.Popen([sys.executable, "-c", CREATE, str(bare)])
    begun = bare / "mlflow.db.new"
    while process.poll() is None and not (begun.exists() and _tables(begun) > 5):
        time.sleep(0.01)
    process.kill()
    process.wait()
    assert (begun.exists(), (bare / "mlflow.db").exists()) == (True, False)
    subprocess.run([sys.executable, "-c", CREATE, str(bare)], check=True)
    assert [one.name for one in client(bare).search_experiments()] == ["Default"]
    assert not list(bare.glob("mlflow.db?*"))


def _tables(file) -> int:
    with closing(sqlite3.connect(f"{file.as_uri()}?mode=ro", uri=True)) as database:
        try:
            return database.execute("SELECT COUNT(*) FROM sqlite_master").fetchone()[0]
        except sqlite3.OperationalError:  # locked
            return 0


def half(file):
    """As a creation that was killed by an earlier version left it: tables, and no experiment."""
    with closing(sqlite3.connect(file)) as database:
        database.executescript("DELETE FROM experiments; DROP TABLE metrics;")


def cut(file):
    file.write_bytes(file.read_bytes()[:10_000])


def overwritten(file):
    file.write_bytes(b"text" * 5000)


@pytest.mark.parametrize(
    ("damage", "said"),
    [
        (half, "its creation was interrupted"),
        (cut, "database disk image is malformed"),
        (overwritten, "file is not a database"),
    ],
)
def test_a_damaged_database_is_set_aside_and_made_again(damage, said, store, capsys):
    simulate(TRIAL, folder=store / "tiny" / TRIAL.name)
    Runs(store, "tiny").client._tracking_client.store.engine.dispose()
    file = store / "mlflow.db"
    damage(file)
    code, _, error = rollcall(capsys, "sync", "--store", str(store))
    line = f"error: {file} is damaged ({said}). Set it aside: rollcall doctor {store} --fix; then rerun the command\n"
    assert (code, error) == (2, line)
    code, out, _ = rollcall(capsys, "doctor", str(store))
    assert code == 1
    assert f"{file}: {said}; rollcall sync makes it again from the run folders" in out
    assert rollcall(capsys, "doctor", str(store), "--fix")[0] == 0
    assert (store / "mlflow.db.damaged").exists()
    assert rollcall(capsys, "sync", "--store", str(store))[0] == 0
    runs = Runs(store, "tiny")
    (run,) = runs.client.search_runs([runs.id], "tags.`rollcall.trial` != ''")
    assert run.data.tags["rollcall.trial"] == RunFolder(store / "tiny" / TRIAL.name).status["digest"]
    assert rollcall(capsys, "doctor", str(store))[0] == 0


@pytest.mark.parametrize(
    ("uri", "file"),
    [
        ("sqlite:////runs/a%20b/mlflow.db", "/runs/a b/mlflow.db"),
        ("sqlite:///runs/mlflow.db", "runs/mlflow.db"),
        ("sqlite+pysqlite:////x.db?timeout=9", "/x.db"),
        ("sqlite:///:memory:", None),
        ("http://host/x.db", None),
    ],
)
def test_the_file_of_an_address(uri, file):
    found = file_of(uri)
    assert (None if found is None else str(found)) == file


def test_a_store_whose_name_has_signs_of_addresses(tmp_path):
    store = tmp_path / "a%41?#é b" / "runs"
    assert [one.name for one in client(store).search_experiments()] == ["Default"]
    assert [path.name for path in tmp_path.iterdir()] == ["a%41?#é b"]
    assert sorted(path.name for path in store.iterdir()) == ["mlflow.db", "mlflow.lock"]
    assert file_of(address(store)) == store / "mlflow.db"


def test_a_sync_with_a_server_that_does_not_answer_ends_with_a_line(store, monkeypatch, capsys):
    simulate(TRIAL, folder=store / "tiny" / TRIAL.name)
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))  # nobody listens there
        monkeypatch.setenv("MLFLOW_TRACKING_URI", f"http://127.0.0.1:{free.getsockname()[1]}")
        code, _, err = rollcall(capsys, "sync", "--store", str(store))
    assert (code, err.count("\n")) == (2, 1)
    assert err.startswith("error: MLflow cannot be updated (http://127.0.0.1:")
