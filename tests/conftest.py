"""Fixtures shared by all tests."""

import os
import shutil
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path

import pytest
import typecheck  # before the modules that it watches
from filelock import FileLock

# Before torch is imported: the models are tiny, and more threads only make them slower.
os.environ |= {"OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}


TOGETHER = ("declared", "one_ray", "ray", "entered", "all_judged")
"""Fixtures and a marker whose tests stand side by side: one of the parallel processes runs them all.

So no other waits for Ray, imports it, or computes again what the tests of a module share.
"""


def pytest_collection_modifyitems(items):
    def key(item):
        own = {*item.fixturenames, *(marker.name for marker in item.iter_markers())}
        return [name not in own for name in TOGETHER]

    items.sort(key=key)


def but_mlflow(name):
    """To import MLflow takes seconds in each process: runs are copied to it where a test is about that."""
    return None if name == "mlflow" else find_spec(name)


@pytest.fixture(autouse=True, scope="session")
def _environment():
    with pytest.MonkeyPatch.context() as patch:
        # What the caller has set for experiments: tests have stores, servers and memory settings of their own.
        memory = ("MALLOC_TRIM_THRESHOLD_", "MALLOC_MMAP_THRESHOLD_")
        for name in ("ROLLCALL_STORE", "MLFLOW_TRACKING_URI", "RAY_ADDRESS", *memory):
            patch.delenv(name, raising=False)
        checkout = str(Path(__file__).parents[1])
        patch.setenv("PYTHONPATH", checkout, prepend=os.pathsep)  # subprocesses test this one
        # The command line keeps freed memory and collects garbage seldom. Processes of many tests would take gigabytes.
        patch.setattr("rollcall.cli.app.keep_freed_memory", lambda: None)
        patch.setattr("rollcall.cli.app.collect_garbage_seldom", lambda: None)
        patch.setattr("rollcall.benchmark.sweep.run.find_spec", but_mlflow)
        yield


@pytest.hookimpl(tryfirst=True)  # before fixtures of the module
def pytest_runtest_setup():
    typecheck.calls.clear()


@pytest.fixture(autouse=True, scope="session")
def _database(tmp_path_factory):
    # MLflow takes seconds to create its tables: new databases of this process are copies of one with empty tables.
    from rollcall.benchmark.sweep import mlflow_copy

    empty = tmp_path_factory.getbasetemp().parent / f"mlflow-{version('mlflow')}.db"
    connect = mlflow_copy.connect

    def copied(uri):
        file = Path(uri.removeprefix("sqlite:///"))
        if uri.startswith("sqlite:") and not file.exists():
            with FileLock(f"{empty}.lock"):
                if not empty.exists():
                    connect(f"sqlite:///{empty}").search_experiments()
            shutil.copy(empty, file)
        return connect(uri)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(mlflow_copy, "connect", copied)
        yield


@pytest.fixture
def mlflow(monkeypatch):
    """Runs are copied to MLflow."""
    monkeypatch.setattr("rollcall.benchmark.sweep.run.find_spec", find_spec)


@pytest.fixture(scope="session")
def ray_lock(tmp_path_factory):
    return FileLock(tmp_path_factory.getbasetemp().parent / "ray.lock")


@pytest.fixture
def one_ray(ray_lock, monkeypatch):
    """Only one test at a time starts Ray. On a busy machine several would start so slowly that Ray gives up."""
    monkeypatch.setenv("RAY_worker_niceness", "0")  # by default 15: beside other tests its workers would starve
    with ray_lock:
        yield


@pytest.fixture
def store(tmp_path, monkeypatch):
    """An empty store."""
    monkeypatch.setenv("ROLLCALL_STORE", str(tmp_path / "runs"))
    return tmp_path / "runs"


@pytest.fixture
def publisher(tmp_path, monkeypatch):
    """Publishes small data sets on a server of this process; the data root is `tmp_path / "data"`, not there yet."""
    from published import Publisher  # here, for torchvision takes a second
    from server import serving

    monkeypatch.setenv("no_proxy", "127.0.0.1")
    monkeypatch.setenv("ROLLCALL_DATA", str(tmp_path / "data"))
    (tmp_path / "served").mkdir()
    with serving(tmp_path / "served") as server:
        yield Publisher(server, monkeypatch)


DATA = os.environ.get("ROLLCALL_DATA", "data")
"""Before a test changes it."""


@pytest.fixture
def phones(monkeypatch):
    """The recording `phones`, whose file does not come with the suite."""
    if not Path(DATA, "traces", "phones.csv").is_file():
        pytest.skip("the recording phones is not in ROLLCALL_DATA")
    monkeypatch.setenv("ROLLCALL_DATA", DATA)
