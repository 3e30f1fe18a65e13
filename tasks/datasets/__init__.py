"""The image data sets, each as whole tensors: uint8 pixels [n, channels, height, width] and labels [n].

`SOURCES` describes each; the functions load them, once a process, and fetch what is not there.
"""

import os
from functools import cache
from pathlib import Path

import torch

from tasks.datasets.cinic10 import Cinic10
from tasks.datasets.fetch import fetch
from tasks.datasets.shipped import Digits
from tasks.datasets.source import Archive, Images, Source, Split
from tasks.datasets.torchvision_sets import Batches, Idx, Mat

# What the archives of MNIST give; torchvision has the checksums of the archives only.
MNIST_MD5 = {
    "train-images-idx3-ubyte": "6bbc9ace898e44ae57da46a324031adb",
    "train-labels-idx1-ubyte": "a25bea736e30d166cdddb491f175f624",
    "t10k-images-idx3-ubyte": "2646ac647ad5339dbf082846283269ea",
    "t10k-labels-idx1-ubyte": "27ae3e4e09519cfbb04c329615203637",
}

# Name, mean, standard deviation (whose they are stands with the functions below), bytes to download.
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
    """The set that a task of this name learns from; None where it draws its own data."""
    return SOURCES.get({"cinic10_enlarged": "cinic10"}.get(task, task))


def root() -> Path:
    """Where data sets lie, in torchvision's layout: ROLLCALL_DATA, or ./data."""
    return Path(os.environ.get("ROLLCALL_DATA", "data"))


def splits(source: Source) -> dict[str, Split]:
    """All splits of a set, fetched if it is not there.

    Raises:
        ValueError: neither there nor to be had, or damaged.
    """
    fetch(source, root())
    try:
        return source.read(root())
    except Exception as error:  # a parser stumbles over damaged bytes in ways of its own
        # Our own complaint names the file; of torchvision's, the checksums tell which file it means.
        named = isinstance(error, ValueError)
        damaged = [] if named else [path for path, intact in source.verify(root()).items() if intact is False]
        what = ", ".join(damaged) or " ".join(str(error).split())
        raise ValueError(
            f"name: {source.name} in {root().resolve()} cannot be read: {what}; remove what is damaged, then: "
            f"rollcall data fetch {source.name}"
        ) from error


def load(source: Source) -> Images:
    """A set with a training and a test split. See `splits`."""
    read = splits(source)
    return Images(read["train"], read["test"], source.mean, source.std)


@cache
def digits() -> Images:
    """scikit-learn's 1,797 handwritten 8x8 digits, shipped with the library; a fixed fifth is the test split.

    Mean and standard deviation are those of all its pixels.
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

    Mean and standard deviation are those of all training pixels, as commonly given; not recomputed here.
    """
    return load(SOURCES["fashion_mnist"])


@cache
def svhn() -> Images:
    """SVHN (Netzer et al. 2011): 73,257 and 26,032 colour 32x32 crops of house numbers, without the `extra` split.

    The label is the digit. Normalised as the FedPBC code does.
    """
    return load(SOURCES["svhn"])


@cache
def cifar10() -> Images:
    """CIFAR-10: 50,000 and 10,000 colour images of 32x32; normalised as the FedPBC code does.

    The means are those of all training pixels; the deviations, much copied, are those of single images on average. Of
    all training pixels they are 0.2470, 0.2435, 0.2616.
    """
    return load(SOURCES["cifar10"])


@cache
def cifar100() -> Images:
    """CIFAR-100: 50,000 and 10,000 colour images of 32x32 in 100 classes, the fine labels.

    Mean and standard deviation by channel of all training pixels, as commonly given; not recomputed here.
    """
    return load(SOURCES["cifar100"])


@cache
def _cinic10_splits() -> dict[str, Split]:
    return splits(SOURCES["cinic10"])


@cache
def cinic10() -> Images:
    """CINIC-10 (Darlow et al. 2018): colour images of 32x32, 90,000 for training, 90,000 for testing, as in FedPBC.

    Normalised as the FedPBC code does; the authors of the set give these constants (github.com/BayesWatch/cinic-10).
    """
    read, source = _cinic10_splits(), SOURCES["cinic10"]
    return Images(read["train"], read["test"], source.mean, source.std)


@cache
def cinic10_enlarged() -> Images:
    """CINIC-10 with its validation images among the training ones: 180,000 and 90,000."""
    read, source = _cinic10_splits(), SOURCES["cinic10"]
    pixels, labels = (torch.cat(columns) for columns in zip(read["train"], read["valid"], strict=True))
    return Images((pixels, labels), read["test"], source.mean, source.std)


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
