"""Which experiment file the runs of a folder belong to, so that two files of one name do not share a folder."""

import hashlib
import json
from pathlib import Path

from benchmark.config.errors import SettingError

NAME = "experiment.json"


def claim(folder: Path, file: Path) -> None:
    """Record the experiment file in the folder of its runs.

    A file that was edited, moved or copied keeps the folder.

    Args:
        folder: of the run folders of the experiment.
        file: that is run now.

    Raises:
        SettingError: another file with other content has its runs there.
    """
    digest = hashlib.sha256(file.read_bytes()).hexdigest()
    record = folder / NAME
    try:
        earlier = json.loads(record.read_text())
        path, known = Path(earlier["file"]), earlier["sha256"]
    except (FileNotFoundError, ValueError, KeyError):
        path, known = file, digest
    if path.resolve() != file.resolve() and known != digest and path.is_file():
        raise SettingError(
            f"{file}: {folder} has the runs of {path}. Write another `name:` into one of the files, or use another "
            "--store"
        )
    folder.mkdir(parents=True, exist_ok=True)
    text = json.dumps({"file": str(file.resolve()), "sha256": digest}, indent=1)
    if not record.exists() or record.read_text() != text:
        record.write_text(text)


def claimed(folder: Path) -> str:
    """The experiment file that the runs in a folder belong to; empty if it is not known."""
    try:
        return str(json.loads((folder / NAME).read_text())["file"])
    except (OSError, ValueError, KeyError, TypeError):
        return ""
