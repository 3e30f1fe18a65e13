"""Image data sets as whole tensors: uint8 pixels [n, channels, height, width] and labels [n].

`SOURCES` describes each data set. The functions load them once in each process, and download missing files.
"""

import os
from functools import cache
from pathlib import Path

import torch

from rollcall.tasks.datasets.cinic10 import Cinic10
from rollcall.tasks.datasets.fetch import fetch
from rollcall.tasks.datasets.source import Archive, Batches, Digits, Idx, Images, Mat, Source, Split

# Checksums of the unpacked files of MNIST; torchvision only has those of the archives.
MNIST_MD5 = {
    "train-images-idx3-ubyte": "6bbc9ace898e44ae57da46a324031adb",
    "train-labels-idx1-ubyte": "a25bea736e30d166cdddb491f175f624",
    "t10k-images-idx3-ubyte": "2646ac647ad5339dbf082846283269ea",
    "t10k-labels-idx1-ubyte": "27ae3e4e09519cfbb04c329615203637",
}

# Name, mean, standard deviation (the functions below say where they come from), bytes to download.
_DESCRIBED: tuple[Source, ...] = (
    Digits("digits", (0.3053,), (0.3762,), 0),
    Idx("mnist", (0.1307,), (0.3081,), 11_600_000, "MNIST", MNIST_MD5),
    Idx("fashion_mnist", (0.2860,), (0.3530,), 30_900_000, "FashionMNIST"),
    Mat("svhn", (0.4377, 0.4438, 0.4728), (0.1980, 0.2010, 0.1970), 246_000_000, "SVHN"),
    Batches("cifar10", (0.4914, 0.4822, 0.4465), (0.2023, 0.1994, 0.2010), 170_500_000, "CIFAR10"),
    Batches("cifar100", (0.5071, 0.4865, 0.4409), (0.2673, 0.2564, 0.2762), 169_000_000, "CIFAR100"),
    Cinic10("cinic10", (0.4789, 0.4723, 0.4305), (0.2421, 0.2383, 0.2587), 687_500_000),
)
SOURCES = {source.name: source for source in _DESCRIBED}


def source_of(task: str) -> Source | None:
    """The data set of the task with this name; None if the task generates its data."""
    return SOURCES.get({"cinic10_enlarged": "cinic10"}.get(task, task))


def root() -> Path:
    """The folder of the data sets, in torchvision's layout: ROLLCALL_DATA, or ./data."""
    return Path(os.environ.get("ROLLCALL_DATA", "data"))


def splits(source: Source) -> dict[str, Split]:
    """All splits of a data set, downloaded if missing.

    Raises:
        ValueError: missing and cannot be downloaded, or damaged.
    """
    fetch(source, root())
    try:
        return source.read(root())
    except Exception as error:  # parsers raise various errors on damaged bytes
        # Our own errors name the file. For torchvision's errors, checksums show which file is damaged.
        named = isinstance(error, ValueError)
        damaged = [] if named else [path for path, intact in source.verify(root()).items() if intact is False]
        what = ", ".join(damaged) or " ".join(str(error).split())
        raise ValueError(
            f"name: {source.name} in {root().resolve()} cannot be read: {what}; remove what is damaged, then: "
            f"rollcall data fetch {source.name}"
        ) from error


def load(source: Source, train: tuple[str, ...] = ("train",)) -> Images:
    """A data set with its test split and these splits for training; errors of `splits`."""
    read = splits(source)
    if len(train) == 1:  # without a copy
        return Images(read[train[0]], read["test"], source.mean, source.std)
    pixels, labels = (torch.cat(columns) for columns in zip(*(read[split] for split in train), strict=True))
    return Images((pixels, labels), read["test"], source.mean, source.std)


@cache
def digits() -> Images:
    """scikit-learn's 1,797 handwritten 8x8 digits, shipped with the library.

    A fixed fifth is the test split. Mean and standard deviation are those of all pixels.
    """
    return load(SOURCES["digits"])


@cache
def mnist() -> Images:
    """MNIST: 60,000 and 10,000 handwritten 28x28 digits.

    Mean and standard deviation are those of all training pixels.
    """
    return load(SOURCES["mnist"])


@cache
def fashion_mnist() -> Images:
    """Fashion-MNIST (Xiao et al. 2017): 60,000 and 10,000 grey 28x28 images of ten kinds of clothing.

    Mean and standard deviation are the commonly used ones of all training pixels; not recomputed here.
    """
    return load(SOURCES["fashion_mnist"])


@cache
def svhn() -> Images:
    """SVHN (Netzer et al. 2011): 73,257 and 26,032 colour 32x32 crops of house numbers, without the `extra` split.

    The label is the digit. Normalised as in the FedPBC code.
    """
    return load(SOURCES["svhn"])


@cache
def cifar10() -> Images:
    """CIFAR-10: 50,000 and 10,000 colour images of 32x32 in 10 classes.

    Normalised as in the FedPBC code. The means are those of all training pixels. The standard deviations, which are
    often copied, are averages over single images; those of all training pixels are 0.2470, 0.2435, 0.2616.
    """
    return load(SOURCES["cifar10"])


@cache
def cifar100() -> Images:
    """CIFAR-100: 50,000 and 10,000 colour images of 32x32 in 100 classes, the fine labels.

    Mean and standard deviation are the commonly used ones of all training pixels; not recomputed here.
    """
    return load(SOURCES["cifar100"])


@cache
def cinic10() -> Images:
    """CINIC-10 (Darlow et al. 2018): 90,000 and 90,000 colour images of 32x32 in 10 classes.

    Splits and normalisation as in the FedPBC code; the authors of the set give these constants
    (github.com/BayesWatch/cinic-10).
    """
    return load(SOURCES["cinic10"])


@cache
def cinic10_enlarged() -> Images:
    """CINIC-10 with its validation images added to the training images: 180,000 and 90,000."""
    return load(SOURCES["cinic10"], ("train", "valid"))


__all__ = [
    "SOURCES",
    "Archive",
    "Images",
    "Source",
    "Split",
    "cifar10",
    "cifar100",
    "cinic10",
    "cinic10_enlarged",
    "digits",
    "fashion_mnist",
    "load",
    "mnist",
    "root",
    "source_of",
    "splits",
    "svhn",
]
