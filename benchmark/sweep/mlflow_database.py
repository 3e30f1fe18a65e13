"""MLflow's SQLite file: it is created whole or not at all, and a damaged one is recognised.

Creating it takes seconds and many steps, and MLflow cannot continue a creation that was killed.
"""

import sqlite3
from contextlib import closing
from pathlib import Path
from urllib.parse import unquote, urlsplit

from benchmark.federation.run_folder import Damaged, replacing

NAME = "mlflow.db"
"""The file in a store."""


def file_of(uri: str) -> Path | None:
    """The SQLite file of an address such as `sqlite:////runs/mlflow.db`; None if it is of something else."""
    address = urlsplit(uri)
    if address.scheme.partition("+")[0] != "sqlite" or address.path in ("", "/", "/:memory:"):
        return None
    return Path(unquote(address.path.removeprefix("/")))


def make_sure_of(file: Path) -> None:
    """Create the database if it does not exist. The caller holds a lock.

    Raises:
        Damaged: it exists and is damaged.
    """
    if not file.exists() or not file.stat().st_size:
        _create(file)
    fault = fault_of_database(file)
    if fault:
        raise Damaged(file, fault)


def fault_of_database(file: Path, whole: bool = False) -> str:
    """What is wrong with a database; empty if nothing is, or if another process has locked it.

    Args:
        file: of the database.
        whole: read all of it, instead of one table.
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
        database = SqlAlchemyStore(f"sqlite:///{scratch.resolve()}", artifacts)  # type: ignore[no-untyped-call]
        database.engine.dispose()
