"""Starting and stopping Ray: the one place that touches private names of Ray.

Ray takes seconds to start, in processes of its own, and its workers take seconds to import torch and Lightning. So the
command line lets Ray start before it imports torch itself and checks the trials. This module imports no torch.
"""

import logging
import os
from concurrent.futures import Future, ThreadPoolExecutor
from socket import AF_UNIX, create_connection, socket
from tempfile import gettempdir

# Ray reads these when it is imported: no usage statistics, no visible GPU for a trial that asked for none (all trials
# would use it), Tune's table only where it is asked for, and no handling of Ctrl-C but ours, which lets trials save.
os.environ.update(
    RAY_USAGE_STATS_ENABLED="0",
    RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO="1",
    RAY_AIR_NEW_OUTPUT="0",
    TUNE_DISABLE_SIGINT_HANDLER="1",
)

import ray
from ray._private import ray_constants

from rollcall.benchmark.config.errors import SettingError

PRELOAD = {
    "RAY_preload_python_modules": "rollcall.benchmark.sweep.preload",
    # By default Ray ends a worker without work after a second, and starts another one when there is work.
    "RAY_idle_worker_killing_time_threshold_ms": "60000",
}
"""Settings of the process that starts the workers: they import what a trial needs as soon as they have started."""


class _Started:
    """The Ray of this process.

    Attributes:
        address: that it was asked for.
        raylet: the socket file of Ray's process of this machine, which starts the workers.
    """

    def __init__(self, address: str) -> None:
        self.address = address
        # Ray's processes end with the thread that started them, so the thread lives as long as Ray.
        self.thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix="ray")
        self.raylet: Future[str] = self.thread.submit(_connect, address)


_started: _Started | None = None


def begin(address: str = "", *, trials: int = 0) -> None:
    """Let Ray start, without waiting for it. Nothing happens if it has begun at this address.

    Args:
        address: of a Ray cluster; `auto`: the one of this machine; empty: RAY_ADDRESS, otherwise this machine alone.
        trials: how many will run on CPUs. If there is one for every core, the workers import what a trial needs as soon
            as they start; otherwise memory would be lost to workers without a trial.
    """
    global _started
    if ray.is_initialized() and _started is None:  # by the user, who also ends it
        return
    if _started is None or _started.address != address:
        end()
        if trials >= (os.cpu_count() or 1):
            os.environ.update(PRELOAD)
        _started = _Started(address)


def ready(address: str = "") -> None:
    """Wait until Ray has started at this address, see `begin`; start it if it has not begun.

    Raises:
        SettingError: no Ray cluster answers at the address, or Ray does not start on this machine.
    """
    begin(address)
    if _started is not None and (error := _started.raylet.exception()) is not None:
        end()
        raise error
    from ray.tune.execution.class_cache import DEFAULT_ENV_VARS

    # Tune gives trials an environment variable about a way of training that the suite does not use. With it, they
    # could not run in the workers that have started already, and each process would import torch anew.
    DEFAULT_ENV_VARS.pop("PL_DISABLE_FORK", None)


def dead() -> bool:
    """Whether Ray's process of this machine has died, while it should be up."""
    if _started is None or not _started.raylet.done() or _started.raylet.exception() is not None:
        return False
    try:
        with socket(AF_UNIX) as raylet:
            raylet.connect(_started.raylet.result())
    except (ConnectionRefusedError, FileNotFoundError):
        return True
    return False


def end() -> None:
    """Stop the Ray that `begin` started."""
    global _started
    if _started is not None:
        _started.raylet.exception()
        ray.shutdown()
        _started.thread.shutdown()
    _started = None


def _connect(address: str) -> str:
    """Start Ray, or join a cluster. Returns the socket file of Ray's process of this machine."""
    # Ray alone would also join a cluster that somebody else started on this machine.
    address = address or os.environ.get("RAY_ADDRESS") or "local"
    host, _, port = address.rpartition(":")
    before = ray_constants.ENABLE_RAY_CLUSTER
    try:
        if port.isdigit():
            create_connection((host, int(port)), timeout=10).close()  # Ray tries for minutes before it gives up
        # Without a cluster, Ray listens on 127.0.0.1 only. By itself it does so on Windows and macOS.
        ray_constants.ENABLE_RAY_CLUSTER = address != "local"
        context = ray.init(address=address, include_dashboard=False, log_to_driver=False, logging_level=logging.ERROR)
        logging.getLogger("ray.tune").setLevel(logging.CRITICAL)  # the run folders have the errors of trials
        return str(context.address_info["raylet_socket_name"])  # type: ignore[attr-defined]
    except Exception as error:
        reason = next(iter(str(error).splitlines()), type(error).__name__)
        if address == "local":
            step = "Rerun the command"
            if "AF_UNIX" in str(error):  # Ray's socket lies in the folder for temporary files
                step = f"Set TMPDIR, which is {gettempdir()}, to a folder with a shorter name, such as /tmp"
            raise SettingError(
                f"Ray did not start on this machine ({reason}). {step}, or use --executor inline"
            ) from error
        if not isinstance(error, OSError | ValueError):
            raise
        raise SettingError(
            f"ray-address: no Ray cluster answers at {address!r} ({reason}); must be auto or HOST:PORT, which "
            "`ray start --head` prints on the first machine"
        ) from None
    finally:
        ray_constants.ENABLE_RAY_CLUSTER = before
