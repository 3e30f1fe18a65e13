"""Ray itself is replaced here; tests of `--executor ray` start it."""

import os
import threading
from types import SimpleNamespace

import pytest

from rollcall.benchmark.config.errors import SettingError
from rollcall.benchmark.sweep import ray_start


class Ray:
    """What `ray_start` calls of Ray. `init` waits until it may end."""

    def __init__(self):
        self.may_end = threading.Event()
        self.calls = []
        self.threads = []
        self.error = None

    def init(self, **options):
        self.calls.append("init")
        self.threads.append(threading.current_thread())
        self.may_end.wait(20)
        if self.error is not None:
            raise self.error
        return SimpleNamespace(address_info={"raylet_socket_name": ""})

    def shutdown(self):
        self.calls.append("shutdown")

    def is_initialized(self):
        return False


@pytest.fixture
def ray(monkeypatch):
    ray_start.end()  # the Ray that an earlier test of this process may have left
    fake = Ray()
    monkeypatch.setattr(ray_start, "ray", fake)
    for name in ray_start.PRELOAD:  # so that the variables are removed after the test
        monkeypatch.setenv(name, "")
    yield fake
    fake.may_end.set()
    ray_start.end()


def test_begin_does_not_wait_and_the_thread_lives_as_long_as_ray(ray):
    """Linux ends Ray's processes with the thread that started them."""
    ray_start.begin()
    ray_start.begin()
    threading.Timer(0.2, ray.may_end.set).start()
    ray_start.ready()
    assert (ray.may_end.is_set(), ray.calls) == (True, ["init"])
    (thread,) = ray.threads
    thread.join(0.1)
    assert thread.is_alive()
    ray_start.end()
    thread.join(20)
    assert not thread.is_alive()
    assert ray.calls == ["init", "shutdown"]


@pytest.mark.parametrize(
    ("address", "error", "message"),
    [
        ("auto", ConnectionError("nobody there"), r"^ray-address: no Ray cluster answers at 'auto' \(nobody there\)"),
        ("", Exception("The node timed out.\nMore"), r"^Ray did not start on this machine \(The node timed out.\)"),
        (
            "",
            OSError("AF_UNIX path length cannot exceed 107 bytes"),
            "Set TMPDIR, which is .*, to a folder with a shorter",
        ),
        ("", TimeoutError(), r"^Ray did not start on this machine \(TimeoutError\). Rerun the command, or use --exec"),
    ],
)
def test_an_error_of_ray_is_raised_by_ready_and_the_next_start_is_a_new_one(ray, address, error, message):
    ray.may_end.set()
    ray.error = error
    ray_start.begin(address)
    with pytest.raises(SettingError, match=message):
        ray_start.ready(address)
    ray.error = None
    ray_start.ready(address)
    assert ray.calls.count("init") == 2


@pytest.mark.parametrize(("missing", "preloaded"), [(0, "rollcall.benchmark.sweep.preload"), (1, "")])
def test_workers_import_at_once_where_each_core_gets_a_trial(ray, missing, preloaded):
    ray.may_end.set()
    ray_start.begin(trials=(os.cpu_count() or 1) - missing)
    assert os.environ["RAY_preload_python_modules"] == preloaded  # noqa: SIM112
