"""Image data sets, from small files in the genuine formats and from real ones; downloads that fail; CINIC-10's cache."""

import errno
import os
import shutil
from pathlib import Path

import numpy as np
import pytest
import torch
from published import damage

from rollcall.tasks.datasets import SOURCES, fetch, root, splits

SMALL = {"cifar100": ("cifar-100-python/test", True), "cinic10": ("CINIC-10/test/ship/cifar10-train-10.png", False)}
"""A file of each set, and whether its checksum is known."""


@pytest.mark.parametrize("name", SMALL)
def test_a_set_is_what_was_published(name, publisher):
    published = getattr(publisher, name)()
    found = splits(SOURCES[name], root())
    assert set(found) == set(published)
    for split, (pixels, labels) in published.items():
        assert (found[split][0].dtype, found[split][1].dtype) == (torch.uint8, torch.int64)
        assert np.array_equal(found[split][0].numpy(), pixels)
        assert found[split][1].tolist() == labels.tolist()
    assert len(SOURCES[name].mean) == len(SOURCES[name].std) == pixels.shape[1]
    assert False not in SOURCES[name].verify(root()).values()
    asked = len(publisher.server.asked)
    assert not fetch(SOURCES[name], root())
    splits(SOURCES[name], root())
    assert len(publisher.server.asked) == asked


@pytest.mark.parametrize("name", SMALL)
def test_a_damaged_file_is_named(name, publisher):
    getattr(publisher, name)()
    splits(SOURCES[name], root())
    file, has_checksum = SMALL[name]
    if has_checksum:
        damage(root() / file)
    else:
        (root() / file).write_bytes((root() / file).read_bytes()[:-500])
    assert [path for path, intact in SOURCES[name].verify(root()).items() if intact is False] == [file] * has_checksum
    (root() / "CINIC-10.pt").unlink(missing_ok=True)
    what = {"cinic10": f".*{file} is damaged .*"}.get(name, file)
    with pytest.raises(ValueError, match=rf"^name: {name} in .*data cannot be read: {what}.*; remove .* fetch {name}$"):
        splits(SOURCES[name], root())
    (root() / file).unlink()  # as it says
    splits(SOURCES[name], root())


def test_cinic10_on_a_read_only_disk(publisher, monkeypatch):
    def refuse(*arguments, **options):
        raise OSError(errno.EROFS, "Read-only file system")

    publisher.cinic10()
    whole = splits(SOURCES["cinic10"], root())
    (root() / "CINIC-10.pt").unlink()
    monkeypatch.setattr("torch.save", refuse)
    monkeypatch.setattr(Path, "unlink", refuse)
    with pytest.warns(UserWarning, match=r"CINIC-10\.pt could not be written"):
        found = splits(SOURCES["cinic10"], root())
    assert {name: labels.tolist() for name, (_, labels) in found.items()} == {
        name: labels.tolist() for name, (_, labels) in whole.items()
    }


@pytest.mark.parametrize(
    ("name", "folder", "file"),
    [("mnist", "MNIST", "raw/t10k-images-idx3-ubyte"), ("cifar10", "cifar-10-batches-py", "data_batch_3")],
)
def test_real_files_have_their_checksums_and_damaged_ones_are_named(name, folder, file, tmp_path, monkeypatch):
    file = f"{folder}/{file}"
    if "ROLLCALL_DATA" not in os.environ or not (root() / file).exists():
        pytest.skip(f"ROLLCALL_DATA names no folder with {file}")
    assert set(SOURCES[name].verify(root()).values()) == {True}
    shutil.copytree(root() / folder, tmp_path / folder, copy_function=lambda there, here: Path(here).symlink_to(there))
    (tmp_path / file).unlink()
    shutil.copy(root().resolve() / file, tmp_path / file)
    monkeypatch.setenv("ROLLCALL_DATA", str(tmp_path))
    splits(SOURCES[name], root())
    damage(tmp_path / file)
    with pytest.raises(ValueError, match=f"^name: {name} in .* cannot be read: {file}; remove"):
        splits(SOURCES[name], root())
