"""One trial from settings to result."""

import logging
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pandas as pd
import torch
from lightning.pytorch import Callback, Trainer
from lightning.pytorch.loggers import Logger

from benchmark.allocator import keep_freed_memory
from benchmark.errors import SettingError, at
from benchmark.evaluation import group
from benchmark.federation import Federation
from benchmark.folder import RunFolder
from benchmark.memory import refuse_what_cannot_fit
from benchmark.recording import Checkpoints, Recorder, save_checkpoint
from benchmark.servers import OPTIMIZERS
from benchmark.trial import Trial
from benchmark.weights import classes
from participation import Population

ACCELERATORS = {"auto": "auto", "cpu": "cpu", "cuda": "gpu"}


@dataclass(frozen=True)
class Precision:
    """What a `numerics.dtype` means to torch and to Lightning.

    Attributes:
        dtype: of models, states and samples.
        lightning: the trainer's precision.
        products: see `torch.set_float32_matmul_precision`.
    """

    dtype: torch.dtype
    lightning: Literal["32-true", "64-true", "bf16-mixed"]
    products: str = "highest"


PRECISIONS = {
    "float32": Precision(torch.float32, "32-true"),
    "float64": Precision(torch.float64, "64-true"),
    "tf32": Precision(torch.float32, "32-true", products="high"),
    "bf16_mixed": Precision(torch.float32, "bf16-mixed"),
}


@dataclass(frozen=True)
class Result:
    """What a trial ended with.

    Attributes:
        trial: its settings.
        model: [d], the model as it is evaluated.
        server: [d], the server's model; the same for most methods.
        history: a row for each evaluation: `round`, the number of rounds done, and `split/metric`.
        folder: the run folder, if there is one.
    """

    trial: Trial
    model: np.ndarray
    server: np.ndarray
    history: pd.DataFrame
    folder: Path | None


def simulate(
    trial: Trial | dict[str, Any] | str | Path,
    *,
    folder: Path | str | None = None,
    callbacks: Sequence[Callback] = (),
    logger: Logger | bool = False,
    checkpoint_every: timedelta = timedelta(minutes=2),
) -> Result:
    """Run a trial, or go on with it where its folder was left, or read its result if it is finished.

    Args:
        trial: a `Trial`, a mapping as in an experiment file, or the path of a YAML file.
        folder: its run folder; without one nothing is written.
        callbacks, logger: Lightning's, for whoever wants to watch; a callback of one's own finds the last evaluation in
            `federation.measured`.
        checkpoint_every: how much work a stop may lose; needs a folder.

    Raises:
        SettingError: a setting that is not allowed; nothing has been written then.
    """
    trial = Trial.read(trial)
    run = None if folder is None else RunFolder(Path(folder))
    if run is not None and run.status.get("digest", trial.digest) != trial.digest:
        raise SettingError(f"folder: {run.path} is not allowed; it holds another trial, {run.status['name']}")
    if run is not None and run.state == "finished":
        return Result(trial, *run.models(), run.history(), run.path)
    keep_freed_memory()
    federation = build(trial)
    recorder = Recorder(run)
    with quiet(), matrix_products(PRECISIONS[trial.numerics.dtype].products):
        watchers = [recorder, *callbacks, *([] if run is None else [Checkpoints(run, checkpoint_every)])]
        trainer = trainer_of(trial, watchers, logger)
        if run is None:
            _train(trainer, federation, recorder, trial.evaluation.every, resume=None)
        else:
            with run.running(trial, device=trainer.strategy.root_device.type, threads=torch.get_num_threads()):
                resume = run.checkpoint if run.checkpoint.exists() else None
                _train(trainer, federation, recorder, trial.evaluation.every, resume)
                save_checkpoint(trainer, run)
                run.save_models(_numpy(federation.evaluated), _numpy(federation.server))
    return Result(
        trial, _numpy(federation.evaluated), _numpy(federation.server), recorder.history(), run.path if run else None
    )


def trainer_of(
    trial: Trial, callbacks: Sequence[Callback], logger: Logger | bool = False, evaluation_batches: int | None = None
) -> Trainer:
    """A Lightning trainer whose steps are the trial's rounds.

    Args:
        trial: what is run.
        callbacks, logger: Lightning's.
        evaluation_batches: the most of each split that is evaluated; None for all.
    """
    return Trainer(
        max_epochs=1,
        max_steps=trial.rounds,
        accelerator=ACCELERATORS[trial.numerics.device],
        devices=1,
        precision=PRECISIONS[trial.numerics.dtype].lightning,
        callbacks=list(callbacks),
        logger=logger,
        limit_val_batches=evaluation_batches,
        enable_checkpointing=False,
        enable_progress_bar=False,
        enable_model_summary=False,
        num_sanity_val_steps=0,
        check_val_every_n_epoch=None,
        val_check_interval=min(trial.evaluation.every, trial.rounds),
    )


def build(trial: Trial) -> Federation:
    """The federation of a trial: its data loaded, its roll call and its initial model drawn.

    Raises:
        SettingError: a setting that its task, participation model or algorithm does not allow.
    """
    if trial.numerics.device == "cuda" and not torch.cuda.is_available():
        raise SettingError("numerics.device: 'cuda' is not allowed here, torch finds no GPU; must be auto or cpu")
    with at("task"):
        task, data = trial.task.build(trial.seed)
    with at("participation"):
        population = Population(data.clients, trial.seed, data.classes, data.histogram)
        participation = trial.participation.build(population)
    with at("algorithm"):
        algorithm = trial.algorithm.build()
    for knowledge in algorithm.needs:
        known = participation.probability(0) if knowledge == "probability" else getattr(participation, knowledge)
        if known is None:
            raise SettingError(
                f"algorithm.name: {trial.algorithm.label!r} is not allowed with {trial.participation.name}, which "
                f"knows no {knowledge}; must be a method that does not need it"
            )
    splits = trial.evaluation.splits or tuple(data.splits)
    for split in splits:
        if split not in data.splits:
            raise SettingError(
                f"evaluation.splits: {split!r} is not allowed with {trial.task.name}; "
                f"must be of {', '.join(data.splits)}"
            )
    availability = participation.stationary if participation.stationary is not None else participation.probability(0)
    with at("evaluation"):
        found = [group(by, split, data, availability) for by in trial.evaluation.by for split in splits]
    groups = [some for some in found if some is not None]
    sizes = data.parts.sizes.astype(np.float64)
    alpha = np.ones_like(sizes) if trial.target == "uniform" else sizes
    alpha /= alpha.sum()
    with at("evaluation"):
        asked = trial.evaluation.weights
        alike = classes(asked, alpha, availability, participation.correlation) if asked else None
    dtype = PRECISIONS[trial.numerics.dtype].dtype
    data.splits = {
        split: tuple(column.to(dtype) if column.is_floating_point() else column for column in samples)
        for split, samples in data.splits.items()
    }
    parameters = sum(parameter.numel() for parameter in task.parameters())
    refuse_what_cannot_fit(
        algorithm, trial.algorithm.label, parameters, dtype, participation, trial.rounds, trial.numerics
    )
    schedule = trial.local.schedule.bound()
    return Federation(
        task.to(dtype),
        data,
        participation,
        algorithm,
        steps=trial.local.steps,
        batch_size=trial.local.batch_size,
        rate=lambda t: trial.local.lr * schedule(t),
        alpha=alpha,
        optimizer=partial(OPTIMIZERS[trial.server.optimizer], **trial.server.options()),
        rounds=trial.rounds,
        splits=splits,
        seed=trial.seed,
        groups=groups,
        engine=trial.numerics.engine,
        client_memory=trial.numerics.client_memory,
        classes=alike,
    )


def _train(trainer: Trainer, federation: Federation, recorder: Recorder, every: int, resume: Path | None) -> None:
    """All rounds, with an evaluation before the first, after the last, and where a stop lost one."""
    if resume is not None:
        federation.load_state_dict(torch.load(resume, map_location="cpu", weights_only=True)["state_dict"])
    if federation.t % every == 0 and not recorder.has(federation.t):
        trainer.validate(federation, verbose=False)
    trainer.fit(federation, ckpt_path=resume)
    if not recorder.has(federation.t):
        trainer.validate(federation, verbose=False)


def _numpy(vector: torch.Tensor) -> np.ndarray:
    return vector.detach().cpu().numpy().copy()


@contextmanager
def matrix_products(precision: str) -> Iterator[None]:
    """See `torch.set_float32_matmul_precision`, which is the process's own and put back."""
    before = torch.get_float32_matmul_precision()
    torch.set_float32_matmul_precision(precision)
    try:
        yield
    finally:
        torch.set_float32_matmul_precision(before)


@contextmanager
def quiet() -> Iterator[None]:
    """Without Lightning's advice on loaders, devices and steps, none of which fits a round."""
    log = logging.getLogger("lightning.pytorch")
    level = log.level
    log.setLevel(logging.ERROR)
    try:
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", module="lightning")
            yield
    finally:
        log.setLevel(level)
