"""Downloads that are cut, damaged or refused, and unpacking that is stopped half-way."""

import os
import tarfile
from threading import Thread

import pytest
from published import damage, md5
from torchvision.datasets import CIFAR100

from rollcall.tasks.datasets import SOURCES, root
from rollcall.tasks.datasets.fetch import download, fetch

CONTENT = bytes(range(256)) * 5000


@pytest.fixture
def server(publisher):
    (publisher.server.folder / "file").write_bytes(CONTENT)
    return publisher.server


def get(server, target, checksum=None, first=()):
    download((*first, f"{server.url}file"), target, checksum or md5(CONTENT))


def below(folder):
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file())


def test_a_cut_download_goes_on_where_it_was_cut(server, tmp_path):
    target, part = tmp_path / "new" / "file", tmp_path / "new" / "file.part"
    server.cut = 400_000
    with pytest.raises(OSError, match=r"/file: cut off after 400,000 of 1,280,000 bytes"):
        get(server, target)
    assert part.read_bytes() == CONTENT[:400_000]
    with pytest.raises(OSError, match="cut off after 800,000 of 1,280,000"):
        get(server, target)
    server.cut = None
    get(server, target)
    assert target.read_bytes() == CONTENT
    assert not part.exists()
    assert server.asked == [("file", None), ("file", "bytes=400000-"), ("file", "bytes=800000-")]


def test_a_server_without_ranges_sends_all_of_it_again(server, tmp_path):
    (tmp_path / "file.part").write_bytes(CONTENT[:100])
    server.ranges = False
    get(server, tmp_path / "file")
    assert (tmp_path / "file").read_bytes() == CONTENT


def test_a_part_that_is_the_whole_file_is_taken(server, tmp_path):
    (tmp_path / "file.part").write_bytes(CONTENT)
    get(server, tmp_path / "file")
    assert (tmp_path / "file").read_bytes() == CONTENT
    assert server.asked == [("file", f"bytes={len(CONTENT)}-")]


@pytest.mark.parametrize("part", [b"", b"x" * 100, CONTENT + b"x"])
def test_a_wrong_checksum_is_refused_and_nothing_is_left(part, server, tmp_path):
    (tmp_path / "file.part").write_bytes(part)
    wrong = "0" * 32 if part == b"" else None
    with pytest.raises(OSError, match=r"/file: its md5 is [0-9a-f]{32}, must be .*; removed"):
        get(server, tmp_path / "file", wrong)
    assert below(tmp_path) == ["served/file"]


def test_the_next_address_is_tried(server, tmp_path):
    (server.folder / "other").write_bytes(b"not the file")
    get(server, tmp_path / "file", first=(f"{server.url}nowhere", f"{server.url}other"))
    assert (tmp_path / "file").read_bytes() == CONTENT
    assert [path for path, _ in server.asked] == ["nowhere", "other", "file"]
    with pytest.raises(OSError, match=r"/nowhere: HTTP Error 404: Not Found; http.*/other: its md5 is"):
        download((f"{server.url}nowhere", f"{server.url}other"), tmp_path / "again", md5(CONTENT))


def test_what_is_there_is_not_fetched(publisher):
    publisher.cifar100()
    source = SOURCES["cifar100"]
    assert fetch(source, root())
    assert below(root()) == [
        "cifar-100-python.tar.gz",
        *(f"cifar-100-python/{name}" for name in ("meta", "test", "train")),
    ]
    assert not fetch(source, root())
    assert len(publisher.server.asked) == 1
    # Of a set in one archive, what is lost comes out of the archive again; what lies there besides stays.
    (root() / "cifar-100-python" / "train").unlink()
    (root() / "cifar-100-python" / "mine").write_text("mine")
    assert fetch(source, root())
    assert len(publisher.server.asked) == 1
    assert source.missing(root()) == []
    assert (root() / "cifar-100-python" / "mine").read_text() == "mine"
    # A damaged archive is had anew.
    (root() / "cifar-100-python" / "train").unlink()
    damage(root() / "cifar-100-python.tar.gz")
    with publisher.monkeypatch.context() as patch:
        patch.setattr(CIFAR100, "url", f"{publisher.server.url}nowhere")
        with pytest.raises(
            ValueError, match=r"\(the cifar-100-python.tar.gz there is damaged; http.*/nowhere: HTTP Error 404"
        ):
            fetch(source, root())
    publisher.server.asked.pop()
    assert fetch(source, root())
    assert len(publisher.server.asked) == 2
    assert all(source.verify(root()).values())


def test_only_the_archives_that_are_needed_are_fetched(publisher):
    publisher.fashion_mnist()
    source = SOURCES["fashion_mnist"]
    fetch(source, root())
    lost = root() / "FashionMNIST" / "raw" / "t10k-labels-idx1-ubyte"
    lost.unlink()
    for archive in root().rglob("*.gz"):
        archive.unlink()
    publisher.server.asked.clear()
    fetch(source, root())
    assert publisher.server.asked == [("t10k-labels-idx1-ubyte.gz", None)]


def test_of_two_at_once_one_waits(publisher):
    publisher.svhn()
    threads = [Thread(target=fetch, args=(SOURCES["svhn"], root())) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(path for path, _ in publisher.server.asked) == ["test_32x32.mat", "train_32x32.mat"]
    assert below(root()) == ["test_32x32.mat", "train_32x32.mat"]


@pytest.mark.parametrize("stop", [KeyboardInterrupt, OSError])
def test_unpacking_that_fails_leaves_no_half_folder(stop, publisher, monkeypatch):
    publisher.cinic10()
    extract = tarfile.TarFile.extractall

    def half(tar, path, **options):
        extract(tar, path, members=tar.getmembers()[:30], **options)
        assert len(list((root() / ".CINIC-10.tar.gz.unpacking").rglob("*.png"))) == 29  # where we expect it to work
        raise stop("full")

    with monkeypatch.context() as patch:
        patch.setattr(tarfile.TarFile, "extractall", half)
        with pytest.raises(KeyboardInterrupt if stop is KeyboardInterrupt else ValueError):
            fetch(SOURCES["cinic10"], root())
    assert os.listdir(root()) == ["CINIC-10.tar.gz"]
    (root() / ".CINIC-10.tar.gz.unpacking" / "CINIC-10" / "train").mkdir(parents=True)  # of a killed process
    fetch(SOURCES["cinic10"], root())
    assert sorted(os.listdir(root())) == ["CINIC-10", "CINIC-10.tar.gz"]
    assert len(publisher.server.asked) == 1
    assert SOURCES["cinic10"].missing(root()) == []


def test_nothing_is_left_where_nothing_could_be_had(publisher):
    publisher.cifar100()
    (publisher.server.folder / "cifar-100-python.tar.gz").unlink()
    with pytest.raises(
        ValueError, match=r"^name: cifar100 is not in .*data and could not be downloaded \(http.*404"
    ) as error:
        fetch(SOURCES["cifar100"], root())
    assert "set ROLLCALL_DATA to a folder that holds cifar-100-python/train ... cifar-100-python/meta" in str(
        error.value
    )
    assert "\n" not in str(error.value)
    assert not root().exists()


def test_an_archive_that_lacks_a_file_is_said_so(publisher, monkeypatch):
    publisher.cinic10()
    publisher.cinic10(per_class=1)
    monkeypatch.setitem(
        SOURCES, "cinic10", source := type(SOURCES["cinic10"])(**vars(SOURCES["cinic10"]) | {"per_class": 2})
    )
    with pytest.raises(ValueError, match="its archives are without CINIC-10/train/airplane"):
        fetch(source, root())
