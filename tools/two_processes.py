"""One trial in one process and in two: the largest difference of the models, and the time of a round.

    python tools/two_processes.py [REPETITIONS]

FedAvg with the CNN of FedPBC on CIFAR-10, ten active clients in each round, five steps of 32 images; every process has
one thread. The first round warms up and is left out. Each time is the least of all rounds: other programs on the
machine make rounds longer. CPU time is that of the main process, which computes five of the ten clients.
"""

import sys
from time import perf_counter, process_time

import numpy as np
import torch
from lightning.pytorch import Callback, LightningModule, Trainer

from benchmark import simulate

ROUNDS = 4
TRIAL = {
    "task": {"name": "cifar10", "clients": 100, "model": "fedpbc_cifar10"},
    "participation": {"name": "uniform", "per_round": 10},
    "algorithm": "fedavg",
    "local": {"steps": 5, "lr": 0.05, "batch_size": 32},
    "rounds": ROUNDS,
    "evaluation": {"every": ROUNDS, "splits": ["test"]},
}


class Clock(Callback):
    """Measures rounds without evaluations.

    Attributes:
        seconds: (wall clock, CPU) of each round after the first.
    """

    def __init__(self) -> None:
        self.seconds: list[tuple[float, float]] = []

    def on_train_batch_start(self, trainer: Trainer, federation: LightningModule, *_: object) -> None:
        self.began = perf_counter(), process_time()

    def on_train_batch_end(self, trainer: Trainer, federation: LightningModule, batch: object, round: int, *_: object) -> None:  # fmt: skip  # noqa: E501
        if round > 0:
            self.seconds.append((perf_counter() - self.began[0], process_time() - self.began[1]))


def main(repetitions: int) -> None:
    torch.set_num_threads(1)
    for dtype in ("float64", "float32"):
        clocks = {1: Clock(), 2: Clock()}
        for _ in range(repetitions):
            one, two = (
                simulate(TRIAL | {"numerics": {"dtype": dtype, "devices": n, "device": "cpu"}}, callbacks=[clock])
                for n, clock in clocks.items()
            )
            models = np.abs(one.model - two.model).max()
            metrics = np.abs(one.history - two.history).to_numpy().max()
            print(f"{dtype}: largest difference of the models {models:g}, of the metrics {metrics:g}", flush=True)
        for n, clock in clocks.items():
            wall, cpu = (1e3 * min(times) for times in zip(*clock.seconds, strict=True))
            print(f"{dtype}, processes: {n}: {wall:.0f} ms a round, main process {cpu:.0f} ms of CPU", flush=True)


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 3)
