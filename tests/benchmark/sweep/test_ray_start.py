"""Ray itself is replaced here; tests of `--executor ray` start it."""

from contextlib import nullcontext
from types import SimpleNamespace

import pytest

from rollcall.benchmark.config.errors import SettingError
from rollcall.benchmark.sweep.run import Execution


@pytest.fixture
def ray(monkeypatch):
    """What `ray_executor` calls of Ray; and `ray_executor`, which imports Ray."""
    from rollcall.benchmark.sweep import ray_executor

    ray_executor.end_ray()  # the Ray that an earlier test of this process may have left
    fake = SimpleNamespace(calls=[], module=ray_executor, error=None, up=False, is_initialized=lambda: fake.up)

    def init(**options):
        fake.calls.append(options["address"])
        if fake.error is not None:
            raise fake.error
        fake.up, fake.gcs_address = True, str(len(fake.calls))
        return SimpleNamespace(address_info={"raylet_socket_name": ""})

    def shutdown():
        fake.calls.append("shutdown")
        fake.up = False

    fake.init, fake.shutdown, fake.get_runtime_context = init, shutdown, lambda: fake
    monkeypatch.setattr(ray_executor, "ray", fake)
    yield fake
    ray_executor.end_ray()


def test_another_address_is_another_ray_and_that_of_the_user_stays(ray):
    for address in ("", "", "auto"):
        ray.module.start_ray(address)
    ray.module.end_ray()
    assert ray.calls == ["local", "shutdown", "auto", "shutdown"]
    ray.init(address="of the user")
    ray.module.start_ray()
    ray.module.end_ray()
    assert ray.calls[4:] == ["of the user"]


def test_a_share_that_no_machine_has_is_refused_and_of_a_cluster_it_is_told(ray, monkeypatch):
    ray.nodes = lambda: [{"Alive": True, "Resources": {"CPU": 8}}, {"Alive": False, "Resources": {"GPU": 4}}]
    for address, said in (("", []), ("auto", ["gpus-per-trial: 0.25: no machine has more than 0 GPUs"])):
        execution, lines = Execution(gpus_per_trial=0.25, address=address), []
        monkeypatch.setattr(execution, "say", lines.append)
        ray.module.start_ray(address)
        with nullcontext() if address else pytest.raises(SettingError, match="no machine has more than 0 GPUs"):
            ray.module._check_share(execution)
        assert [line.partition(";")[0] for line in lines] == said


def test_a_ray_that_the_user_has_ended_is_forgotten(ray):
    ray.module.start_ray()
    ray.shutdown()
    ray.init(address="of the user")
    ray.module.start_ray()
    assert not ray.module.ray_died()
    ray.module.end_ray()
    assert ray.calls == ["local", "shutdown", "of the user"]


@pytest.mark.parametrize(
    ("address", "error", "message"),
    [
        ("auto", ConnectionError("nobody there"), r"^ray-address: no Ray cluster answers at 'auto' \(nobody there\)"),
        ("", Exception("The node timed out.\nMore"), r"^Ray did not start on this machine \(The node timed out.\)"),
        ("", TimeoutError(), r"^Ray did not start on this machine \(TimeoutError\). Rerun the command, or use --exec"),
    ],
)
def test_an_error_of_ray_is_a_line_and_the_next_start_is_a_new_one(ray, address, error, message):
    ray.error = error
    with pytest.raises(SettingError, match=message):
        ray.module.start_ray(address)
    ray.error = None
    ray.module.start_ray(address)
    assert len(ray.calls) == 2
