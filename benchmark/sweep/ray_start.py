"""Starting and stopping Ray: the one place that touches a private name of Ray."""

import logging
import os
from socket import AF_UNIX, create_connection, socket

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

_started: tuple[str, str] | None = None
"""Of the Ray that `start` started: the address that was asked for, and the socket file of the process that starts the
workers of this machine."""


def start(address: str = "") -> None:
    """Start Ray, or join a cluster; nothing happens if it is up.

    Args:
        address: of a Ray cluster; `auto`: the one of this machine; empty: the Ray that the user has started in this
            process, otherwise RAY_ADDRESS, otherwise this machine alone.

    Raises:
        SettingError: no Ray cluster answers at the address, or Ray does not start on this machine.
    """
    global _started
    if _started is not None and _started[0] != address:
        end()
    if _started is None and not ray.is_initialized():
        _started = address, _connect(address)


def dead() -> bool:
    """Whether Ray's process of this machine has died, while it should be up."""
    if _started is None:
        return False
    try:
        with socket(AF_UNIX) as raylet:
            raylet.connect(_started[1])
    except (ConnectionRefusedError, FileNotFoundError):
        return True
    return False


def end() -> None:
    """Stop the Ray that `start` started."""
    global _started
    if _started is not None:
        ray.shutdown()
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
            step = "Rerun the command, or use --executor inline"
            raise SettingError(f"Ray did not start on this machine ({reason}). {step}") from error
        raise SettingError(
            f"ray-address: no Ray cluster answers at {address!r} ({reason}); must be auto or HOST:PORT, which "
            "`ray start --head` prints on the first machine"
        ) from error
    finally:
        ray_constants.ENABLE_RAY_CLUSTER = before
