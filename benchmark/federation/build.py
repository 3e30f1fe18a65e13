"""From a trial's settings to its `Federation`: load the data, make the parts, check that they fit together."""

import copy
import hashlib
import math
from dataclasses import replace
from functools import partial
from typing import Any, Literal, NamedTuple

import numpy as np
import torch
from jaxtyping import Float
from torch import nn
from torch.optim import Optimizer

from rollcall.algorithms import KNOWLEDGE, Algorithm, Round, Rows, Traffic
from rollcall.benchmark.config.choice import Choice
from rollcall.benchmark.config.errors import SettingError, SourceError, at
from rollcall.benchmark.config.source import SUITE, definition
from rollcall.benchmark.config.trial import By, Clock, Trial
from rollcall.benchmark.engines import LocalTraining
from rollcall.benchmark.federation.checked import check_init, check_task, check_training
from rollcall.benchmark.federation.client_weights import classes
from rollcall.benchmark.federation.evaluation import Groups, group, metrics_of
from rollcall.benchmark.federation.module import Federation
from rollcall.benchmark.federation.server_optimizers import OPTIMIZERS
from rollcall.benchmark.federation.state import refuse_what_cannot_fit
from rollcall.participation import Clocked, Participation, Population
from rollcall.participation.clock import speeds
from rollcall.tasks import ClientData, Minibatches, Task, evaluating
from rollcall.tasks.metrics import ClassScores, OverClients


class Precision(NamedTuple):
    """One value of `numerics.dtype`; for `products` see `torch.set_float32_matmul_precision`."""

    dtype: torch.dtype
    lightning: Literal["32-true", "64-true", "bf16-mixed"]
    products: str = "highest"


PRECISIONS = {
    "float32": Precision(torch.float32, "32-true"),
    "float64": Precision(torch.float64, "64-true"),
    "tf32": Precision(torch.float32, "32-true", products="high"),
    "bf16_mixed": Precision(torch.float32, "bf16-mixed"),
}


def device_of(trial: Trial) -> Literal["cpu", "cuda"]:
    """Where a trial computes. `auto` takes no other device than a CUDA GPU: that of a Mac has no float64."""
    return "cuda" if trial.numerics.device != "cpu" and torch.cuda.is_available() else "cpu"


def build(trial: Trial, workers: int = 1) -> Federation:
    """The federation of a trial, in which `workers` threads compute side by side.

    Raises SettingError: a setting that its task, participation model or algorithm does not allow.
    """
    if trial.numerics.device == "cuda" and not torch.cuda.is_available():
        raise SettingError("numerics.device: 'cuda' needs a GPU, but torch finds no GPU; use auto or cpu")
    with at("task"):
        task, data = trial.task.build(trial.seed)
        task = copied(task)  # a user's function may return the same one in each call
        content = content_of(trial, data)
    with at("participation"):
        population = Population(data.clients, trial.seed, data.classes, data.histogram, data.names)
        participation = trial.participation.build(population)
    with at("algorithm"):
        algorithm = trial.algorithm.build()
    minibatches = Minibatches(data.parts, trial.local.batch_size, trial.seed, trial.local.last_batch)
    own, server = trial.local, trial.server
    steps = own.steps or (own.epochs or 1) * minibatches.per_epoch  # epochs become steps
    local = LocalTraining(steps, own.momentum, own.weight_decay, own.keep_momentum, own.clip)
    d = parameter_count(task)
    if trial.clock is not None:
        samples = minibatches.mean * local.of(range(data.clients))
        participation = clocked(trial, trial.clock, population, participation, algorithm, samples, d)
    check_knowledge(trial, task, participation, algorithm)
    reasons = {
        "asks all": algorithm.properties.asks_all,
        "counts them among its m clients (`Properties(weights=False)`)": not algorithm.properties.weights,
        "is told shares of the active clients, in which they count": "share" in algorithm.requires,
    }
    if (why := next((reason for reason, holds in reasons.items() if holds), "")) and not data.parts.sizes.all():
        raise SettingError(
            f"algorithm.name: {trial.algorithm.label!r} is not allowed with clients without samples; it {why}"
        )
    alpha = objective(trial, data)
    try:
        task.weigh(alpha, data)
    except ValueError as error:
        raise SettingError(f"target: {error}") from None
    with at("evaluation"):
        by = trial.evaluation.weights
        client_classes = classes(by, alpha, availability(participation), participation.correlation) if by else None
    dtype = PRECISIONS[trial.numerics.dtype].dtype
    task, data = task.to(dtype), data.cast(dtype)
    with at("task"):
        if not type(task).__module__.startswith(SUITE):
            check_task(task, tuple(column[:2].clone() for column in data.splits["train"]))
        data.check(task)
        check_training(task, data, minibatches)
    metrics = metrics_of(trial.evaluation.metrics, task, data)
    over_clients = any(isinstance(metric, OverClients) for metric in metrics.values())
    groups = sample_groups(trial, data, participation, over_clients)
    scored = "class" in trial.evaluation.by and any(isinstance(metric, ClassScores) for metric in metrics.values())
    if trial.evaluation.by and not scored:  # scores of classes are of a split as a whole
        with torch.no_grad(), evaluating(task):
            measured = task.metrics(tuple(column[:2] for column in data.splits["train"]))
        if not any(values.ndim for values in measured.values()):
            told = f"not allowed with {trial.task.label}, which measures no single sample; must be left out"
            raise SettingError(f"evaluation.by: is {told}")
    x = torch.empty(d, dtype=dtype, device="meta")
    with at("algorithm"):
        try:
            state = algorithm.init(x, data.clients)
        except Exception:  # it may read the numbers of x; on `meta` there are none
            state = algorithm.init(nn.utils.parameters_to_vector(task.parameters()).detach(), data.clients)
    check_init(algorithm, state)
    states = [state, Rows.begin(x, data.clients)] if trial.local.keep_momentum else [state]
    refuse_what_cannot_fit(states, trial.algorithm.label, d, data.clients, device_of(trial))
    schedule, chosen = own.schedule.bound(), server.optimizer
    step = chosen.bound() if isinstance(chosen, Choice) else partial(OPTIMIZERS[chosen], **server.options())

    def optimizer(parameters: list[nn.Parameter]) -> Optimizer:
        made = step(parameters, server.lr)
        if not any(one is parameters[0] for group in made.param_groups for one in group["params"]):
            raise SettingError(
                "server.optimizer: holds other parameters than the model's; must be a class or a function"
            )
        return made

    def lr(t: int) -> float:
        factor = schedule(t)
        rate = own.lr * float(factor) if hasattr(factor, "__float__") else math.nan
        if not 0 < rate < math.inf:
            raise SettingError(f"local.schedule: {factor} in round {t} is not allowed; must be a number above 0")
        return rate

    lr(0)  # a wrong schedule is mostly wrong at the start or the end
    lr(trial.rounds - 1)
    return Federation(
        task,
        data,
        participation,
        algorithm,
        minibatches=minibatches,
        local=local,
        lr=lr,
        alpha=alpha,
        optimizer=optimizer,
        splits_at=lambda t: trial.evaluation.splits_at(t, trial.rounds) or tuple(data.splits),
        seed=trial.seed,
        groups=groups,
        metrics=metrics,
        engine_name=trial.numerics.engine,
        classes=client_classes,
        workers=workers,
        content=content,
    )


def content_of(trial: Trial, data: ClientData) -> str:
    """A digest of data that the user's own code makes or splits, maybe from files that no setting names; else empty."""
    parts = (trial.task, *trial.task.options.values())
    if not any(isinstance(one, Choice) and one.kind in ("task", "partition") and one.source for one in parts):
        return ""
    columns = [column for split in data.splits for column in data.splits[split]]
    arrays = [np.concatenate(data.parts), data.parts.sizes, data.classes, data.histogram, *data.owners.values()]
    content = hashlib.sha256(repr([*data.splits, *data.owners, data.names]).encode())
    for array in (*columns, *(array for array in arrays if array is not None)):
        tensor = torch.as_tensor(array).detach().cpu().contiguous()
        content.update(f"{tensor.dtype} {tuple(tensor.shape)}".encode())
        content.update(tensor.flatten().view(torch.uint8).numpy().data)  # without a copy: data may be large
    return content.hexdigest()[:16]


def objective(trial: Trial, data: ClientData) -> Float[np.ndarray, "m"]:
    """alpha [m], the clients' weights in the objective; they sum to 1. A client without samples has 0."""
    sizes = data.parts.sizes
    if not isinstance(trial.target, str):
        alpha = trial.target
        if len(alpha) != data.clients:
            raise SettingError(f"target: {len(alpha)} weights are not allowed; must be {data.clients}, one a client")
        alpha = np.where(sizes > 0, alpha, 0.0)
        if not alpha.any():
            raise SettingError("target: no client with samples has a weight; must be one")
    else:
        alpha = (sizes if trial.target == "samples" else sizes > 0).astype(np.float64)
    return alpha / alpha.sum()


def copied(task: Task) -> Task:
    """A copy, also of a network with torch's old weight_norm: its weight is computed in each call, and is no leaf."""
    held = (one for module in task.modules() for one in vars(module).values() if isinstance(one, torch.Tensor))
    return copy.deepcopy(task, {id(one): one.detach() for one in held if not one.is_leaf})


def parameter_count(task: Task) -> int:
    """d: the numbers in the parameters that are trained; frozen ones do not count.

    Raises SettingError: none is trained, or a layer does not know its shape yet.
    """
    with at("task"):
        for name, parameter in task.named_parameters():
            if isinstance(parameter, nn.UninitializedParameter):
                raise SettingError(
                    f"{name} has no shape yet (a lazy layer); the network must call its layers once before it is "
                    "returned, or name all sizes"
                )
        for name, tensor in (*task.named_parameters(), *task.named_buffers()):
            if tensor.is_complex():
                must = "must be real: hold it as [..., 2] and use torch.view_as_complex"
                raise SettingError(f"{name}: a complex tensor is not allowed; {must}")
        d = sum(parameter.numel() for parameter in task.parameters() if parameter.requires_grad)
        if not d:
            raise SettingError("the model has no parameter to train; at least one must have requires_grad=True")
    return d


def clocked(
    trial: Trial,
    clock: Clock,
    population: Population,
    participation: Participation,
    algorithm: Algorithm[Any],
    samples: Float[np.ndarray, "m"],
    d: int,
) -> Participation:
    """The available clients that are in time; each computes `samples` a round, for a model of d floats."""
    alone, nobody = first_traffic(algorithm, 1), first_traffic(algorithm, 0)
    if nobody.up or nobody.down:
        raise SettingError(
            f"algorithm.name: {trial.algorithm.label!r} is not allowed with a clock; it exchanges models with clients "
            "that are not available"
        )
    with at("clock"):
        names = ("speed", "up", "down")
        speed, up, down = (speeds(name, clock.bound(name), population, k) for k, name in enumerate(names))
        # A method that selects among the active clients may count no vector of a single one before the first round.
        seconds = max(1, alone.down) * d / down + samples / speed + max(1, alone.up) * d / up
        return Clocked(
            population,
            participation,
            seconds,
            first=clock.wait.first,
            deadline=clock.wait.deadline,
            jitter=clock.jitter,
            failure=clock.bound("failure"),
            trains=samples > 0,
        )


def first_traffic(algorithm: Algorithm[Any], active: int) -> Traffic:
    """What one client, active or not, exchanges in the first round."""
    x = torch.ones(1)
    known: dict[str, Any] = dict.fromkeys(KNOWLEDGE, x)
    return algorithm.traffic(algorithm.init(x, 1), Round(0, torch.arange(active), 1.0, x, **known))


def check_knowledge(trial: Trial, task: Task, participation: Participation, algorithm: Algorithm[Any]) -> None:
    """Refuse an algorithm that requires knowledge which neither the task nor the participation model provides."""
    check_names(trial.algorithm, algorithm.requires)
    for knowledge in algorithm.requires:
        choice, provided = trial.participation, getattr(participation, knowledge, None) is not None
        if knowledge == "least_loss":
            choice, provided = trial.task, type(task).least_losses is not Task.least_losses
        elif knowledge == "probability":
            provided = participation.probability(0) is not None
        if not provided:
            raise SettingError(
                f"algorithm.name: {trial.algorithm.label!r} is not allowed with {choice.label}, which does not provide "
                f"{knowledge}; must be a method that does not need it"
            )


def check_names(choice: Choice, requires: Any) -> None:
    """Refuse `requires` of a class if it is not a tuple of names of oracle knowledge."""
    if not isinstance(requires, tuple | list) or any(name not in KNOWLEDGE for name in requires):
        raise SourceError(
            f"{definition(choice.factory)}: requires: {requires!r} is not allowed; must be a tuple of names, such as "
            f"('probability',), out of {', '.join(KNOWLEDGE)}"
        )


def measured_splits(trial: Trial, data: ClientData) -> list[str]:
    """The splits that are evaluated after some round; SettingError for one that the task does not have."""
    evaluation = trial.evaluation
    last = (evaluation.last and evaluation.last.splits) or ()
    splits = list(dict.fromkeys([*(evaluation.splits or data.splits), *last]))
    for split in splits:
        if split not in data.splits:
            raise SettingError(
                f"evaluation.splits: {split!r} is not allowed with {trial.task.name}; "
                f"must be one of {', '.join(data.splits)}"
            )
    return splits


def sample_groups(trial: Trial, data: ClientData, participation: Participation, over_clients: bool) -> list[Groups]:
    """The groups of samples whose metrics are computed separately, for all splits that are evaluated.

    Statistics over clients need those by client, which are listed only if `evaluation.by` has them.
    """
    evaluation, splits = trial.evaluation, measured_splits(trial, data)
    groups: list[Groups] = []
    unlisted: tuple[By, ...] = ("client",) if over_clients and "client" not in evaluation.by else ()
    for by in (*evaluation.by, *unlisted):
        with at("evaluation"):
            known = availability(participation) if by == "availability" else None  # it may take seconds
            made = [group(by, split, data, known) for split in splits]
        if not any(made):
            what = "metrics: a statistic over clients" if by in unlisted else f"by: {by}"
            raise SettingError(
                f"evaluation.{what} is not allowed with the splits {', '.join(splits)}, whose samples belong to no "
                "client; add train to evaluation.splits"
            )
        groups += [replace(one, listed=by not in unlisted) for one in made if one is not None]
    return groups


def availability(participation: Participation) -> Float[np.ndarray, "m"] | None:
    """How often each client is active, in the long run or else in the first round; None if the model does not say."""
    return participation.stationary if participation.stationary is not None else participation.probability(0)
