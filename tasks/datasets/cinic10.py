"""CINIC-10 (Darlow et al., arXiv:1810.03505): 270,000 PNGs in folders, decoded once into one file of tensors."""

import hashlib
import os
import warnings
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from PIL import Image
from rich.progress import MofNCompleteColumn

from rollcall.tasks.datasets.source import Archive, Source, Split, bars

SPLITS = ("train", "valid", "test")
CLASSES = ("airplane", "automobile", "bird", "cat", "deer", "dog", "frog", "horse", "ship", "truck")


@dataclass(frozen=True)
class Cinic10(Source):
    """CINIC-10 as published: an archive of `train`, `valid` and `test`, each with a folder for each class."""

    url: str = "https://datashare.ed.ac.uk/bitstream/handle/10283/3192/CINIC-10.tar.gz"
    md5: str = "6ee4d0c996905fe93221de577967a372"
    per_class: int = 9000  # images in each of the thirty folders
    folder = "CINIC-10"
    cache = "CINIC-10.pt"

    def archives(self) -> tuple[Archive, ...]:
        return (Archive(f"{self.folder}.tar.gz", (self.url,), self.md5, tuple(self._folders())),)

    def files(self, root: Path) -> dict[str, str | None]:
        """The thirty folders; only the archive has a checksum."""
        return dict.fromkeys(self._folders())

    def missing(self, root: Path) -> list[str]:
        return [folder for folder in self._folders() if len(_images(root / folder)) < self.per_class]

    def verify(self, root: Path) -> dict[str, bool | None]:
        """Check the archive and each folder: the number of images, and the checksum inside each PNG.

        Damaged images are listed too.
        """
        intact = super().verify(root)
        folders = [folder for folder in self._folders() if (root / folder).is_dir()]
        with bars(MofNCompleteColumn()) as bar:
            shown = bar.add_task("checking CINIC-10", total=len(folders) * self.per_class)
            for folder in folders:
                names = _images(root / folder)
                damaged = [f"{folder}/{name}" for name in names if not _intact(root / folder / name)]
                intact[folder] = len(names) == self.per_class and not damaged
                intact |= dict.fromkeys(damaged, False)
                bar.advance(shown, len(names))
        return intact

    def places(self) -> list[str]:
        return [*super().places(), self.cache]

    def arrange(self, scratch: Path) -> None:
        """Move the splits, which are at the top of the archive, into a folder."""
        if not (folder := scratch / self.folder).is_dir():
            things = list(scratch.iterdir())
            folder.mkdir()
            for thing in things:
                thing.rename(folder / thing.name)

    def read(self, root: Path) -> dict[str, Split]:
        """Images by class, and in a class by file name, as torchvision's ImageFolder sorts them.

        Read from the file of decoded tensors if it was made from the present image files. Otherwise the images are
        decoded, which takes minutes, and that file is written.
        """
        names = {folder: _images(root / folder) for folder in self._folders()}
        for folder, inside in names.items():
            if len(inside) != self.per_class:
                raise ValueError(f"{folder} holds {len(inside):,} images; must be {self.per_class:,}")
        origin = hashlib.sha256("\n".join(f"{folder}/{name}" for folder in names for name in names[folder]).encode())
        if (known := _load(root / self.cache, origin.hexdigest())) is not None:
            return known
        splits = self._decode(root, names)
        _save(root / self.cache, origin.hexdigest(), splits)
        return splits

    def _folders(self) -> list[str]:
        return [f"{self.folder}/{split}/{name}" for split in SPLITS for name in CLASSES]

    def _decode(self, root: Path, names: dict[str, list[str]]) -> dict[str, Split]:
        count = len(CLASSES) * self.per_class
        labels = torch.arange(len(CLASSES)).repeat_interleave(self.per_class)
        pixels = {split: np.empty((count, 3, 32, 32), np.uint8) for split in SPLITS}
        with bars(MofNCompleteColumn()) as bar:
            shown = bar.add_task("decoding CINIC-10, once", total=len(SPLITS) * count)
            for split, images in pixels.items():
                row = 0
                for name in CLASSES:
                    folder = f"{self.folder}/{split}/{name}"
                    for file in names[folder]:
                        images[row] = _decoded(root / folder / file)
                        row += 1
                    bar.advance(shown, self.per_class)
        return {split: (torch.from_numpy(images), labels) for split, images in pixels.items()}


def _images(folder: Path) -> list[str]:
    """The names of a folder's images, sorted."""
    return sorted(name for name in os.listdir(folder) if name.endswith(".png")) if folder.is_dir() else []


def _decoded(file: Path) -> np.ndarray:
    """Pixels [3, 32, 32]; ValueError for a damaged image or another size."""
    try:
        with Image.open(file) as image:
            pixels = np.asarray(image.convert("RGB"))
    except (OSError, SyntaxError, ValueError) as error:  # Pillow's errors for a damaged file
        raise ValueError(f"{file} is damaged ({error})") from error
    if pixels.shape != (32, 32, 3):
        raise ValueError(f"{file} is {pixels.shape[1]}x{pixels.shape[0]} pixels; must be 32x32")
    return pixels.transpose(2, 0, 1)


def _intact(file: Path) -> bool:
    """Whether the checksums inside a PNG match its content."""
    try:
        with Image.open(file) as image:
            image.verify()
    except (OSError, SyntaxError, ValueError):
        return False
    return True


def _load(cache: Path, origin: str) -> dict[str, Split] | None:
    """Decoded splits, memory-mapped so that processes share them; None if missing or made from other files."""
    try:
        kept = torch.load(cache, weights_only=True, mmap=True)
    except (OSError, RuntimeError):
        return None
    return kept["splits"] if kept["origin"] == origin else None


def _save(cache: Path, origin: str, splits: dict[str, Split]) -> None:
    """Write the decoded splits atomically."""
    part = cache.with_name(f".{cache.name}.{os.getpid()}")
    try:
        torch.save({"origin": origin, "splits": splits}, part)
        part.replace(cache)
    except (OSError, RuntimeError) as error:  # torch raises RuntimeError if the disk is full
        warnings.warn(f"{cache} could not be written ({error}); the images are decoded anew each time", stacklevel=2)
    finally:
        part.unlink(missing_ok=True)
