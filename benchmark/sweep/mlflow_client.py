"""The connection to MLflow: a SQLite file in the store, or the server that MLFLOW_TRACKING_URI names.

The SQLite file is created whole or not at all, and a damaged one is recognised: creating it takes seconds and many
steps, and MLflow cannot continue a creation that was killed.
"""

import logging
import os
import socket
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import quote, unquote, urlsplit

from filelock import FileLock

from rollcall.benchmark.federation.run_folder import Damaged, replacing

if TYPE_CHECKING:
    from mlflow import MlflowClient

NAME = "mlflow.db"
"""The SQLite file in a store."""

PORTS = {"http": 80, "https": 443}
"""The ports of servers whose address names none."""

PATIENCE = 3.0
"""Seconds after which a server does not answer."""

# MLflow reads these: the first when it is imported, the others at each request. Its own limits are minutes.
os.environ["MLFLOW_DISABLE_TELEMETRY"] = "true"
os.environ.setdefault("MLFLOW_HTTP_REQUEST_TIMEOUT", "5")
os.environ.setdefault("MLFLOW_HTTP_REQUEST_MAX_RETRIES", "1")


def address(store: Path) -> str:
    """The address in MLFLOW_TRACKING_URI; by default that of a SQLite file in the store."""
    return os.environ.get("MLFLOW_TRACKING_URI") or _uri(store / NAME)


def _uri(file: Path) -> str:
    return f"sqlite:///{quote(str(file.resolve()))}"


def client(store: Path) -> "MlflowClient":
    """A client of the server or database at `address`.

    Raises:
        ConnectionError: the server does not answer.
        Damaged: the SQLite file cannot be read, or its creation was interrupted.
    """
    uri = address(store)
    probe(uri)
    from mlflow import MlflowClient
    from mlflow.store.db import utils

    utils._make_parent_dirs_if_sqlite = lambda db_uri: None  # they exist; it would make others, with the encoded names
    logging.getLogger("mlflow").setLevel(logging.WARNING)  # it would log every table of a new database
    logging.getLogger("mlflow.store.db.utils").setLevel(logging.CRITICAL)  # its errors are raised too
    if "sql" not in urlsplit(uri).scheme:
        return MlflowClient(uri)
    file = file_of(uri)
    with locked(store if file is None else file.parent):  # two processes must not create the tables at once
        if file is not None:
            if not file.exists() or not file.stat().st_size:
                _create(file)
            fault = fault_of_database(file)
            if fault:
                raise Damaged(file, fault)
        return MlflowClient(uri)


def experiment_id(client: "MlflowClient", store: Path, experiment: str) -> str:
    """The id of an experiment in MLflow, where it is created if need be."""
    with locked(store):
        known = client.get_experiment_by_name(experiment)
        if known is not None:
            return str(known.experiment_id)
        # A server has a place of its own for artifacts; of a database they are in the store.
        is_database = "sql" in urlsplit(client.tracking_uri).scheme
        artifacts = (store / "artifacts").resolve().as_uri() if is_database else None
        return str(client.create_experiment(experiment, artifact_location=artifacts))


def probe(uri: str) -> None:
    """Raise `ConnectionError` if this is the address of a server and nothing answers there."""
    address = urlsplit(uri)
    port = PORTS.get(address.scheme)
    if port is None or not address.hostname:
        return
    try:
        socket.create_connection((address.hostname, address.port or port), timeout=PATIENCE).close()
    except OSError as error:
        where = f"{address.scheme}://{address.hostname}:{address.port or port}"  # without a password
        raise ConnectionError(f"{where} does not answer ({error.strerror or error})") from None


@contextmanager
def locked(store: Path) -> Iterator[None]:
    """One process of a store at a time: two must neither create the tables at once nor write the same evaluations."""
    store.mkdir(parents=True, exist_ok=True)
    with FileLock(store / "mlflow.lock"):
        yield


def file_of(uri: str) -> Path | None:
    """The SQLite file of an address such as `sqlite:////runs/mlflow.db`; None if it is of something else."""
    address = urlsplit(uri)
    if address.scheme.partition("+")[0] != "sqlite" or address.path in ("", "/", "/:memory:"):
        return None
    return Path(unquote(address.path.removeprefix("/")))


def fault_of_database(file: Path, whole: bool = False) -> str:
    """The fault of a database, in words; empty if it has none, or if another process has locked it.

    With `whole`, all of it is read, instead of one table.
    """
    try:
        with closing(sqlite3.connect(f"{file.resolve().as_uri()}?mode=rw", uri=True)) as database:
            if not database.execute("SELECT COUNT(*) FROM experiments").fetchone()[0]:  # MLflow's last step makes one
                return "its creation was interrupted"
            (checked,) = database.execute("PRAGMA quick_check(1)").fetchone() if whole else ("ok",)
            return "" if checked == "ok" else str(checked)
    except sqlite3.OperationalError as error:
        return "its creation was interrupted" if "no such table" in str(error) else ""
    except sqlite3.DatabaseError as error:
        return str(error)


def _create(file: Path) -> None:
    """Create the database under another name, and rename it when it is complete."""
    from mlflow.store.tracking.sqlalchemy_store import SqlAlchemyStore

    with replacing(file) as scratch:
        for left in (scratch, scratch.with_name(f"{scratch.name}-journal")):  # of a creation that was killed
            left.unlink(missing_ok=True)
        artifacts = (file.parent / "artifacts").resolve().as_uri()
        database = SqlAlchemyStore(_uri(scratch), artifacts)  # type: ignore[no-untyped-call]
        database.engine.dispose()
