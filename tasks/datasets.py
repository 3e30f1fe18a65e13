"""Image data sets as whole tensors: uint8 pixels [n, channels, height, width] and labels [n].

torchvision downloads and parses most of them; scikit-learn ships the digits; CINIC-10 is decoded here. `SOURCES`
describes each data set; `load` reads one, and downloads missing files.
"""

import os
import sys
import warnings
from contextlib import redirect_stdout, suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import torch
from filelock import FileLock
from PIL import Image
from rich.console import Console
from rich.progress import track
from torch import Tensor

from rollcall.tasks.base import one_line

Split: TypeAlias = tuple[Tensor, Tensor]
"""uint8 pixels [n, channels, height, width] and int64 labels [n]."""

# Checksums of the unpacked files of MNIST; torchvision only has those of the archives.
MNIST_MD5 = {
    "MNIST/raw/train-images-idx3-ubyte": "6bbc9ace898e44ae57da46a324031adb",
    "MNIST/raw/train-labels-idx1-ubyte": "a25bea736e30d166cdddb491f175f624",
    "MNIST/raw/t10k-images-idx3-ubyte": "2646ac647ad5339dbf082846283269ea",
    "MNIST/raw/t10k-labels-idx1-ubyte": "27ae3e4e09519cfbb04c329615203637",
}


@dataclass(frozen=True)
class Source:
    """A data set that torchvision downloads and parses, or a subclass.

    Attributes:
        name: name of the data set and of its task.
        mean, std: of each channel, for pixels scaled to [0, 1]; used for normalisation.
        download_bytes: approximate size of the download.
        kind: name of torchvision's class; empty for a subclass.
        about: what it is, in a paragraph or two.
    """

    name: str
    mean: tuple[float, ...]
    std: tuple[float, ...]
    download_bytes: int
    kind: str = ""
    about: str = ""

    @property
    def known(self) -> Any:
        """torchvision's class; imported only when needed, because that takes a second."""
        from torchvision import datasets

        return getattr(datasets, self.kind)

    @property
    def urls(self) -> list[str]:
        """The addresses of the archives."""
        if not self.kind:
            return []
        known = self.known
        if hasattr(known, "resources"):  # MNIST and sets of the same form
            return [f"{known.mirrors[0]}{name}" for name, _ in known.resources]
        if hasattr(known, "split_list"):  # SVHN
            return [known.split_list[split][0] for split in ("train", "test")]
        return [known.url]

    @property
    def files(self) -> dict[str, str | None]:
        """The required files below the data root, with their md5; None if it is unknown."""
        if not self.kind:
            return {}
        known = self.known
        if hasattr(known, "resources"):
            paths = [f"{self.kind}/raw/{name.removesuffix('.gz')}" for name, _ in known.resources]
            return {path: MNIST_MD5.get(path) for path in paths}
        if hasattr(known, "split_list"):
            return {known.split_list[split][1]: known.split_list[split][2] for split in ("train", "test")}
        batches = [*known.train_list, *known.test_list, (known.meta["filename"], known.meta["md5"])]
        return {f"{known.base_folder}/{name}": md5 for name, md5 in batches}

    def missing(self, root: Path) -> list[str]:
        """The required files that do not exist."""
        return [path for path in self.files if not (root / path).exists()]

    def verify(self, root: Path) -> dict[str, bool | None]:
        """Whether each existing file has its md5; None if that is unknown."""
        existing = {path: md5 for path, md5 in self.files.items() if (root / path).exists()}
        from torchvision.datasets.utils import check_integrity

        return {path: None if md5 is None else check_integrity(root / path, md5) for path, md5 in existing.items()}

    def read(self, root: Path, download: bool = False) -> dict[str, Split]:
        """The splits. A damaged file raises an error of its parser."""
        known = self.known
        if hasattr(known, "resources") and False in self.verify(root).values():
            raise RuntimeError("corrupted")  # torchvision checks the unpacked files of the other sets only
        splits = {}
        for split in ("train", "test"):
            part = {"split": split} if hasattr(known, "split_list") else {"train": split == "train"}
            data = known(root, download=download, **part)
            pixels = torch.as_tensor(data.data)
            if pixels.ndim == 3:
                pixels = pixels[:, None]
            elif pixels.shape[-1] == 3:
                pixels = pixels.permute(0, 3, 1, 2)
            labels = data.labels if hasattr(data, "labels") else data.targets
            splits[split] = pixels.contiguous(), torch.as_tensor(labels)
        return splits


@dataclass(frozen=True)
class Digits(Source):
    """scikit-learn's digits, with a fixed fifth as the test split."""

    def read(self, root: Path, download: bool = False) -> dict[str, Split]:
        from sklearn.datasets import load_digits
        from sklearn.model_selection import train_test_split

        bunch = load_digits()
        # The pixels are 0..16. As bytes they have the same scale as those of the other data sets.
        pixels = torch.from_numpy((bunch.images * (255 / 16)).round().astype(np.uint8)[:, None])
        labels = torch.from_numpy(bunch.target.astype(np.int64))
        train, test = train_test_split(np.arange(len(labels)), test_size=0.2, stratify=bunch.target, random_state=0)
        return {"train": (pixels[train], labels[train]), "test": (pixels[test], labels[test])}


@dataclass(frozen=True)
class Cinic10(Source):
    """CINIC-10 (Darlow et al., arXiv:1810.03505): thirty folders of PNGs, decoded once into a file of tensors.

    Attributes:
        url, md5: of the archive. Its authors publish no stronger digest, so the check finds damage, not forgery; the
            address is read with TLS.
        per_class: images in each folder.
    """

    url: str = "https://datashare.ed.ac.uk/bitstream/handle/10283/3192/CINIC-10.tar.gz"
    md5: str = "6ee4d0c996905fe93221de577967a372"
    per_class: int = 9000
    classes = ("airplane", "automobile", "bird", "cat", "deer", "dog", "frog", "horse", "ship", "truck")

    @property
    def urls(self) -> list[str]:
        return [self.url]

    @property
    def files(self) -> dict[str, str | None]:
        """The thirty folders."""
        return dict.fromkeys(f"CINIC-10/{split}/{c}" for split in ("train", "valid", "test") for c in self.classes)

    def missing(self, root: Path) -> list[str]:
        """The folders that lack images, for example because unpacking was interrupted."""
        return [path for path in self.files if len(list((root / path).glob("*.png"))) < self.per_class]

    def read(self, root: Path, download: bool = False) -> dict[str, Split]:
        """Images by class, and in a class by file name, as torchvision's ImageFolder sorts them.

        The file of decoded tensors is memory-mapped, so that processes share it. Decoding takes minutes. After a change
        of the image files, remove CINIC-10.pt.
        """
        from torchvision.datasets.utils import download_and_extract_archive

        if download:
            download_and_extract_archive(self.url, root, root / "CINIC-10", "CINIC-10.tar.gz", self.md5)
        decoded = root / "CINIC-10.pt"
        try:
            splits: dict[str, Split] = torch.load(decoded, weights_only=True, mmap=True)["splits"]
        except (OSError, RuntimeError):
            splits = {split: self._decode(root / "CINIC-10" / split) for split in ("train", "valid", "test")}
            scratch = decoded.with_name(f".{decoded.name}.{os.getpid()}")
            try:
                torch.save({"splits": splits}, scratch)
                scratch.replace(decoded)
            except (OSError, RuntimeError) as error:  # torch raises RuntimeError if the disk is full
                warnings.warn(f"{decoded} could not be written ({error})", stacklevel=2)
            finally:
                with suppress(OSError):  # a read-only disk refuses it also where there is no file
                    scratch.unlink(missing_ok=True)
        return splits

    def _decode(self, folder: Path) -> Split:
        files = [file for name in self.classes for file in sorted((folder / name).glob("*.png"))]
        if len(files) != len(self.classes) * self.per_class:
            raise ValueError(f"{folder} holds {len(files):,} images; must be {self.per_class:,} of each class")
        pixels = np.empty((len(files), 3, 32, 32), np.uint8)
        console = Console(stderr=True)
        shown = track(files, f"decoding {folder}", console=console, transient=True, disable=not console.is_terminal)
        for row, file in enumerate(shown):
            try:
                with Image.open(file) as image:
                    pixels[row] = np.asarray(image.convert("RGB")).transpose(2, 0, 1)
            except (OSError, SyntaxError, ValueError) as error:  # Pillow's errors for a damaged file
                raise ValueError(f"{file} is damaged ({error})") from error
        return torch.from_numpy(pixels), torch.arange(len(self.classes)).repeat_interleave(self.per_class)


def root() -> Path:
    """The folder of the data sets, in torchvision's layout: ROLLCALL_DATA, or ./data."""
    return Path(os.environ.get("ROLLCALL_DATA", "data"))


def fetch(source: Source, root: Path) -> bool:
    """Download the missing files of a data set, and say whether any were. A second process waits for the first.

    Raises ValueError: the download failed.
    """
    if not source.missing(root):
        return False
    try:
        root.mkdir(parents=True, exist_ok=True)
        with FileLock(root / f".{source.name}.lock"), redirect_stdout(sys.stderr):
            if source.missing(root):
                source.read(root, download=True)
    except Exception as error:  # of the network, the disk, an archive, or torchvision
        first, *_, last = source.files
        raise ValueError(
            f"name: {source.name} is not in {root.resolve()} and could not be downloaded ({one_line(error)}); set "
            f"ROLLCALL_DATA to a folder that holds {first} ... {last}"
        ) from error
    return True


def splits(source: Source, root: Path) -> dict[str, Split]:
    """All splits of a data set, downloaded if missing.

    Raises ValueError: missing and cannot be downloaded, or damaged.
    """
    fetch(source, root)
    try:
        return source.read(root)
    except Exception as error:  # parsers raise various errors on damaged bytes
        damaged = [path for path, intact in source.verify(root).items() if intact is False]
        raise ValueError(
            f"name: {source.name} in {root.resolve()} cannot be read: {', '.join(damaged) or one_line(error)}; "
            f"remove the damaged files, then: rollcall data fetch {source.name}"
        ) from error


load = cache(splits)
"""The same, read once in each process."""


# fmt: off
SOURCES = {
    source.name: source
    for source in (
        Digits(
            "digits", (0.3053,), (0.3762,), 0,
            about="scikit-learn's 1,797 handwritten 8x8 digits, shipped with the library.\n\n"
            "A fixed fifth is the test split. The mean is that of all pixels; their standard deviation is 0.3760, not "
            "the 0.3762 that is used.",
        ),
        Source(
            "mnist", (0.1307,), (0.3081,), 11_600_000, "MNIST",
            about="MNIST: 60,000 and 10,000 handwritten 28x28 digits.\n\n"
            "Mean and standard deviation are those of all training pixels.",
        ),
        Source(
            "fashion_mnist", (0.2860,), (0.3530,), 30_900_000, "FashionMNIST",
            about="Fashion-MNIST (Xiao et al. 2017): 60,000 and 10,000 grey 28x28 images of ten kinds of clothing.\n\n"
            "Mean and standard deviation are the commonly used ones of all training pixels; not recomputed here.",
        ),
        Source(
            "svhn", (0.4377, 0.4438, 0.4728), (0.1980, 0.2010, 0.1970), 246_000_000, "SVHN",
            about="SVHN (Netzer et al. 2011): 73,257 and 26,032 colour 32x32 crops of house numbers, without the "
            "`extra` split.\n\n"
            "The label is the digit. Normalised as in the FedPBC code.",
        ),
        Source(
            "cifar10", (0.4914, 0.4822, 0.4465), (0.2023, 0.1994, 0.2010), 170_500_000, "CIFAR10",
            about="CIFAR-10: 50,000 and 10,000 colour images of 32x32 in 10 classes.\n\n"
            "Normalised as in the FedPBC code. The means are those of all training pixels. The standard "
            "deviations, which are often copied, are averages over single images; those of all training pixels "
            "are 0.2470, 0.2435, 0.2616.",
        ),
        Source(
            "cifar100", (0.5071, 0.4865, 0.4409), (0.2673, 0.2564, 0.2762), 169_000_000, "CIFAR100",
            about="CIFAR-100: 50,000 and 10,000 colour images of 32x32 in 100 classes, the fine labels.\n\n"
            "Mean and standard deviation are the commonly used ones of all training pixels; not recomputed here.",
        ),
        Cinic10(
            "cinic10", (0.4789, 0.4723, 0.4305), (0.2421, 0.2383, 0.2587), 687_500_000,
            about="CINIC-10 (Darlow et al. 2018): 90,000 and 90,000 colour images of 32x32 in 10 classes.\n\n"
            "Splits and normalisation as in the FedPBC code; the authors of the set give these constants "
            "(github.com/BayesWatch/cinic-10).",
        ),
    )
}
# fmt: on
"""The data sets by name."""
