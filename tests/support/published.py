"""Small data sets in their genuine formats, served as their publishers do, with checksums where torchvision looks."""

import hashlib
import io
import pickle
import tarfile
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pytest
from PIL import Image
from server import Server

from rollcall.tasks.datasets import SOURCES

CLASSES = ["airplane", "automobile", "bird", "cat", "deer", "dog", "frog", "horse", "ship", "truck"]
Arrays = dict[str, tuple[np.ndarray, np.ndarray]]


@dataclass
class Publisher:
    """Each method publishes a set and returns its splits: pixels [n, channels, height, width] and labels."""

    server: Server
    monkeypatch: pytest.MonkeyPatch

    def cifar100(self) -> Arrays:
        rng = np.random.default_rng(2)
        splits, files = {}, {}
        for split, n in (("train", 13), ("test", 5)):
            images, labels = pixels(rng, n, 3, 32), rng.integers(0, 100, n)
            batch = {
                "data": images.reshape(n, -1),
                "fine_labels": labels.tolist(),
                "coarse_labels": (labels // 5).tolist(),
            }
            files[split] = pickle.dumps(batch, protocol=2)
            splits[split] = (images, labels)
        files["meta"] = pickle.dumps({"fine_label_names": [f"class {c}" for c in range(100)]}, protocol=2)
        from torchvision.datasets import CIFAR100 as theirs  # torchvision takes a second

        archive = self._put(
            "cifar-100-python.tar.gz", tarred({f"cifar-100-python/{name}": content for name, content in files.items()})
        )
        changes = {
            "url": f"{self.server.url}cifar-100-python.tar.gz",
            "tgz_md5": archive,
            "train_list": [["train", md5(files["train"])]],
            "test_list": [["test", md5(files["test"])]],
            "meta": theirs.meta | {"md5": md5(files["meta"])},
        }
        for name, value in changes.items():
            self.monkeypatch.setattr(theirs, name, value)
        return splits

    def cinic10(self, per_class: int = 2) -> Arrays:
        rng = np.random.default_rng(3)
        splits, files = {}, {"README.md": b"CINIC-10"}
        for split in ("train", "valid", "test"):
            images, labels = pixels(rng, 10 * per_class, 3, 32), np.repeat(np.arange(10), per_class)
            for index in rng.permutation(len(images)):
                # The published names: of CIFAR-10 by number, not padded; of ImageNet by its synset.
                row = index % per_class
                name = "cifar10-train-10.png" if row == 0 else f"n0{2690373 + row}_{row}.png"
                file = io.BytesIO()
                Image.fromarray(images[index].transpose(1, 2, 0)).save(file, "PNG")
                files[f"{split}/{CLASSES[labels[index]]}/{name}"] = file.getvalue()
            splits[split] = (images, labels)
        archive = self._put("CINIC-10.tar.gz", tarred(files))
        source = replace(SOURCES["cinic10"], url=f"{self.server.url}CINIC-10.tar.gz", md5=archive, per_class=per_class)
        self.monkeypatch.setitem(SOURCES, "cinic10", source)
        return splits

    def _put(self, name: str, content: bytes) -> str:
        (self.server.folder / name).write_bytes(content)
        return md5(content)


def pixels(rng: np.random.Generator, n: int, channels: int, side: int) -> np.ndarray:
    return rng.integers(0, 256, (n, channels, side, side), dtype=np.uint8)


def tarred(files: dict[str, bytes]) -> bytes:
    archive = io.BytesIO()
    with tarfile.open(fileobj=archive, mode="w:gz") as tar:
        for name, content in files.items():
            member = tarfile.TarInfo(name)
            member.size = len(content)
            tar.addfile(member, io.BytesIO(content))
    return archive.getvalue()


def md5(content: bytes) -> str:
    return hashlib.md5(content).hexdigest()


def damage(file: Path) -> None:
    """Another bit in the middle."""
    content = bytearray(file.read_bytes())
    content[len(content) // 2] ^= 1
    file.write_bytes(content)
