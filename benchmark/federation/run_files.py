"""Reading and writing the files of a run folder so that a crash, a full disk or a damaged file loses no result."""

import errno
import json
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import count
from pathlib import Path
from typing import Any

from benchmark.config.errors import SettingError
from benchmark.config.text import command

FULL = (errno.ENOSPC, errno.EDQUOT)
"""The error numbers of a full disk and of an exhausted quota."""


ASIDE = ".damaged"
"""Part of the name of what was set aside."""


class Damaged(SettingError):
    """A file of a run folder cannot be read. The message names the file and the next step.

    Args:
        file: the damaged file.
        reason: what is wrong with it.
    """

    def __init__(self, file: Path, reason: str) -> None:
        super().__init__(
            f"{file} is damaged ({reason}). Set it aside: {command('doctor', file.parent, '--fix')}; then rerun "
            "the command"
        )
        self.file = file
        self.reason = reason


@contextmanager
def replacing(file: Path) -> Iterator[Path]:
    """A path to write to. It replaces the file at the end; if writing fails, the file stays as it was."""
    scratch = file.with_name(f"{file.name}.new")
    try:
        yield scratch
        scratch.replace(file)
    except BaseException:
        scratch.unlink(missing_ok=True)
        raise


def append_line(file: Path, line: str) -> None:
    """Add a line to a file. If writing fails, the file keeps its former length."""
    size = file.stat().st_size if file.exists() else 0
    try:
        with file.open("a") as stream:
            stream.write(f"{line}\n")
    except OSError:
        if file.exists():
            with file.open("r+b") as stream:
                stream.truncate(size)
        raise


def read_status(file: Path) -> dict[str, Any]:
    """The content of status.json; empty if there is no such file.

    Raises:
        Damaged: the file has no JSON object.
    """
    try:
        status = json.loads(file.read_text())
    except FileNotFoundError:
        return {}
    except ValueError:
        raise Damaged(file, "not valid JSON") from None
    if not isinstance(status, dict):
        raise Damaged(file, "not a JSON object")
    return status


def read_rows(file: Path) -> list[dict[str, float]]:
    """The rows of metrics.jsonl; none if there is no such file. An unfinished last line is left out.

    Raises:
        Damaged: another line has no JSON object with a round.
    """
    rows: list[dict[str, float]] = []
    lines = file.read_bytes().splitlines(keepends=True) if file.exists() else []
    for number, line in enumerate(lines, start=1):
        try:
            row = json.loads(line)
            row["round"]
        except (ValueError, TypeError, KeyError):
            if number == len(lines) and not line.endswith(b"\n"):  # a running process writes it, or one died
                break
            raise Damaged(file, f"line {number} is not an evaluation") from None
        rows.append(row)
    return rows


def write_rows(file: Path, rows: list[dict[str, float]]) -> None:
    """Replace metrics.jsonl, unless it has these rows already."""
    text = "".join(f"{json.dumps(row)}\n" for row in rows)
    if (file.read_bytes() if file.exists() else b"") != text.encode():
        with replacing(file) as scratch:
            scratch.write_text(text)


def fault_of_archive(file: Path) -> str:
    """What is wrong with a checkpoint or with model.npz, which are zip files; empty if nothing is."""
    try:
        with zipfile.ZipFile(file) as archive:
            member = archive.testzip()
    except (zipfile.BadZipFile, OSError, EOFError, ValueError):
        return "cut off or not readable"
    return f"wrong checksum of {member}" if member else ""


def set_aside(path: Path) -> Path:
    """Rename a file or folder to NAME.damaged, with a number if there is one already.

    Returns:
        the new path.
    """
    for number in count():
        aside = path.with_name(f"{path.name}{ASIDE}{number or ''}")
        if not aside.exists():
            return path.rename(aside)
    raise AssertionError


def run_folders(folder: Path, *, below: bool = True, begun: bool = True) -> list[Path]:
    """The run folders in a folder, sorted. Those that were set aside are left out.

    Args:
        folder: a store, or the folder of an experiment; there is none in a folder that does not exist.
        below: also those in folders of this folder, and this folder itself.
        begun: only those with a status; otherwise also those that have only a lock.
    """
    names = ("status.json",) if begun else ("status.json", "lock")
    files = [file for name in names for file in folder.glob(f"**/{name}" if below else f"*/{name}")]
    return sorted({file.parent for file in files if not any(ASIDE in part for part in file.relative_to(folder).parts)})


def is_full_disk(error: BaseException | None) -> bool:
    """Whether an error, or one of its causes, says that the disk is full."""
    while error is not None:
        if isinstance(error, OSError) and error.errno in FULL:
            return True
        error = error.__cause__ or error.__context__
    return False
