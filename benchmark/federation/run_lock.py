"""Whether a process runs the trial of a run folder. The lock belongs to the process and ends with it."""

from pathlib import Path

from filelock import FileLock, Timeout

from benchmark.config.errors import SettingError


class InUse(SettingError):
    """Another process runs this trial."""


def is_running(folder: Path) -> bool:
    """Whether a process holds the lock of a run folder. Where the lock cannot be tried, the answer is no."""
    file = folder / "lock"
    if not file.exists():
        return False
    try:
        with FileLock(file, timeout=0):
            return False
    except Timeout:
        return True
    except OSError:  # a store that can only be read
        return False
