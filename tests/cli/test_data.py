"""`rollcall data`, as its user meets it."""

import json

from command import rollcall

from rollcall.tasks.datasets import SOURCES, root


def status(capsys, *names):
    code, out, _ = rollcall(capsys, "data", "status", *names, "--json")
    assert code == 0
    return {row["name"]: row for row in json.loads(out)}


def test_fetch_then_status(publisher, capsys):
    from torchvision.datasets import CIFAR100

    publisher.cifar100()
    assert rollcall(capsys, "data", "fetch", "cifar100")[:2] == (0, "cifar100: downloaded\n")
    row = status(capsys, "cifar100")["cifar100"]
    assert (row["present"], row["files"], row["missing"], row["urls"]) == (True, 3, 0, [CIFAR100.url])
    assert row["download_bytes"] == SOURCES["cifar100"].download_bytes
    already = "cifar100: was already here\ndigits: was already here\n"
    assert rollcall(capsys, "data", "fetch", "cifar100", "digits") == (0, already, "")
    (root() / "cifar-100-python" / "test").unlink()
    assert "2 of 3" in rollcall(capsys, "data", "status", "cifar100")[1]


def test_a_set_that_cannot_be_had_is_one_line_and_exit_code_2(publisher, capsys):
    publisher.cifar100()
    publisher.server.cut = 1000
    code, out, err = rollcall(capsys, "data", "fetch", "cifar100")
    assert (code, out) == (2, "")
    line = err.splitlines()[-1]  # after torchvision's progress bar
    assert line == (
        f"error: name: cifar100 is not in {root()} and could not be downloaded (File not found or corrupted.); "
        "set ROLLCALL_DATA to a folder that holds cifar-100-python/train ... cifar-100-python/meta"
    )
    publisher.server.cut = None
    assert rollcall(capsys, "data", "fetch", "cifar100")[0] == 0
