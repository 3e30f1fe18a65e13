"""The run folder: the files of one trial.

trial.yaml      all settings
metrics.jsonl   a line for each evaluation, append-only
status.json     state, round, versions, machine
lock            held while the trial runs
last.ckpt       the last checkpoint of Lightning
model.npz       `model` (as evaluated) and `server` after the last round of a finished run
"""

import json
import os
import platform
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import pandas as pd
from filelock import FileLock, Timeout

from benchmark.config.errors import SettingError
from benchmark.federation.interruption import Interrupted

if TYPE_CHECKING:
    from benchmark.config.digest import Spec

State = Literal["absent", "running", "finished", "interrupted", "failed"]


class RunFolder:
    """One trial's folder.

    Args:
        path: of the folder; `running` creates it.
    """

    def __init__(self, path: Path) -> None:
        self.path = path

    @property
    def checkpoint(self) -> Path:
        return self.path / "last.ckpt"

    @property
    def status(self) -> dict[str, Any]:
        """The content of status.json; empty before the trial starts."""
        try:
            status: dict[str, Any] = json.loads((self.path / "status.json").read_text())
            return status
        except FileNotFoundError:
            return {}

    @property
    def state(self) -> State:
        state: State = self.status.get("state", "absent")
        return state

    @property
    def finished(self) -> int:
        """Rounds of the longest run that finished here, or 0. It stays while the run is continued for more rounds."""
        status = self.status
        return int(status.get("finished", status["rounds"] if status.get("state") == "finished" else 0))

    @contextmanager
    def running(self, trial: "Spec", *, device: str, threads: int) -> Iterator[None]:
        """The context of a running trial: writes its settings and status at the start, and its final state at the end.

        Raises:
            SettingError: another process runs this trial.
        """
        with self._locked():
            trial.save(self.path)
            finished, before = self.finished, self.status.get("seconds", 0.0)
            self._started = time.monotonic() - before
            self._evaluating = self.status.get("evaluation_seconds", 0.0)
            self._round = self.status.get("round", 0)
            self._write(
                state="running",
                name=trial.name,
                digest=trial.digest,
                rounds=trial.rounds,
                finished=finished,
                round=self._round,
                seconds=before,
                evaluation_seconds=self._evaluating,
                updated=time.time(),
                device=device,
                threads=threads,
                machine=f"{platform.system()} {platform.machine()}, {os.cpu_count()} cores",
                python=platform.python_version(),
                versions={name: version(name) for name in ("rollcall", "torch", "lightning", "numpy")},
                commit=commit(),
                code=trial.code,
            )
            try:
                yield
            except (Interrupted, KeyboardInterrupt, SystemExit):
                self._update(state="interrupted")
                raise
            except Exception as error:
                self._update(state="failed", error=f"{type(error).__name__}: {error}")
                raise
            self._update(state="finished", finished=trial.rounds)

    def append(self, row: dict[str, float], seconds: float = 0.0) -> None:
        """Add an evaluation, and the seconds that it took."""
        self._evaluating += seconds
        with (self.path / "metrics.jsonl").open("a") as file:
            file.write(json.dumps(row) + "\n")
        self._round = row["round"]
        if time.monotonic() - self._written >= 1:  # for readers during the run; `running` writes the final status
            self._update()

    def reached(self, t: int) -> None:
        """Record in the status that t rounds are done and saved."""
        self._round = t
        self._update()

    def save_models(self, model: np.ndarray, server: np.ndarray) -> None:
        """Write the final model (as evaluated) and the server's model, each [d]."""
        np.savez(self.path / "model.npz", model=model, server=server)

    def history(self) -> pd.DataFrame:
        """A row for each evaluation, by round. If a resumed run evaluated a round again, the later row counts."""
        rows = []
        file = self.path / "metrics.jsonl"
        for line in file.read_text().splitlines() if file.exists() else ():
            try:
                rows.append(json.loads(line))
            except json.JSONDecodeError:  # the process ended while it wrote this line
                continue
        if not rows:
            return pd.DataFrame({"round": []})
        return pd.DataFrame(rows).drop_duplicates("round", keep="last").sort_values("round").reset_index(drop=True)

    def models(self) -> tuple[np.ndarray, np.ndarray]:
        """The final model (as evaluated) and the server's model, each [d]."""
        with np.load(self.path / "model.npz") as file:
            return file["model"], file["server"]

    @contextmanager
    def _locked(self) -> Iterator[None]:
        self.path.mkdir(parents=True, exist_ok=True)
        lock = FileLock(self.path / "lock", timeout=0)
        try:
            lock.acquire()
        except Timeout:
            raise SettingError(
                f"folder: {self.path} is in use; another process runs this trial. Wait for it to end"
            ) from None
        try:
            yield
        finally:
            lock.release()

    def _update(self, **changes: Any) -> None:
        clocks = {
            "seconds": round(time.monotonic() - self._started, 3),
            "evaluation_seconds": round(self._evaluating, 3),
            "updated": time.time(),
        }
        self._write(**self.status | {"round": self._round} | clocks | changes)

    def _write(self, **status: Any) -> None:
        # Written elsewhere and renamed, so that a reader never sees half a file.
        scratch = self.path / "status.json.new"
        scratch.write_text(json.dumps(status, indent=1))
        scratch.replace(self.path / "status.json")
        self._written = time.monotonic()


def commit() -> str | None:
    """The commit of this source code, with + if there are uncommitted changes; None outside a git checkout."""
    here = Path(__file__).parent

    def git(*arguments: str) -> str:
        return subprocess.run(["git", *arguments], cwd=here, capture_output=True, text=True, check=True).stdout.strip()

    try:
        return git("rev-parse", "--short=12", "HEAD") + ("+" if git("status", "--porcelain", "-uno") else "")
    except (OSError, subprocess.CalledProcessError):
        return None
