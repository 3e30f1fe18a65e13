"""A real MLflow server in a process, over SQLite, that can be stopped and started."""

import os
import signal
import socket
import subprocess
import sys
import time
from contextlib import closing, suppress
from pathlib import Path
from urllib.request import urlopen

START = 240.0
"""Seconds within which a server must answer, on a busy machine."""


class MlflowServer:
    """An MLflow server that runs within a `with` statement; `folder` is for its database, artifacts and log."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        with closing(socket.create_server(("127.0.0.1", 0))) as server:
            self.port = server.getsockname()[1]
        self.process: subprocess.Popen | None = None

    def __enter__(self) -> "MlflowServer":
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    @property
    def uri(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def start(self) -> None:
        arguments = {
            "--backend-store-uri": f"sqlite:///{self.folder / 'server.db'}",
            "--artifacts-destination": str(self.folder / "artifacts"),
            "--host": "127.0.0.1",
            "--port": str(self.port),
            "--workers": "1",
        }
        command = [sys.executable, "-m", "mlflow", "server", *(text for pair in arguments.items() for text in pair)]
        environment = os.environ | {"MLFLOW_SERVER_ENABLE_JOB_EXECUTION": "false"}  # without its job runners
        with (self.folder / "server.log").open("a") as log:
            self.process = subprocess.Popen(command, env=environment, stdout=log, stderr=log, start_new_session=True)
        begun = time.monotonic()
        while time.monotonic() - begun < START:
            assert self.process.poll() is None, (self.folder / "server.log").read_text()
            with suppress(OSError), urlopen(f"{self.uri}/health", timeout=5) as answer:
                if answer.status == 200:
                    return
            time.sleep(0.2)
        raise AssertionError(f"no answer: {(self.folder / 'server.log').read_text()}")

    def stop(self) -> None:
        if self.process is not None:
            with suppress(ProcessLookupError):
                os.killpg(self.process.pid, signal.SIGTERM)
            self.process.wait(60)
            self.process = None
