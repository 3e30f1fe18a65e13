"""The memory settings of a process. That freed memory is kept, `federation/test_host_process.py` shows."""

import gc
from types import SimpleNamespace

from rollcall.benchmark import process
from rollcall.benchmark.process import collect_garbage_seldom, keep_freed_memory


def test_elsewhere_nothing_is_done_and_a_refusal_is_told(monkeypatch):
    monkeypatch.setattr(process.sys, "platform", "linux")
    for library in (object(), SimpleNamespace(mallopt=lambda parameter, value: 0)):  # such as musl; and a refusal
        monkeypatch.setattr(process.ctypes, "CDLL", lambda name, library=library: library)
        assert not keep_freed_memory()
    monkeypatch.setattr(process.sys, "platform", "darwin")
    monkeypatch.setattr(process.ctypes, "CDLL", None)  # is not even asked
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
