"""Data sets that libraries read: scikit-learn ships the digits, torchvision parses the files of the others."""

import gzip
import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import torch

from rollcall.tasks.datasets.source import Archive, Source, Split, digest


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
                    genuine = hashlib.file_digest(content, lambda: hashlib.md5(usedforsecurity=False)).hexdigest()
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
        return (
            Archive(
                self.dataset_class.filename, (self.dataset_class.url,), self.dataset_class.tgz_md5, tuple(self._files())
            ),
        )

    def files(self, root: Path) -> dict[str, str | None]:
        return {**self._files()}

    def read(self, root: Path) -> dict[str, Split]:
        sets = {"train": self.dataset_class(root, train=True), "test": self.dataset_class(root, train=False)}
        return {
            split: (torch.from_numpy(files.data).permute(0, 3, 1, 2).contiguous(), torch.tensor(files.targets))
            for split, files in sets.items()
        }

    def _files(self) -> dict[str, str]:
        known = self.dataset_class
        meta = (known.meta["filename"], known.meta["md5"])
        return {f"{known.base_folder}/{name}": md5 for name, md5 in [*known.train_list, *known.test_list, meta]}


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
