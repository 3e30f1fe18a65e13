"""Description of a data set: its files and checksums, where they come from and how they are read."""

import hashlib
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

from rich.console import Console
from rich.progress import BarColumn, Progress, ProgressColumn, TextColumn, TimeRemainingColumn
from torch import Tensor

Split: TypeAlias = tuple[Tensor, Tensor]
"""uint8 pixels [n, channels, height, width] and int64 labels [n]."""


@dataclass(frozen=True)
class Images:
    """A data set in memory.

    Attributes:
        train: pixels and labels of the training split.
        test: pixels and labels of the test split.
        mean: of each channel, for pixels scaled to [0, 1]; used for normalisation.
        std: of each channel, for pixels scaled to [0, 1]; used for normalisation.
    """

    train: Split
    test: Split
    mean: tuple[float, ...]
    std: tuple[float, ...]


@dataclass(frozen=True)
class Archive:
    """A file to download. It is kept after unpacking, so that its content can be checked and restored.

    Attributes:
        path: its path below the data root.
        urls: alternative addresses.
        md5: its checksum.
        gives: paths below the data root that it contains; its own path if there is nothing to unpack.
    """

    path: str
    urls: tuple[str, ...]
    md5: str
    gives: tuple[str, ...]


@dataclass(frozen=True)
class Source(ABC):
    """Base class of descriptions of data sets, for loading, `rollcall data status`, `fetch` and `verify`.

    Attributes:
        name: name of the data set and of its task.
        mean: see `Images`.
        std: see `Images`.
        download_bytes: approximate size of the download.
    """

    name: str
    mean: tuple[float, ...]
    std: tuple[float, ...]
    download_bytes: int

    @abstractmethod
    def files(self, root: Path) -> Mapping[str, str | None]:
        """Required files below the data root, with checksums; None if a checksum is unknown."""

    @abstractmethod
    def archives(self) -> tuple[Archive, ...]:
        """The archives that contain these files."""

    @abstractmethod
    def read(self, root: Path) -> dict[str, Split]:
        """The splits. All files must exist.

        Raises:
            RuntimeError, ValueError, OSError: a file is damaged.
        """

    def arrange(self, scratch: Path) -> None:  # noqa: B027, most archives do not need it
        """Rename what was unpacked in a scratch folder as it should be next to the archive."""

    def missing(self, root: Path) -> list[str]:
        """The required files that do not exist."""
        return [path for path in self.files(root) if not (root / path).is_file()]

    def verify(self, root: Path) -> dict[str, bool | None]:
        """Whether each existing file and archive is undamaged; None if no checksum is known."""
        known = {**self.files(root), **{archive.path: archive.md5 for archive in self.archives()}}
        existing = {path: known[path] for path in known if (root / path).is_file()}
        return {path: None if md5 is None else digest(root / path) == md5 for path, md5 in existing.items()}

    def places(self) -> list[str]:
        """All files and folders below the data root that the data set uses."""
        return [path for archive in self.archives() for path in {archive.path, f"{archive.path}.part", *archive.gives}]


def digest(file: Path) -> str:
    """The md5 of a file."""
    with file.open("rb") as content:
        return hashlib.file_digest(content, lambda: hashlib.md5(usedforsecurity=False)).hexdigest()


def bars(*columns: ProgressColumn) -> Progress:
    """Progress bars with these columns on the error stream, if that is a terminal; removed when they end."""
    console = Console(stderr=True)
    return Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        *columns,
        TimeRemainingColumn(),
        console=console,
        transient=True,
        disable=not console.is_terminal,
    )
