"""A real MLflow server as a process of its own, with SQLite or PostgreSQL behind it, that can be stopped and started."""

import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from importlib.util import find_spec
from pathlib import Path
from urllib.request import urlopen

START = 240.0
"""Seconds within which a server must answer, on a busy machine."""


def free_port() -> int:
    with closing(socket.create_server(("127.0.0.1", 0))) as server:
        return server.getsockname()[1]


class MlflowServer:
    """An MLflow server.

    Args:
        folder: for its artifacts and its log.
        backend: the address of its database.
    """

    def __init__(self, folder: Path, backend: str) -> None:
        self.folder = folder
        self.backend = backend
        self.port = free_port()
        self.process: subprocess.Popen | None = None

    @property
    def uri(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def start(self) -> None:
        arguments = {
            "--backend-store-uri": self.backend,
            "--artifacts-destination": str(self.folder / "artifacts"),
            "--host": "127.0.0.1",
            "--port": str(self.port),
            "--workers": "1",
        }
        command = [sys.executable, "-m", "mlflow", "server", *(text for pair in arguments.items() for text in pair)]
        environment = os.environ | {"MLFLOW_SERVER_ENABLE_JOB_EXECUTION": "false"}  # without its job runners
        with (self.folder / "server.log").open("a") as log:
            self.process = subprocess.Popen(command, env=environment, stdout=log, stderr=log, start_new_session=True)
        wait_for(self._answers, self.process, self.folder / "server.log")

    def _answers(self) -> bool:
        with urlopen(f"{self.uri}/health", timeout=5) as answer:
            return answer.status == 200

    def stop(self) -> None:
        if self.process is not None:
            with suppress(ProcessLookupError):
                os.killpg(self.process.pid, signal.SIGTERM)
            self.process.wait(60)
            self.process = None


@contextmanager
def running(folder: Path, backend: str) -> Iterator[MlflowServer]:
    """A server that runs."""
    server = MlflowServer(folder, backend)
    try:
        server.start()
        yield server
    finally:
        server.stop()


def why_no_postgres() -> str:
    """Why PostgreSQL cannot be started here; empty if it can."""
    if _program("initdb") is None:
        return "PostgreSQL is not installed (Debian: apt install postgresql)"
    return "" if find_spec("psycopg2") else "its driver is not installed (pip install psycopg2-binary)"


@contextmanager
def postgres(folder: Path) -> Iterator[str]:
    """A PostgreSQL server with an empty database, and its address."""
    data, port = folder / "postgres", free_port()
    data.mkdir()
    user = "postgres" if os.getuid() == 0 else None  # it refuses to run as root
    if user:
        shutil.chown(data, user)
        for parent in data.parents:  # made by pytest for its own user only
            if parent.stat().st_uid == 0 and parent != parent.parent:
                parent.chmod(parent.stat().st_mode | 0o011)
    make = [_program("initdb"), "-D", str(data), "-U", "postgres", "-A", "trust", "--no-sync"]
    subprocess.run(make, user=user, check=True, capture_output=True, cwd="/")
    settings = ["-c", "listen_addresses=127.0.0.1", "-c", f"unix_socket_directories={data}", "-c", "fsync=off"]
    log = folder / "postgres.log"
    with log.open("w") as output:
        command = [_program("postgres"), "-D", str(data), "-p", str(port), *settings]
        process = subprocess.Popen(command, user=user, stdout=output, stderr=output, cwd="/")
    try:
        wait_for(lambda: socket.create_connection(("127.0.0.1", port), 1).close() is None, process, log)
        yield f"postgresql+psycopg2://postgres@127.0.0.1:{port}/postgres"
    finally:
        process.send_signal(signal.SIGINT)  # SIGTERM would wait for open connections
        process.wait(60)


def wait_for(answers, process: subprocess.Popen, log: Path) -> None:
    """Wait until a server answers."""
    begun = time.monotonic()
    while time.monotonic() - begun < START:
        assert process.poll() is None, log.read_text()
        try:
            if answers():
                return
        except OSError:
            time.sleep(0.2)
    raise AssertionError(f"no answer: {log.read_text()}")


def _program(name: str) -> str | None:
    """A program of PostgreSQL, which Debian keeps out of the search path."""
    folders = sorted(Path("/usr/lib/postgresql").glob("*/bin"), reverse=True)
    return shutil.which(name, path=os.pathsep.join([os.environ["PATH"], *map(str, folders)]))
