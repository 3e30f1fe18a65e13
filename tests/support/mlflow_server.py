"""A real MLflow server as a process of its own that can be stopped and started."""

import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
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
