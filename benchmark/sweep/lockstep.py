"""Many small trials at once, in one process: their clients' local steps are computed together.

A small model's local step takes most of its time in Python. Trials that share data, minibatches and participation,
such as the samples of a search, ask their engine for the same work, at different models and rates. Here each trial runs
in a thread of its own, one thread at a time. Where its method calls the clients, it waits; when all wait, one call of
the vectorised engine serves those of the earliest round. The results are those of `simulate` up to rounding.
"""

import sys
from collections.abc import Callable, Iterable, Sequence
from functools import cache
from queue import SimpleQueue
from threading import Thread
from time import monotonic, process_time
from types import SimpleNamespace
from typing import Any

import torch
from jaxtyping import Float, Int
from torch import Tensor

from rollcall.benchmark.config.digest import digest
from rollcall.benchmark.config.text import counted, duration
from rollcall.benchmark.config.trial import Trial
from rollcall.benchmark.engines import Engine, Vectorised, Work, float32_products, kernels_of_one_thread
from rollcall.benchmark.engines.base import LocalState
from rollcall.benchmark.federation.build import build, device_of
from rollcall.benchmark.federation.module import Federation
from rollcall.benchmark.federation.run_folder import InUse
from rollcall.benchmark.federation.simulation import Records, quiet
from rollcall.benchmark.process import Interrupted, free_cycles, stop_requests
from rollcall.benchmark.sweep.jobs import Job, message_of, run_inline
from rollcall.tasks import evaluating

AT_ONCE = 96
"""Trials that run side by side: enough that a call of the engine costs little for each."""


def run_lockstep(jobs: Sequence[Job], tell: Callable[[str], None] = lambda line: None) -> tuple[dict[str, str], bool]:
    """Run jobs in groups that share their data; those that cannot, one after another.

    `tell` takes a line after each group, with the processor time that the others need at this pace. After SIGINT or
    SIGTERM the running group is given up, and no other starts. Returns the errors by name, and whether it was asked to
    stop.
    """
    groups: dict[str, list[Job]] = {}
    for job in jobs:
        groups.setdefault(shared(job.trial) if isinstance(job.trial, Trial) else "", []).append(job)
    alone = groups.pop("", [])
    (errors, asked), done, began = run_inline(alone), 0, process_time()
    if asked:
        return errors, True
    for group in groups.values():
        for first in range(0, len(group), AT_ONCE):
            part = group[first : first + AT_ONCE]
            with stop_requests() as requested:
                failed, asked = run_group(part, requested)
            errors |= failed
            if asked:
                return errors, True
            done += sum(job.ended or job.trial.name in errors for job in part)  # the others run elsewhere
            left = len(jobs) - len(alone) - done
            pace = (process_time() - began) / max(done, 1)
            time = f"; about {duration(pace * left)} of one core left" if done and left else ""
            tell(f"{len(alone) + done} of {counted(len(jobs), 'trial')}{time}")
    return errors, False


def shared(trial: Trial) -> str:
    """The digest of the settings that trials of a group have in common; empty for a trial that runs by itself."""
    alone = trial.numerics.engine == "sequential" or trial.numerics.dtype not in ("float32", "float64")
    # With a clock, who is active and how long a round lasts depend on all that the clients compute and send.
    if alone or trial.clock is not None or trial.local.momentum or trial.evaluation.weights:
        return ""
    local = trial.local.model_dump(mode="json", exclude={"lr", "schedule"}, fallback=str)
    same = {"task": trial.task, "target": trial.target, "participation": trial.participation, "seed": trial.seed}
    return digest(same | {"local": local, "dtype": trial.numerics.dtype, "device": trial.numerics.device})


class Request(SimpleNamespace):
    """Local steps of clients [a] (`moving`, changed in place), or with `step` their gradients and losses at x."""


class Seat(Engine):
    """One trial of a group, in a thread of its own. It is the trial's engine: all work is done with the other seats'.

    Attributes:
        request: what the trial waits for, first its start; None at its end.
        error: if it failed.
        seconds: that it has taken, with its share of the common work.
    """

    def __init__(self, job: Job, federation: Federation, engine: Engine) -> None:
        super().__init__(engine.model, engine.feed, engine.local)
        self.job, self.federation, self.error, self.seconds = job, federation, "", 0.0
        self.asked: SimpleQueue[Request | None] = SimpleQueue()
        self.served: SimpleQueue[bool] = SimpleQueue()  # whether to go on
        Thread(target=self._run, daemon=True).start()
        self.request = self.asked.get()

    def resume(self, on: bool = True) -> None:
        """Let it compute, or give up, until it asks for something or ends."""
        began = monotonic()
        self.served.put(on)
        self.request = self.asked.get()
        self.seconds += monotonic() - began

    def _ask(self, **request: Any) -> Request:
        """Called in its thread: hand over a request, and go on when it is served."""
        asked = Request(**request)
        self.asked.put(asked)
        if not self.served.get():
            raise Interrupted
        return asked

    def _run(self) -> None:
        try:
            self._ask(t=-1)  # its start
            run_trial(self)
        except (Interrupted, InUse):  # another process runs it
            pass
        except (Exception, SystemExit) as error:  # SystemExit: a part of the user called sys.exit
            self.error = message_of(error)
        self.asked.put(None)
        self.asked.put(None)  # a second Ctrl-C may lose one

    def train(self, work: Work, clients: Int[Tensor, "a"], state: LocalState) -> None:
        if len(clients):
            self._ask(t=work.t, lr=work.lr, clients=clients, step=None, moving=state)

    def differentiate(
        self, work: Work, clients: Int[Tensor, "a"], x: Float[Tensor, "a d"], step: int
    ) -> tuple[Float[Tensor, "a d"], Float[Tensor, "a"]]:
        answer: tuple[Tensor, Tensor] = self._ask(t=work.t, lr=work.lr, clients=clients, step=step, x=x).answer
        return answer


@free_cycles()  # seats, engines and federations are cycles that hold the models of all clients
def run_group(jobs: Sequence[Job], requested: Callable[[], bool] = lambda: False) -> tuple[dict[str, str], bool]:
    """Run the trials of a group side by side. Returns errors by name, and whether it was asked to stop."""
    with quiet(), float32_products("highest"), kernels_of_one_thread(), torch.no_grad():
        trials = [job.trial for job in jobs if isinstance(job.trial, Trial)]
        federations = [build(trial).to(device_of(trial)) for trial in trials]
        federations[0].begin()
        active = cache(federations[0].participation.active)  # one roll call for all
        for federation in federations:
            federation.participation.__dict__ |= {"active": active}
        engine = federations[0].engine.of(sys.maxsize)
        together = isinstance(engine, Vectorised) and not federations[0].model.buffer_names
        pairs = zip(jobs, federations, strict=True) if together else ()
        seats = [Seat(job, federation, engine) for job, federation in pairs]
        try:
            compute(seats, engine, requested)
        finally:  # after an error, too, so that their threads end and their folders are free
            for seat in seats:
                while seat.request is not None:
                    seat.resume(on=False)
    if not together:
        return run_inline(jobs)
    return {seat.job.trial.name: seat.error for seat in seats if seat.error}, requested()


def compute(seats: Sequence[Seat], engine: Engine, requested: Callable[[], bool]) -> None:
    """Let the seats compute until all have ended, or until a stop is requested."""
    ready = seats
    while ready and not requested():
        for seat in ready:
            seat.resume()
        waiting = [(seat, seat.request) for seat in seats if seat.request is not None]
        earliest = min((request.t for _, request in waiting), default=0)
        ready = [seat for seat, request in waiting if request.t == earliest]
        began = monotonic()
        serve(engine, [request for _, request in waiting if request.t == earliest])
        for seat in ready:
            seat.seconds += (monotonic() - began) / len(ready)


def serve(engine: Engine, requests: Iterable[Request]) -> None:
    """Compute requests of one round: those of one kind with one call of the engine."""
    kinds: dict[Any, list[Request]] = {}
    for one in requests:
        kinds.setdefault((one.step, one.step is None and one.moving.correct is None), []).append(one)
    for (step, _), alike in kinds.items():
        work = engine.round(alike[0].t, 1.0)
        clients, sizes = torch.cat([one.clients for one in alike]), [len(one.clients) for one in alike]
        if step is not None:
            gradients, losses = engine.differentiate(work, clients, torch.cat([one.x for one in alike]), step)
            for one, *answer in zip(alike, torch.split(gradients, sizes), torch.split(losses, sizes), strict=True):
                one.answer = tuple(answer)
            continue
        y = torch.cat([one.moving.y for one in alike])
        ones = torch.split(y.new_ones(len(clients)), sizes)
        rates = [
            one.lr * (own if one.moving.scale is None else one.moving.scale)
            for one, own in zip(alike, ones, strict=True)
        ]
        correct = [one.moving.correct for one in alike if one.moving.correct is not None]
        engine.train(work, clients, LocalState(y, torch.cat(rates), torch.cat(correct) if correct else None, None))
        for one, own in zip(alike, torch.split(y, sizes), strict=True):
            one.moving.y.copy_(own)


def run_trial(seat: Seat) -> None:
    """One trial from start to end into its run folder, as `simulate` does it with Lightning."""
    trial, run, federation = seat.job.trial, seat.job.folder, seat.federation
    assert isinstance(trial, Trial)
    federation.begin(seat)
    optimizer = federation.configure_optimizers()
    federation.__dict__ |= {"optimizers": lambda: optimizer}
    federation.trainer = SimpleNamespace(loggers=[], callback_metrics={})  # type: ignore[assignment, unused-ignore]
    loaders, device, records = federation.val_dataloader(), federation.device, Records(run)

    def evaluate() -> None:
        records.began = monotonic()  # the seat counts the seconds
        federation.on_validation_epoch_start()
        with evaluating(federation.model.task):
            for index, loader in enumerate(loaders):
                for number, batch in enumerate(loader):
                    federation.validation_step(tuple(column.to(device) for column in batch), number, index)
        federation.on_validation_epoch_end()
        records.take(federation.t, federation.measured)

    with run.locked(), torch.no_grad():
        if seat.job.ended:  # another process has run it meanwhile
            return
        records.read()  # raises an error if the folder is damaged, before anything is written
        run.checkpoint.unlink(missing_ok=True)  # of an interrupted run of `simulate`: it would be resumed later
        with run.running(trial, device=device.type, threads=1, content=federation.content):
            records.resume_at(-1)
            evaluate()
            while federation.t < trial.rounds and not records.diverged:
                federation.training_step(federation.t, 0)
                records.look_at(federation.server, federation.t)
                if not records.diverged and trial.evaluation.due(federation.t, trial.rounds):
                    evaluate()
            records.end(federation)
            run.ends_with(seconds=round(seat.seconds, 3))
