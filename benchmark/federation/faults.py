"""What is wrong with the checkpoint or the models of a run."""

import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from rollcall.benchmark.config.text import counted


def fault_of_archive(file: Path) -> str:
    """The fault of a checkpoint or of model.npz, which are zip files; empty if there is none."""
    try:
        with zipfile.ZipFile(file) as archive:
            member = archive.testzip()
    except (zipfile.BadZipFile, OSError, EOFError, ValueError):
        return "cut off or not readable"
    return f"wrong checksum of {member}" if member else ""


def fault_of_checkpoint(file: Path, trial: str) -> str:
    """The fault of a checkpoint of a trial with this digest, if it is known; empty if there is none.

    One that holds code other than tensors is not of a run. One of an earlier version does not name its trial.
    """
    import torch  # takes seconds, which readers of the status need not wait for

    if fault := fault_of_archive(file):
        return fault
    try:
        content = torch.load(file, map_location="cpu", weights_only=True, mmap=True)
    except Exception as error:  # an unpickling error of many kinds
        return f"torch.load refuses it: {str(error).splitlines()[0]}"
    if not (isinstance(content, dict) and {"global_step", "state_dict"} <= content.keys()):
        return "not a checkpoint of a run"
    return "of another trial" if trial and content.get("trial", trial) != trial else ""


def fault_of_models(file: Path, status: Mapping[str, Any]) -> str:
    """The fault of model.npz of a run with this status; empty if there is none.

    A longer run of the trial may have been killed when it had written its model, and not that it ended.
    """
    if fault := fault_of_archive(file):
        return fault
    trial, ended = status.get("digest", ""), status.get("finished") or status.get("diverged")
    with np.load(file) as arrays:
        try:
            model, server, of = arrays["model"], arrays["server"], str(arrays.get("trial", trial))
            rounds = int(arrays.get("rounds", ended or 0))
        except (KeyError, ValueError):
            return "without `model` and `server`"
    if not (model.dtype.kind == server.dtype.kind == "f" and model.ndim == 1 and model.shape == server.shape):
        return "without two models of one size"
    if ended and rounds != ended:
        return f"of {counted(rounds, 'round')}"
    return "of another trial" if trial and of != trial else ""
