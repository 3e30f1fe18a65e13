"""The allocator keeps freed memory: page faults are counted by the kernel, not by us."""

import gc
import platform
import subprocess
import sys
from pathlib import Path

import pytest

from rollcall.benchmark import allocator
from rollcall.benchmark.allocator import collect_garbage_seldom, keep_freed_memory

# 64 MiB are taken, touched and freed ten times over: 16,384 pages of 4 KiB each time.
COUNT = """
import resource, sys
from rollcall.benchmark.allocator import keep_freed_memory
import numpy as np
if sys.argv[1] == "keep":
    assert keep_freed_memory() and keep_freed_memory()
np.ones(2**23)
before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
for _ in range(10):
    assert np.ones(2**23).sum() == 2**23
print(resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before)
"""


def faults(what: str) -> int:
    folder = Path(allocator.__file__).parents[1]
    done = subprocess.run([sys.executable, "-c", COUNT, what], capture_output=True, text=True, cwd=folder, check=True)
    return int(done.stdout)


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="another C library")
def test_blocks_that_were_freed_are_used_again():
    assert faults("keep") < 50
    assert faults("leave") > 300  # 163,840, or 320 where the kernel gives pages of 2 MiB


def test_elsewhere_nothing_is_done(monkeypatch):
    monkeypatch.setattr(allocator.ctypes, "CDLL", lambda name: object())  # a C library without mallopt, such as musl
    assert not keep_freed_memory()
    monkeypatch.setattr(allocator.sys, "platform", "darwin")
    monkeypatch.setattr(allocator.ctypes, "CDLL", None)  # is not even asked
    assert not keep_freed_memory()


def test_a_refusal_is_told(monkeypatch):
    class Refusing:
        def mallopt(self, parameter: int, value: int) -> int:
            return 0

    monkeypatch.setattr(allocator.ctypes, "CDLL", lambda name: Refusing())
    monkeypatch.setattr(allocator.sys, "platform", "linux")
    assert not keep_freed_memory()


def test_garbage_is_collected_seldom_but_is_collected() -> None:
    before = gc.get_threshold()
    collections: list[int] = []

    def note(phase: str, info: dict[str, int]) -> None:
        if phase == "start":
            collections.append(info["generation"])

    try:
        collect_garbage_seldom()
        gc.collect()
        gc.callbacks.append(note)
        kept = [[] for _ in range(90_000)]
        assert collections == []
        kept += [[] for _ in range(20_000)]
        assert collections == [0]
    finally:
        gc.callbacks.remove(note)
        gc.set_threshold(*before)
