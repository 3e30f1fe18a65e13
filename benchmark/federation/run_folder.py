"""The run folder: the files of one trial. A crash, a full disk or a damaged file loses no result.

trial.yaml      all settings
metrics.jsonl   a line for each evaluation, append-only
status.json     state, round, versions, machine
lock            held while the trial runs
last.ckpt       the last checkpoint of Lightning
model.npz       `model` (as evaluated) and `server` after the last round of a run that finished or diverged, as
                `buffer/NAME` the buffers of this model (BatchNorm statistics), and as `trial` the trial's digest
error.txt       of a failed trial, the traceback
"""

import hashlib
import json
import os
import platform
import shutil
import subprocess
import time
import traceback
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from functools import cache, cached_property
from importlib.metadata import version
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from filelock import FileLock, Timeout

from rollcall.benchmark.config.digest import flatten, own_code
from rollcall.benchmark.config.errors import SettingError
from rollcall.benchmark.config.source import package_code
from rollcall.benchmark.config.text import command, counted, parsed
from rollcall.benchmark.federation.faults import fault_of_checkpoint, fault_of_models
from rollcall.benchmark.process import Interrupted

if TYPE_CHECKING:
    import pandas as pd

    from rollcall.benchmark.config.digest import Spec

State = Literal["absent", "running", "finished", "interrupted", "failed", "diverged"]

UPDATE = 1.0
"""Seconds between two updates of status.json in a run."""

ASIDE = ".damaged"
"""Part of the name of a file or folder that was set aside."""

SCRATCH = ".new"
"""The ending of a file or folder that is not written yet."""

ALTERED = "changed after the run wrote it"
"""The fault of a file whose digest is not that of the run."""


class InUse(SettingError):
    """Another process runs this trial."""


class Damaged(SettingError):
    """A file of a run folder cannot be read. The message names the file, the fault and the next step."""

    def __init__(self, file: Path, reason: str) -> None:
        super().__init__(
            f"{file} is damaged ({reason}). Set it aside: {command('doctor', file.parent, '--fix')}; then rerun "
            "the command"
        )
        self.file = file
        self.reason = reason


NEEDED = ("state", "digest", "round", "rounds")
"""The entries that every status.json has."""

STATUS_TYPES: Mapping[str, tuple[type, ...]] = {
    **dict.fromkeys(("rounds", "finished"), (int,)),
    **dict.fromkeys(("round", "seconds", "updated"), (float, int)),
    **dict.fromkeys(("signature", "sources", "code", "settings", "versions"), (dict,)),
    **dict.fromkeys(("state", "digest", "device"), (str,)),
    "diverged": (int, type(None)),
}
"""The types of some entries of status.json."""


class RunFolder:
    """One trial's folder, which `running` creates."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.status_file = path / "status.json"
        self.metrics = path / "metrics.jsonl"
        self.settings = path / "trial.yaml"
        self.checkpoint = path / "last.ckpt"
        self.error_file = path / "error.txt"

    @property
    def status(self) -> dict[str, Any]:
        """The content of status.json; empty before the trial starts.

        Raises Damaged: the file has no JSON object.
        """
        try:
            status = json.loads(self.status_file.read_text())
        except FileNotFoundError:
            return {}
        except (ValueError, RecursionError):
            raise Damaged(self.status_file, "not valid JSON") from None
        if not isinstance(status, dict):
            raise Damaged(self.status_file, "not a JSON object")
        for key, kinds in STATUS_TYPES.items():
            value = status.get(key, kinds[0]())
            if not isinstance(value, kinds) or isinstance(value, bool):
                raise Damaged(self.status_file, f"{key} is {value!r}")
        signed = status.get("signature")
        if signed and not (isinstance(signed.get("rows"), int) and "metrics" in signed):
            raise Damaged(self.status_file, f"signature is {signed!r}")
        if missing := [key for key in NEEDED if key not in status]:
            raise Damaged(self.status_file, f"without {', '.join(missing)}")
        return status

    @property
    def state(self) -> State:
        return self.status.get("state", "absent")

    @property
    def state_now(self) -> State:
        """The state; `interrupted` if the process of a running trial has died."""
        state = self.state
        return "interrupted" if state == "running" and not self.in_use else state

    @property
    def in_use(self) -> bool:
        """Whether a process holds the lock, which ends with the process. No where the lock cannot be tried."""
        file = self.path / "lock"
        if not file.exists():
            return False
        try:
            with FileLock(file, timeout=0):
                return False
        except Timeout:
            return True
        except OSError:  # a store that can only be read
            return False

    @property
    def finished(self) -> int:
        """Rounds of the longest run that finished here, or 0. It stays while the run is continued for more rounds."""
        return int(self.status.get("finished", 0))

    def origin(self, experiment: str) -> tuple[dict[str, str], dict[str, Any]]:
        """The run as MLflow and archives know it: tags to search by with its provenance, and its settings as written.

        The tag `algorithm` of an analysis is the name of the analysis.
        """
        status, spec = self.status, parsed(self.settings.read_text(encoding="utf-8"))
        settings = flatten(spec)
        code, sources = (
            " ".join(f"{name}={digest}" for name, digest in status.get(key, {}).items()) for key in ("code", "sources")
        )
        last = {name: status.get(name) for name in ("rounds", "diverged", "round", "seconds", "state")}
        last["finished"] = self.finished or None
        return {
            "experiment": experiment,
            "algorithm": settings.get("algorithm", settings.get("analysis", "")).rpartition(":")[2],
            "participation": settings.get("participation", ""),
            "task": settings.get("task", ""),
            "seed": settings["seed"],
            "commit": str(status["commit"]),
            "version": status["versions"]["rollcall"],
            "device": status["device"],
            "threads": str(status["threads"]),
            "machine": str(status.get("machine", "unknown")),
            "rollcall.trial": status["digest"],
            "rollcall.code": code,
            "rollcall.sources": sources,
            **{f"rollcall.{name}": str(value) for name, value in last.items() if value is not None},
        }, spec

    def diverged_within(self, rounds: int) -> bool:
        """Whether the run diverged in one of these rounds. It would again."""
        t = self.status.get("diverged")
        return t is not None and t <= rounds

    def has_other(self, content: str) -> bool:
        """Whether the run here had other data than those of this digest, as far as it says; not if it never started."""
        status = self.status
        return (status.get("data") or content) != content and bool(status["round"] or status["state"] != "failed")

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Hold the lock, which may be held already by this object.

        Raises InUse: another process runs this trial.
        """
        self.path.mkdir(parents=True, exist_ok=True)
        try:
            lock = self._lock.acquire()
        except Timeout:
            raise InUse(f"folder: {self.path} is in use; another process runs this trial. Wait for it to end") from None
        with lock:
            yield

    @cached_property
    def _lock(self) -> FileLock:
        return FileLock(self.path / "lock", timeout=1.0)  # `in_use` holds it for an instant

    @contextmanager
    def running(self, trial: "Spec", *, device: str, threads: int, content: str = "") -> Iterator[None]:
        """The context of a running trial: writes its settings and status at the start, and its final state at the end.

        Raises InUse: another process runs this trial. Raises Damaged: metrics.jsonl is not as the run left it.
        """
        with self.locked():
            self.verify()
            before = self.reopen()
            self.save_settings(trial)
            self.error_file.unlink(missing_ok=True)
            for scratch in self.path.glob(f"*{SCRATCH}"):  # of a process that was killed
                shutil.rmtree(scratch) if scratch.is_dir() else scratch.unlink(missing_ok=True)
            first = first_status(trial)
            begun = MADE_BY if self.checkpoint.exists() else ()  # what made the first rounds
            kept = {key: before[key] for key in (*COUNTED, "signature", *begun) if key in before}
            self._end: dict[str, Any] = {"state": "finished", "finished": trial.rounds}
            self._status = first | kept | {"device": device, "threads": threads, "data": content}
            self._started = time.monotonic() - self._status["seconds"]
            self._evaluating = self._status["evaluation_seconds"]
            self._rows = 0
            self._write(**self._status)
            try:
                yield
            except (Interrupted, KeyboardInterrupt):
                with suppress(OSError):  # the disk is full: the checkpoint says as much
                    self._update(state="interrupted")
                raise
            except (Exception, SystemExit) as error:  # SystemExit: a part of the user called sys.exit
                with suppress(OSError):
                    self._update()
                self.fail(f"{type(error).__name__}: {error}", traceback.format_exc())
                raise
            self._update(**self._end, signature=self._signature())

    def reopen(self) -> dict[str, Any]:
        """Record that the run goes on, before its files change; trial.yaml is signed later. Returns the status."""
        status = self.status
        status.get("signature", {}).pop("settings", None)
        if status:
            self._write(lasting=True, **status | {"state": "running"})
        return status

    def altered(self) -> str:
        """The difference between metrics.jsonl and what status.json says of it; empty if there is none.

        A run signs its evaluations at every checkpoint and at its end. A run of an earlier version is not signed.
        """
        status, lines = self.status, self._lines()
        signed = status.get("signature", {})
        if not signed:
            return ""
        ended = status.get("state") in ("finished", "diverged")
        if len(lines) < signed["rows"] or (ended and len(lines) > signed["rows"]):
            return f"it has {counted(len(lines), 'evaluation')}, and the run wrote {signed['rows']}"
        return "" if _digest(b"".join(lines[: signed["rows"]])) == signed["metrics"] else ALTERED

    def verify(self) -> None:
        """Raise Damaged if metrics.jsonl is not as the run left it."""
        if fault := self.altered():
            raise Damaged(self.metrics, fault)

    def altered_settings(self) -> str:
        """The difference between trial.yaml and what status.json says of it; empty if there is none, or not known."""
        if not self.settings.is_file():
            return "missing"
        signed = self.status.get("signature", {}).get("settings")
        return ALTERED if signed not in (None, self._digest_of_settings()) else ""

    def altered_copies(self) -> str:
        """What is wrong with the copies in source/ that trial.yaml names; empty if nothing, or if it is not known."""
        known = self.status.get("sources", {}).values()
        named = own_code(parsed(self.settings.read_text(encoding="utf-8"))) if known else ()
        for name in dict.fromkeys(Path(one.rpartition(":")[0]).name for one in named if ".py:" in one):
            copy = self.path / "source" / name
            if not copy.is_file():
                return f"{name} is missing"
            if hashlib.sha256(copy.read_bytes()).hexdigest()[:10] not in known:
                return f"{name} {ALTERED}"
        return ""

    def restore_settings(self, trial: "Spec") -> None:
        """Write trial.yaml and the copies in source/ again, of a run that has ended."""
        self.save_settings(trial)
        status = self.status
        if "signature" in status:
            status["signature"]["settings"] = self._digest_of_settings()
            self._write(lasting=True, **status | {"updated": time.time()})  # MLflow copies it again

    def ends_with(self, **changes: Any) -> None:
        """Make `running` end with these entries of the status, such as `seconds`."""
        self._end |= changes

    def end_as_diverged(self, t: int, reason: str) -> None:
        """Make `running` end with the state `diverged`, after t rounds, and its reason."""
        self._end |= {"state": "diverged", "diverged": t, "round": t, "reason": reason}
        self._end.pop("finished", None)

    def fail(self, error: str, trace: str, trial: "Spec | None" = None) -> None:
        """Record a failure: the error in the status, and the traceback in error.txt.

        A run that failed before it started gets a status if its trial is passed.
        """
        with suppress(OSError):  # a full disk must not hide the error itself
            self.path.mkdir(parents=True, exist_ok=True)
            self.error_file.write_text(trace)
            status = self.status
            if trial is not None and not status:
                self.save_settings(trial)
                status = first_status(trial)
            if status:
                self._write(**status | {"state": "failed", "error": error, "updated": time.time()})

    def append(self, row: dict[str, float], seconds: float = 0.0) -> None:
        """Add an evaluation, and the seconds that it took."""
        self._evaluating += seconds
        with self.metrics.open("a") as file:  # a line that a full disk cuts off is removed by `resume_at`
            file.write(f"{json.dumps(row)}\n")
        self._rows += 1
        self.reached(row["round"])

    def reached(self, t: float) -> None:
        """Record in the status that t rounds are done, unless it was written less than `UPDATE` seconds ago.

        Progress and MLflow read it during the run; `running` writes the final status.
        """
        self._status["round"] = t
        if time.monotonic() - self._written >= UPDATE:
            self._update()

    def sign(self, t: int) -> None:
        """Record and sign that t rounds are done, before their checkpoint is written."""
        self._update(round=t, signature=self._signature())

    def save_models(self, t: int, model: np.ndarray, server: np.ndarray, buffers: Mapping[str, np.ndarray]) -> None:
        """Write the models after t rounds, as evaluated and the server's, each [d], and the buffers by name."""
        arrays = {"model": model, "server": server} | {f"buffer/{name}": value for name, value in buffers.items()}
        arrays |= {"trial": np.array(self._status["digest"]), "rounds": np.array(t)}
        with replacing(self.path / "model.npz", lasting=True) as scratch, scratch.open("wb") as file:
            np.savez(file, **arrays)  # type: ignore[arg-type, unused-ignore]

    def resumable(self) -> Path | None:
        """The last checkpoint; None if there is none.

        Raises Damaged: it cannot be read, or is of another trial.
        """
        if not self.checkpoint.exists():
            return None
        if fault := fault_of_checkpoint(self.checkpoint, self.status.get("digest", "")):
            raise Damaged(self.checkpoint, fault)
        return self.checkpoint

    def resume_at(self, t: int) -> None:
        """Remove the evaluations and the seconds of later rounds than t. The resumed run makes them again."""
        part = min(1.0, max(t, 0) / (self._status["round"] or 1))
        self._started += (1 - part) * self._status["seconds"]
        self._evaluating *= part
        kept = [row for row in self.rows() if row["round"] <= t]
        text, self._rows = "".join(f"{json.dumps(row)}\n" for row in kept), len(kept)
        finished = 0 if t < self._status["finished"] else self._status["finished"]
        self._update(finished=finished, signature=self._signature(text.encode()))  # first: a kill leaves more lines
        if b"".join(self._lines()) != text.encode():
            with replacing(self.metrics) as scratch:
                scratch.write_text(text)
        if not finished:
            (self.path / "model.npz").unlink(missing_ok=True)  # of rounds that are made again

    def _lines(self) -> list[bytes]:
        """The lines of metrics.jsonl with their ends; none if there is no such file."""
        return self.metrics.read_bytes().splitlines(keepends=True) if self.metrics.exists() else []

    def rows(self) -> list[dict[str, float]]:
        """The lines of metrics.jsonl; none if there is no such file. An unfinished last line is left out.

        Raises Damaged: another line is not a JSON object of numbers with a round.
        """
        rows: list[dict[str, float]] = []
        lines = self._lines()
        for number, line in enumerate(lines, start=1):
            try:
                row = json.loads(line)
                is_row = "round" in row and all(isinstance(value, int | float) for value in row.values())
            except (ValueError, TypeError, AttributeError):
                is_row = False
            if not is_row:
                if number == len(lines) and not line.endswith(b"\n"):  # a running process writes it, or one died
                    break
                raise Damaged(self.metrics, f"line {number} is not an evaluation") from None
            rows.append(row)
        return rows

    def history(self) -> "pd.DataFrame":
        """A row for each evaluation, by round. If a resumed run evaluated a round again, the later row counts.

        Raises:
            Damaged: metrics.jsonl has a line that is not an evaluation.
        """
        import pandas as pd  # takes a second, which readers of the status need not wait for

        rows = self.rows()
        if not rows:
            return pd.DataFrame({"round": []})
        return pd.DataFrame(rows).drop_duplicates("round", keep="last").sort_values("round").reset_index(drop=True)

    def models(self) -> dict[str, np.ndarray]:
        """The arrays of model.npz: `model` and `server`, each [d], and `buffer/NAME`.

        Raises Damaged: model.npz is missing, cannot be read, or is of another trial or after other rounds.
        """
        file = self.path / "model.npz"
        if fault := fault_of_models(file, self.status):
            raise Damaged(file, fault)
        with np.load(file) as arrays:
            return {name: arrays[name] for name in arrays if name not in ("trial", "rounds")}

    def save_settings(self, trial: "Spec") -> None:
        """Write trial.yaml once, so that a later start on a full disk cannot cut it off."""
        with TemporaryDirectory(suffix=SCRATCH, dir=self.path) as scratch:
            trial.save(Path(scratch))
            for file in sorted(Path(scratch).rglob("*")):  # trial.yaml comes after the arrays and sources that it names
                target = self.path / file.relative_to(scratch)
                if file.is_dir():
                    target.mkdir(exist_ok=True)
                else:
                    file.replace(target)

    def _digest_of_settings(self) -> str:
        return _digest(self.settings.read_bytes())

    def _signature(self, content: bytes | None = None) -> dict[str, Any]:
        """The number of evaluations, and digests of them and of trial.yaml. A power cut loses none of them any more.

        Args:
            content: of metrics.jsonl; by default as it is.

        Raises SettingError: another process removed evaluations of this run.
        """
        if content is None:
            content = b""
            if self.metrics.exists():
                with self.metrics.open("rb") as file:
                    os.fsync(file.fileno())
                    content = file.read()
        whole = content[: content.rfind(b"\n") + 1]  # without a line that a full disk cut off
        if (rows := whole.count(b"\n")) < self._rows:
            told = f"{self.metrics}: it has {counted(rows, 'evaluation')}, and the run wrote {self._rows}"
            raise SettingError(f"{told}; another process changed it. Rerun the command")
        return {"rows": rows, "metrics": _digest(whole), "settings": self._digest_of_settings()}

    def _update(self, **changes: Any) -> None:
        clocks = {
            "seconds": round(time.monotonic() - self._started, 3),
            "evaluation_seconds": round(self._evaluating, 3),
            "updated": time.time(),
        }
        self._status |= clocks | changes
        self._write(lasting="signature" in changes, **self._status)

    def _write(self, lasting: bool = False, **status: Any) -> None:
        # Written elsewhere and renamed, so that a reader never sees half a file.
        with replacing(self.status_file, lasting) as scratch:
            scratch.write_text(json.dumps(status, indent=1 if lasting else None, default=str))  # indenting is slow
        self._written = time.monotonic()


def run_folders(folder: Path, *, below: bool = True) -> list[Path]:
    """The run folders in a folder, sorted, without those that were set aside.

    Args:
        folder: a store, or the folder of an experiment.
        below: also those in folders of this folder, and this folder itself.
    """
    found = [file.parent for file in folder.glob("*/status.json")]
    if below:
        found, seen = [], set()
        for place, inside, files in os.walk(folder, followlinks=True):  # an experiment may be a link
            if (real := os.path.realpath(place)) in seen:
                inside.clear()
            elif "status.json" in files:
                found.append(Path(place))
            seen.add(real)
    return sorted(path for path in found if not any(ASIDE in part for part in path.relative_to(folder).parts))


def remove(folder: Path) -> None:
    """Delete a run folder, which may be a link to it."""
    shutil.rmtree(folder.resolve())
    if folder.is_symlink():
        folder.unlink()


@contextmanager
def replacing(file: Path, lasting: bool = False) -> Iterator[Path]:
    """A path to write to. It replaces the file at the end; if writing fails, the file stays as it was.

    What is no file, such as a pipe, is written to directly.

    Args:
        file: to replace.
        lasting: whether a power cut must leave the old file or the new one, whole; this takes some milliseconds.
    """
    if file.exists() and not file.is_file():
        yield file
        return
    scratch = file.with_name(f"{file.name}.{os.getpid()}{SCRATCH}")  # two processes may write it at once
    try:
        yield scratch
        if lasting:
            with scratch.open("rb") as written:
                os.fsync(written.fileno())
        scratch.replace(file)
    except BaseException as error:
        scratch.unlink(missing_ok=True)
        if isinstance(error, OSError) and error.filename in (None, str(scratch)):  # a full disk names none
            error.filename = str(file)
        raise


def _digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()[:16]


COUNTED = ("finished", "diverged", "round", "seconds", "evaluation_seconds")
"""The entries of a status that a run which resumes continues."""

MADE_BY = ("code", "sources", "commit", "versions")
"""The entries of a status that say what computed a run; of one that resumes, its first rounds."""


def first_status(trial: "Spec") -> dict[str, Any]:
    """The status of a run before its first round: its trial, machine, versions and commit."""
    return {
        "name": trial.name,
        "digest": trial.digest,
        "rounds": trial.rounds,
        "settings": trial.complete(),
        "machine": f"{platform.system()} {platform.machine()}, {os.cpu_count()} cores",
        "python": platform.python_version(),
        "versions": versions(),
        "commit": commit(),
        "code": code_of(trial),
        "sources": {name: source.digest[:10] for name, source in trial.copies.items()},
        "state": "running",
        "finished": 0,
        "diverged": None,
        "round": 0,
        "seconds": 0.0,
        "evaluation_seconds": 0.0,
        "updated": time.time(),
        "device": "unknown",
        "threads": 0,
    }


@cache
def versions() -> dict[str, str]:
    """The versions of this suite and of what computes."""
    return {"rollcall": version("rollcall-fl")} | {name: version(name) for name in ("torch", "lightning", "numpy")}


def code_of(trial: "Spec") -> dict[str, str]:
    """The modules of the suite that compute a trial, each with a digest: its choices, and all engines and the loop."""
    packages = {
        f"benchmark.{name}": package_code(Path(__file__).parents[1] / name) for name in ("engines", "federation")
    }
    return trial.code | packages


@cache  # what this process imported; git takes as long as a small analysis
def commit() -> str | None:
    """The commit of this source code, with + if there are uncommitted changes; None outside a git checkout of it."""
    here = Path(__file__).parent

    def git(*arguments: str) -> str:
        return subprocess.run(["git", *arguments], cwd=here, capture_output=True, text=True, check=True).stdout.strip()

    try:
        git("ls-files", "--error-unmatch", Path(__file__).name)  # an environment may lie in a checkout of other code
        return git("rev-parse", "--short=12", "HEAD") + ("+" if git("status", "--porcelain", "-uno") else "")
    except (OSError, subprocess.CalledProcessError):
        return None
