"""Descriptions of data sets: files, checksums, addresses and parsers.

scikit-learn ships the digits, torchvision parses MNIST, Fashion-MNIST, SVHN, CIFAR-10 and CIFAR-100.
"""

import gzip
import hashlib
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import torch
from rich.console import Console
from rich.progress import BarColumn, Progress, ProgressColumn, TextColumn, TimeRemainingColumn
from torch import Tensor

Split: TypeAlias = tuple[Tensor, Tensor]
"""uint8 pixels [n, channels, height, width] and int64 labels [n]."""


@dataclass(frozen=True)
class Images:
    """A data set in memory.

    Attributes:
        train, test: pixels and labels.
        mean, std: of each channel, for pixels scaled to [0, 1]; used for normalisation.
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
        mean, std: see `Images`.
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
        """Rename the unpacked files in a scratch folder to their names beside the archive."""

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
        return _md5(content)


def _md5(content: Any) -> str:
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


@dataclass(frozen=True)
class Digits(Source):
    """scikit-learn's digits, with a fixed fifth as the test split."""

    def files(self, root: Path) -> dict[str, str | None]:
        return {}

    def archives(self) -> tuple[Archive, ...]:
        return ()

    def read(self, root: Path) -> dict[str, Split]:
        from sklearn.datasets import load_digits
        from sklearn.model_selection import train_test_split

        bunch = load_digits()
        # The pixels are 0..16. As bytes they have the same scale as those of the other data sets.
        pixels = torch.from_numpy((bunch.images * (255 / 16)).round().astype(np.uint8)[:, None])
        labels = torch.from_numpy(bunch.target.astype(np.int64))
        train, test = train_test_split(np.arange(len(labels)), test_size=0.2, stratify=bunch.target, random_state=0)
        return {"train": (pixels[train], labels[train]), "test": (pixels[test], labels[test])}


@dataclass(frozen=True)
class TorchvisionSource(Source):
    """A data set that torchvision reads.

    Attributes:
        kind: name of torchvision's class.
    """

    kind: str

    @property
    def dataset_class(self) -> Any:
        """torchvision's class; imported only when needed, because that takes a second."""
        from torchvision import datasets

        return getattr(datasets, self.kind)


@dataclass(frozen=True)
class Idx(TorchvisionSource):
    """MNIST and data sets of the same form: four gzipped files of images and labels.

    Attributes:
        unpacked_md5: checksums of the unpacked files by name, if known; torchvision only has those of the archives.
    """

    unpacked_md5: Mapping[str, str] = field(default_factory=dict)

    def archives(self) -> tuple[Archive, ...]:
        folder = f"{self.kind}/raw"
        return tuple(
            Archive(
                f"{folder}/{name}",
                tuple(f"{mirror}{name}" for mirror in self.dataset_class.mirrors),
                md5,
                (f"{folder}/{name.removesuffix('.gz')}",),
            )
            for name, md5 in self.dataset_class.resources
        )

    def files(self, root: Path) -> dict[str, str | None]:
        return {archive.gives[0]: self.unpacked_md5.get(Path(archive.gives[0]).name) for archive in self.archives()}

    def verify(self, root: Path) -> dict[str, bool | None]:
        """As `Source.verify`. A file without a checksum is compared with its archive, if that exists."""
        intact = super().verify(root)
        for archive in self.archives():
            if intact.get(archive.path) and archive.gives[0] in intact and intact[archive.gives[0]] is None:
                with gzip.open(root / archive.path) as content:
                    genuine = _md5(content)
                intact[archive.gives[0]] = digest(root / archive.gives[0]) == genuine
        return intact

    def read(self, root: Path) -> dict[str, Split]:
        if False in self.verify(root).values():
            raise RuntimeError("corrupted")  # torchvision does not check unpacked files
        sets = {"train": self.dataset_class(root, train=True), "test": self.dataset_class(root, train=False)}
        return {split: (files.data[:, None], files.targets) for split, files in sets.items()}


@dataclass(frozen=True)
class Batches(TorchvisionSource):
    """CIFAR-10 and CIFAR-100: pickled batches in a folder."""

    def archives(self) -> tuple[Archive, ...]:
        known = self.dataset_class
        return (Archive(known.filename, (known.url,), known.tgz_md5, tuple(self.files(Path()))),)

    def files(self, root: Path) -> dict[str, str | None]:
        known = self.dataset_class
        meta = (known.meta["filename"], known.meta["md5"])
        return {f"{known.base_folder}/{name}": md5 for name, md5 in [*known.train_list, *known.test_list, meta]}

    def read(self, root: Path) -> dict[str, Split]:
        sets = {"train": self.dataset_class(root, train=True), "test": self.dataset_class(root, train=False)}
        return {
            split: (torch.from_numpy(files.data).permute(0, 3, 1, 2).contiguous(), torch.tensor(files.targets))
            for split, files in sets.items()
        }


@dataclass(frozen=True)
class Mat(TorchvisionSource):
    """SVHN: a MATLAB file for each split, in which label 10 is the digit 0; torchvision changes it to 0."""

    def archives(self) -> tuple[Archive, ...]:
        lists = (self.dataset_class.split_list[split] for split in ("train", "test"))
        return tuple(Archive(name, (url,), md5, (name,)) for url, name, md5 in lists)

    def files(self, root: Path) -> dict[str, str | None]:
        return {archive.path: archive.md5 for archive in self.archives()}

    def read(self, root: Path) -> dict[str, Split]:
        sets = {split: self.dataset_class(root, split=split) for split in ("train", "test")}
        return {
            split: (torch.from_numpy(files.data).contiguous(), torch.from_numpy(files.labels))
            for split, files in sets.items()
        }
