"""Sets that torchvision parses, from small files in the genuine formats and from real ones."""

import shutil
from pathlib import Path

import numpy as np
import pytest
import torch
from published import damage
from real_data import needs_cifar10, needs_mnist

from rollcall.tasks.datasets import SOURCES, load, root

SMALL = {
    "fashion_mnist": ("FashionMNIST/raw/train-labels-idx1-ubyte", "FashionMNIST/raw/train-images-idx3-ubyte"),
    "svhn": ("test_32x32.mat", "train_32x32.mat"),
    "cifar100": ("cifar-100-python/test", "cifar-100-python/meta"),
}


@pytest.mark.parametrize("name", SMALL)
def test_a_set_is_what_was_published(name, publisher):
    published = getattr(publisher, name)()
    images = load(SOURCES[name])
    for split, (pixels, labels) in published.items():
        ours, our_labels = getattr(images, split)
        assert ours.dtype == torch.uint8
        assert our_labels.dtype == torch.int64
        assert np.array_equal(ours.numpy(), pixels)
        assert our_labels.tolist() == labels.tolist()
    assert len(SOURCES[name].mean) == len(SOURCES[name].std) == images.train[0].shape[1]
    assert set(SOURCES[name].verify(root()).values()) == {True}


@pytest.mark.parametrize(("name", "file"), [(name, file) for name, files in SMALL.items() for file in files])
def test_a_damaged_file_is_named(name, file, publisher):
    getattr(publisher, name)()
    load(SOURCES[name])
    damage(root() / file)
    damaged = [path for path, intact in SOURCES[name].verify(root()).items() if not intact]
    assert damaged == [file]
    with pytest.raises(
        ValueError, match=rf"^name: {name} in .*data cannot be read: {file}; remove .* rollcall data fetch {name}$"
    ):
        load(SOURCES[name])
    # As it says.
    (root() / file).unlink()
    load(SOURCES[name])


def test_a_file_that_nothing_vouches_for_is_said_to_be_so(publisher):
    publisher.fashion_mnist()
    source = SOURCES["fashion_mnist"]
    load(source)
    for archive in root().rglob("*.gz"):
        archive.unlink()
    assert set(source.verify(root()).values()) == {None}
    load(source)
    file = root() / "FashionMNIST" / "raw" / "train-images-idx3-ubyte"
    file.write_bytes(file.read_bytes()[:-1])
    with pytest.raises(ValueError, match=r"fashion_mnist in .* cannot be read: .* is invalid for input of size"):
        load(source)


@pytest.mark.parametrize(
    ("name", "host"),
    [
        ("fashion_mnist", "fashion-mnist"),
        ("svhn", "ufldl.stanford.edu"),
        ("cifar100", "www.cs.toronto.edu"),
        ("mnist", "mnist"),
    ],
)
def test_addresses_are_those_of_torchvision(name, host):
    for archive in SOURCES[name].archives():
        assert len(archive.md5) == 32
        assert all(host in url and url.endswith(Path(archive.path).name) for url in archive.urls)


@needs_mnist
@needs_cifar10
@pytest.mark.parametrize(
    ("name", "folder", "file"),
    [
        ("mnist", "MNIST", "MNIST/raw/t10k-images-idx3-ubyte"),
        ("cifar10", "cifar-10-batches-py", "cifar-10-batches-py/data_batch_3"),
    ],
)
def test_real_files_have_their_checksums_and_damaged_ones_are_named(name, folder, file, tmp_path, monkeypatch):
    assert set(SOURCES[name].verify(root()).values()) == {True}
    shutil.copytree(root() / folder, tmp_path / folder, copy_function=lambda there, here: Path(here).symlink_to(there))
    (tmp_path / file).unlink()
    shutil.copy(root().resolve() / file, tmp_path / file)
    monkeypatch.setenv("ROLLCALL_DATA", str(tmp_path))
    load(SOURCES[name])
    damage(tmp_path / file)
    assert [path for path, intact in SOURCES[name].verify(tmp_path).items() if not intact] == [file]
    with pytest.raises(ValueError, match=f"^name: {name} in .* cannot be read: {file}; remove"):
        load(SOURCES[name])


@needs_mnist
def test_mnist_is_normalised_by_its_own_moments():
    pixels = load(SOURCES["mnist"]).train[0].double() / 255
    assert SOURCES["mnist"].mean == (round(pixels.mean().item(), 4),)
    assert SOURCES["mnist"].std == (round(pixels.std().item(), 4),)


@pytest.mark.parametrize(
    ("name", "mean", "std"),
    [
        # As printed in the released code of the FedPBC paper.
        ("cifar10", (0.4914, 0.4822, 0.4465), (0.2023, 0.1994, 0.2010)),
        ("svhn", (0.4377, 0.4438, 0.4728), (0.1980, 0.2010, 0.1970)),
        ("cinic10", (0.4789, 0.4723, 0.4305), (0.2421, 0.2383, 0.2587)),
    ],
)
def test_the_papers_sets_are_normalised_as_in_the_paper(name, mean, std):
    assert (SOURCES[name].mean, SOURCES[name].std) == (mean, std)
