"""The trained model of a run as a torch module."""

from collections.abc import Mapping
from pathlib import Path

import numpy as np
import torch
from jaxtyping import Float

from rollcall.benchmark.config.errors import SettingError, at
from rollcall.benchmark.config.trial import Trial
from rollcall.benchmark.engines import FlatTask
from rollcall.benchmark.federation.run_folder import replacing
from rollcall.benchmark.federation.trainer import PRECISIONS
from rollcall.tasks import Task

FILE = "buffers.npz"
"""In a run folder: the buffers of the final model by name. There is no such file if the model has none."""


def trained_module(trial: Trial, model: Float[np.ndarray, "d"], buffers: Mapping[str, np.ndarray]) -> Task:
    """The task of a trial with a trained model, on the CPU and in evaluation mode.

    Args:
        trial: of the run.
        model: [d], the parameters.
        buffers: what else the model has learned (BatchNorm statistics), by name.

    Raises:
        SettingError: the buffers of the model are unknown, or the task cannot be built here.
    """
    with at("task"):
        task: Task = trial.task.build(trial.seed)[0]
    flat = FlatTask(task.to(PRECISIONS[trial.numerics.dtype].dtype))
    missing = [name for name in flat.buffer_names if name not in buffers]
    if missing:
        raise SettingError(
            f"the buffer {missing[0]} of the model was not saved, because the run is of an earlier version. "
            "Run the trial again in another folder"
        )
    flat.move(torch.from_numpy(model))
    for name, buffer in zip(flat.buffer_names, flat.buffers_(), strict=True):
        buffer.copy_(torch.from_numpy(buffers[name]))
    return task.eval()


def buffers_of(model: FlatTask) -> dict[str, np.ndarray]:
    """Copies of the learned buffers of a model, by name."""
    named = zip(model.buffer_names, model.buffers_(), strict=True)
    return {name: buffer.detach().cpu().numpy().copy() for name, buffer in named}


def save_buffers(folder: Path, buffers: dict[str, np.ndarray]) -> None:
    """Write the buffers of the final model into a run folder, if there are any."""
    if buffers:
        with replacing(folder / FILE) as scratch, scratch.open("wb") as file:
            np.savez(file, **buffers)  # type: ignore[arg-type, unused-ignore]


def load_buffers(folder: Path) -> dict[str, np.ndarray]:
    """The buffers of the final model of a run folder."""
    if not (folder / FILE).is_file():
        return {}
    with np.load(folder / FILE) as file:
        return dict(file)
