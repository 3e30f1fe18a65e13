"""One trial from settings to result."""

import logging
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
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

from benchmark.config.errors import SettingError, at
from benchmark.config.trial import Trial
from benchmark.engines import LocalTraining
from benchmark.engines.allocator import keep_freed_memory
from benchmark.engines.threads import kernels_of_one_thread
from benchmark.federation.callbacks import Checkpoints, Evaluations, Recorder, Stop
from benchmark.federation.client_weights import classes
from benchmark.federation.evaluation import group
from benchmark.federation.interruption import stop_requests
from benchmark.federation.memory_check import Need, refuse_what_cannot_fit
from benchmark.federation.module import Federation
from benchmark.federation.run_folder import RunFolder
from benchmark.federation.server_optimizers import OPTIMIZERS
from participation import Population
from tasks import Minibatches, Task

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
    stop: Callable[[], bool] | None = None,
) -> Result:
    """Run a trial, or resume it from its folder, or read its result there if it is finished.

    A finished run of fewer rounds goes on from its last round, and ends bit for bit like a run of all rounds.

    Args:
        trial: a `Trial`, a mapping as in an experiment file, or the path of a YAML file.
        folder: its run folder; without one nothing is written.
        callbacks, logger: Lightning's, for whoever wants to watch; a callback of one's own finds the last evaluation in
            `federation.measured`.
        checkpoint_every: how much work a kill may lose; needs a folder.
        stop: asked after every round whether to stop; by default whether SIGINT (Ctrl-C) or SIGTERM was received.

    Raises:
        SettingError: a setting that is not allowed; nothing has been written then.
        Interrupted: the run was asked to stop; its folder has a checkpoint of the last round.
    """
    trial = Trial.read(trial)
    run = None if folder is None else RunFolder(Path(folder))
    if run is not None and run.status.get("digest", trial.digest) != trial.digest:
        raise SettingError(f"folder: {run.path} is not allowed; it holds another trial, {run.status['name']}")
    if run is not None and run.finished >= trial.rounds:
        if run.finished > trial.rounds:
            raise SettingError(
                f"rounds: {trial.rounds} is not allowed with {run.path}, which holds {run.finished} rounds of this "
                "trial; must be at least as many"
            )
        history = run.history()
        return Result(trial, *run.models(), history[history["round"] <= trial.rounds], run.path)
    keep_freed_memory()
    with (
        quiet(),
        matrix_products(PRECISIONS[trial.numerics.dtype].products),
        kernels_of_one_thread() as threads,
        stop_requests() if stop is None else nullcontext(stop) as requested,
    ):
        federation = build(trial, threads)
        recorder = Recorder(run)
        ours: list[Callback] = [recorder, *callbacks]
        if run is not None:
            ours.append(Checkpoints(run, trial.rounds, checkpoint_every))
        trainer = trainer_of(trial, [*ours, Stop(run, trial.rounds, requested)], logger)
        if run is None:
            _train(trainer, federation, recorder, trial, resume=None)
        else:
            with run.running(trial, device=trainer.strategy.root_device.type, threads=threads):
                _train(trainer, federation, recorder, trial, resume=run.checkpoint if run.checkpoint.exists() else None)
                run.save_models(_numpy(federation.eval_model), _numpy(federation.server))
    return Result(
        trial, _numpy(federation.eval_model), _numpy(federation.server), recorder.history(), run.path if run else None
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
        callbacks=[Evaluations(lambda t: trial.evaluation.due(t, trial.rounds)), *callbacks],
        logger=logger,
        limit_val_batches=evaluation_batches,
        enable_checkpointing=False,
        enable_progress_bar=False,
        enable_model_summary=False,
        num_sanity_val_steps=0,
        check_val_every_n_epoch=None,
        val_check_interval=1,  # see `recording.Evaluations`
    )


def build(trial: Trial, workers: int = 1) -> Federation:
    """The federation of a trial: its data loaded, its roll call and its initial model drawn.

    Args:
        trial: the settings.
        workers: threads that compute side by side.

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
    for knowledge in algorithm.requires:
        if knowledge == "least_loss":
            source, known = trial.task.name, type(task).least_losses is not Task.least_losses
        else:
            told = participation.probability(0) if knowledge == "probability" else getattr(participation, knowledge)
            source, known = trial.participation.name, told is not None
        if not known:
            raise SettingError(
                f"algorithm.name: {trial.algorithm.label!r} is not allowed with {source}, which knows no {knowledge}; "
                "must be a method that does not need it"
            )
    last = trial.evaluation.last
    splits = list(dict.fromkeys([*(trial.evaluation.splits or data.splits), *((last and last.splits) or ())]))
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
    need = Need.of(algorithm, parameters, data.clients, dtype)
    if trial.local.keep_momentum:
        need = need.with_rows(parameters, dtype)
    refuse_what_cannot_fit(need, trial.algorithm.label, parameters, participation, trial.rounds, trial.numerics)
    schedule = trial.local.schedule.bound()
    minibatches = Minibatches(data.parts, trial.local.batch_size, trial.seed, trial.local.last_batch)
    local = LocalTraining(
        steps=trial.local.steps or (trial.local.epochs or 1) * minibatches.per_epoch,
        momentum=trial.local.momentum,
        weight_decay=trial.local.weight_decay,
        keep_momentum=trial.local.keep_momentum,
    )
    return Federation(
        task.to(dtype),
        data,
        participation,
        algorithm,
        minibatches=minibatches,
        local=local,
        lr=lambda t: trial.local.lr * schedule(t),
        alpha=alpha,
        optimizer=partial(OPTIMIZERS[trial.server.optimizer], **trial.server.options()),
        splits=lambda t: trial.evaluation.splits_at(t, trial.rounds) or tuple(data.splits),
        seed=trial.seed,
        groups=groups,
        engine=trial.numerics.engine,
        client_memory=trial.numerics.client_memory,
        classes=alike,
        workers=workers,
    )


def _train(trainer: Trainer, federation: Federation, recorder: Recorder, trial: Trial, resume: Path | None) -> None:
    """All rounds, with an evaluation before the first, after the last, and where a stop lost one."""
    if resume is not None:
        federation.load_state_dict(torch.load(resume, map_location="cpu", weights_only=True)["state_dict"])
        if federation.t > trial.rounds:
            raise SettingError(f"rounds: {trial.rounds} is not allowed; must be at least {federation.t}, already done")
    if trial.evaluation.due(federation.t, trial.rounds) and not recorder.has(federation.t):
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
