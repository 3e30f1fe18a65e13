"""CINIC-10 from an archive with the published layout, and from a folder; the decoded tensors beside it."""

import shutil

import numpy as np
import pytest
import torch
from PIL import Image
from torchvision.datasets import ImageFolder

from rollcall.tasks import cinic10, cinic10_enlarged, datasets
from rollcall.tasks.datasets import SOURCES, root, splits
from rollcall.tasks.partitions import iid


@pytest.fixture(autouse=True)
def _read_anew():
    yield
    datasets.cinic10.cache_clear()
    datasets.cinic10_enlarged.cache_clear()


@pytest.mark.parametrize("top", ["", "CINIC-10/"])
def test_the_archive_becomes_three_splits(top, publisher):
    published = publisher.cinic10(top=top)
    found = splits(SOURCES["cinic10"])
    assert set(found) == {"train", "valid", "test"}
    for split, (pixels, labels) in published.items():
        assert found[split][0].dtype == torch.uint8
        assert found[split][1].dtype == torch.int64
        assert np.array_equal(found[split][0].numpy(), pixels)
        assert found[split][1].tolist() == labels.tolist()
    assert set(SOURCES["cinic10"].verify(root()).values()) == {True}


def test_the_order_is_that_of_torchvision(publisher):
    publisher.cinic10(per_class=12)
    found = splits(SOURCES["cinic10"])
    for split in ("train", "valid", "test"):
        theirs = ImageFolder(root() / "CINIC-10" / split)
        assert found[split][1].tolist() == theirs.targets
        assert np.array_equal(
            found[split][0].permute(0, 2, 3, 1).numpy(), np.stack([np.asarray(image) for image, _ in theirs])
        )


def test_a_folder_is_enough(publisher):
    published = publisher.cinic10()
    splits(SOURCES["cinic10"])
    for file in root().glob("CINIC-10.*"):
        file.unlink()
    publisher.server.asked.clear()
    assert np.array_equal(splits(SOURCES["cinic10"])["valid"][0].numpy(), published["valid"][0])
    assert publisher.server.asked == []


@pytest.mark.parametrize(("task_of", "chosen"), [(cinic10, ["train"]), (cinic10_enlarged, ["train", "valid"])])
def test_the_training_split_is_chosen(task_of, chosen, publisher):
    published = publisher.cinic10(per_class=3)
    task, data = task_of(0, clients=4, partition=iid)
    pixels, labels = data.splits["train"]
    assert np.array_equal(pixels.numpy(), np.concatenate([published[split][0] for split in chosen]))
    assert labels.tolist() == np.concatenate([published[split][1] for split in chosen]).tolist()
    assert np.array_equal(data.splits["test"][0].numpy(), published["test"][0])
    assert task(pixels[:5]).shape == (5, 10)
    assert sum(map(len, data.parts)) == 30 * len(chosen)


def test_a_grey_image_has_three_equal_channels(publisher):
    publisher.cinic10()
    splits(SOURCES["cinic10"])
    grey = np.arange(1024, dtype=np.uint8).reshape(32, 32)
    Image.fromarray(grey).save(root() / "CINIC-10" / "train" / "bird" / "cifar10-train-10.png")
    (root() / "CINIC-10.pt").unlink()
    assert np.array_equal(splits(SOURCES["cinic10"])["train"][0][4].numpy(), np.stack([grey] * 3))


def test_a_truncated_image_is_refused_and_named(publisher):
    publisher.cinic10()
    splits(SOURCES["cinic10"])
    (root() / "CINIC-10.pt").unlink()
    file = root() / "CINIC-10" / "test" / "ship" / "cifar10-train-10.png"
    file.write_bytes(file.read_bytes()[:-500])
    found = SOURCES["cinic10"].verify(root())
    assert {path for path, intact in found.items() if not intact} == {
        "CINIC-10/test/ship",
        "CINIC-10/test/ship/cifar10-train-10.png",
    }
    with pytest.raises(
        ValueError, match=r"^name: cinic10 in .* cannot be read: .*test/ship/cifar10-train-10.png is damaged"
    ):
        splits(SOURCES["cinic10"])
    assert not (root() / "CINIC-10.pt").exists()
    file.unlink()
    splits(SOURCES["cinic10"])
    assert len(publisher.server.asked) == 1


def test_an_image_too_many_or_of_another_size_is_refused(publisher):
    publisher.cinic10()
    splits(SOURCES["cinic10"])
    folder = root() / "CINIC-10" / "valid" / "cat"
    shutil.copy(folder / "cifar10-train-10.png", folder / "cifar10-train-11.png")
    found = SOURCES["cinic10"].verify(root())
    assert [path for path, intact in found.items() if not intact] == ["CINIC-10/valid/cat"]
    with pytest.raises(ValueError, match="CINIC-10/valid/cat holds 3 images; must be 2"):
        splits(SOURCES["cinic10"])
    (folder / "cifar10-train-11.png").unlink()
    (root() / "CINIC-10.pt").unlink()
    Image.fromarray(np.zeros((32, 31, 3), np.uint8)).save(folder / "cifar10-train-10.png")
    with pytest.raises(ValueError, match=r"cat/cifar10-train-10.png is 31x32 pixels; must be 32x32"):
        splits(SOURCES["cinic10"])


@pytest.fixture
def decoded(publisher):
    """The published splits, and a list that grows by a name for each image that is decoded from now on."""
    published = publisher.cinic10()
    splits(SOURCES["cinic10"])
    names, genuine = [], type(SOURCES["cinic10"])._decode

    def decode(self, root, inside):
        names.extend(inside)
        return genuine(self, root, inside)

    publisher.monkeypatch.setattr(type(SOURCES["cinic10"]), "_decode", decode)
    return published, names


def test_decoded_tensors_are_kept_until_a_file_changes(decoded):
    published, names = decoded
    for split, (pixels, labels) in published.items():
        assert np.array_equal(splits(SOURCES["cinic10"])[split][0].numpy(), pixels)
        assert splits(SOURCES["cinic10"])[split][1].tolist() == labels.tolist()
    assert names == []
    file = root() / "CINIC-10" / "train" / "airplane" / "cifar10-train-10.png"
    file.rename(file.with_name("cifar10-train-11.png"))
    splits(SOURCES["cinic10"])
    splits(SOURCES["cinic10"])
    assert len(names) == 30


@pytest.mark.parametrize("content", [b"", b"damaged", None])
def test_unreadable_tensors_are_decoded_again(content, decoded):
    published, names = decoded
    cache = root() / "CINIC-10.pt"
    cache.write_bytes(cache.read_bytes()[:5000] if content is None else content)
    assert np.array_equal(splits(SOURCES["cinic10"])["test"][0].numpy(), published["test"][0])
    assert len(names) == 30


def test_a_full_disk_is_a_warning(decoded, monkeypatch):
    (root() / "CINIC-10.pt").unlink()

    def full(_, file):
        file.write_bytes(b"some of it")
        raise RuntimeError("no space left")

    monkeypatch.setattr(torch, "save", full)
    with pytest.warns(UserWarning, match=r"CINIC-10.pt could not be written \(no space left\)"):
        splits(SOURCES["cinic10"])
    assert sorted(path.name for path in root().iterdir()) == ["CINIC-10", "CINIC-10.tar.gz"]
