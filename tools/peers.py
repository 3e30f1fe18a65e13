"""Compares Rollcall's speed with the alternatives: pfl-research, Flower, and a plain loop.

    pip install 'pfl[pytorch]' 'flwr[simulation]' .
    python tools/peers.py

All contestants train the same networks by FedAvg on the same random data: five local steps of SGD with batches of 16,
ten active clients in a round. Each measurement is a process of its own, and the contestants alternate. The first rounds
are not timed. Memory is the peak of the largest process.
"""

import argparse
import json
import os
import resource
import statistics
import subprocess
import sys
from collections.abc import Callable
from functools import cache
from pkgutil import resolve_name
from time import perf_counter
from typing import Any, NamedTuple, TypeAlias

import torch
from lightning.pytorch import Callback
from torch.nn.functional import cross_entropy

from rollcall import simulate
from rollcall.tasks import MODELS, supervised

STEPS, BATCH, ACTIVE, LR = 5, 16, 10, 0.01
UNTIMED = 3
"""The first rounds, which contain one-time work."""

Tick: TypeAlias = Callable[[], None]
"""A contestant calls it at the end of each round."""


class Work(NamedTuple):
    """A training problem. Each client holds STEPS * BATCH samples, so that one epoch is STEPS steps everywhere."""

    shape: tuple[int, ...]  # of an input
    model: str  # a network of Rollcall, with ten classes
    clients: int
    rounds: int  # timed rounds of one measurement

    def network(self) -> Any:
        """A new network with random parameters."""
        torch.manual_seed(0)
        return MODELS[self.model](self.shape, 10)

    def samples(self) -> tuple[Any, Any]:
        """Inputs [clients, n, ...] and labels [clients, n]."""
        draw = torch.Generator().manual_seed(1)
        inputs = torch.randn(self.clients, STEPS * BATCH, *self.shape, generator=draw)
        return inputs, torch.randint(0, 10, (self.clients, STEPS * BATCH), generator=draw)


WORKS = {
    "cnn": Work((3, 32, 32), "fedpbc_cifar10", clients=100, rounds=12),
    "softmax": Work((1, 8, 8), "linear", clients=20, rounds=300),
}


def rollcall(work: Work, tick: Tick) -> None:
    """`simulate` with its defaults: partition, roll call, rounds in Lightning, one evaluation at the end."""

    class Ticks(Callback):
        def on_train_batch_end(self, *_: object) -> None:
            tick()

    inputs, labels = work.samples()
    train = inputs.flatten(0, 1), labels.flatten()
    test = train[0][:100], train[1][:100]
    rounds = work.rounds + UNTIMED
    trial = {
        "task": supervised(train, test, lambda seed: work.network(), clients=work.clients, partition="iid"),
        "participation": {"name": "uniform", "per_round": ACTIVE},
        "algorithm": "fedavg",
        "local": {"steps": STEPS, "lr": LR, "batch_size": BATCH},
        "rounds": rounds,
        "evaluation": {"every": rounds},
    }
    simulate(trial, callbacks=[Ticks()])


def plain_loop(work: Work, tick: Tick) -> None:
    """Load the state, make an optimizer, train, average; one client after another, with all threads."""
    server, worker = work.network(), work.network()
    inputs, labels = work.samples()
    draw = torch.Generator().manual_seed(2)
    for _ in range(work.rounds + UNTIMED):
        ends = []
        for i in torch.randperm(work.clients, generator=draw)[:ACTIVE].tolist():
            worker.load_state_dict(server.state_dict())
            train(worker, inputs[i], labels[i], draw)
            ends.append({name: value.clone() for name, value in worker.state_dict().items()})
        server.load_state_dict({name: torch.stack([end[name] for end in ends]).mean(0) for name in ends[0]})
        tick()


def train(network: Any, inputs: Any, labels: Any, draw: Any) -> None:
    """An epoch of SGD, as most code writes it."""
    optimizer = torch.optim.SGD(network.parameters(), lr=LR)
    for rows in torch.randperm(len(inputs), generator=draw).split(BATCH):
        optimizer.zero_grad()
        cross_entropy(network(inputs[rows]), labels[rows]).backward()
        optimizer.step()


def pfl_research(work: Work, tick: Tick) -> None:
    """pfl-research's simulation, in as many processes as run this."""
    from pfl.aggregate.simulate import SimulatedBackend
    from pfl.algorithm import FederatedAveraging, NNAlgorithmParams
    from pfl.callback.base import TrainingProcessCallback
    from pfl.data import FederatedDataset, get_user_sampler
    from pfl.data.pytorch import PyTorchTensorDataset
    from pfl.hyperparam import NNEvalHyperParams, NNTrainHyperParams
    from pfl.metrics import Metrics
    from pfl.model.pytorch import PyTorchModel

    class Network(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.network = work.network()

        def loss(self, x: Any, y: Any) -> Any:
            return cross_entropy(self.network(x), y)

        def metrics(self, x: Any, y: Any) -> dict[str, Any]:
            return {}

    class Ticks(TrainingProcessCallback):  # type: ignore[type-arg, unused-ignore]
        def after_central_iteration(self, *_: object, **__: object) -> tuple[bool, Any]:
            tick()
            return False, Metrics()

    inputs, labels = work.samples()
    data = FederatedDataset(
        lambda i: PyTorchTensorDataset((inputs[i], labels[i])),
        get_user_sampler("minimize_reuse", list(range(work.clients))),
    )
    network = Network()
    model = PyTorchModel(network, torch.optim.SGD, torch.optim.SGD(network.parameters(), lr=1.0))
    FederatedAveraging().run(
        algorithm_params=NNAlgorithmParams(work.rounds + UNTIMED, 10**6, ACTIVE, 0),
        backend=SimulatedBackend(training_data=data, val_data=data),
        model=model,
        model_train_params=NNTrainHyperParams(local_num_epochs=1, local_learning_rate=LR, local_batch_size=BATCH),
        model_eval_params=NNEvalHyperParams(local_batch_size=BATCH),
        callbacks=[Ticks()],
    )


@cache
def kept(work: Work) -> tuple[Any, Any, Any]:
    """A network and the samples of a process."""
    return work.network(), *work.samples()


def flower(work: Work, tick: Tick) -> None:
    """Flower's simulation: a client app in Ray actors, one for each core and thread.

    A client app is pickled with each message, so an actor keeps its data and network in the module, not in the app.
    """
    from flwr.app import ArrayRecord, Message, MetricRecord, RecordDict
    from flwr.clientapp import ClientApp
    from flwr.serverapp import ServerApp
    from flwr.serverapp.strategy import FedAvg
    from flwr.simulation import run_simulation

    client_app, server_app = ClientApp(), ServerApp()

    @client_app.train()  # type: ignore[untyped-decorator, unused-ignore]
    def local_training(message: Any, context: Any) -> Any:
        torch.set_num_threads(1)  # every core has an actor
        network, inputs, labels = resolve_name("peers:kept")(work)
        i = int(context.node_config["partition-id"])
        network.load_state_dict(message.content["arrays"].to_torch_state_dict())
        train(network, inputs[i], labels[i], torch.Generator().manual_seed(i))
        content = {"arrays": ArrayRecord(network.state_dict()), "metrics": MetricRecord({"num-examples": 1})}
        return Message(content=RecordDict(content), reply_to=message)

    @server_app.main()  # type: ignore[untyped-decorator, unused-ignore]
    def serve(grid: Any, context: Any) -> None:
        grid.pull_interval = 0.005  # seconds between its looks for replies; default 0.1
        strategy = FedAvg(
            fraction_train=ACTIVE / work.clients,
            min_train_nodes=ACTIVE,
            fraction_evaluate=0.0,
            min_available_nodes=work.clients,
        )
        arrays = ArrayRecord(work.network().state_dict())
        strategy.start(grid, arrays, num_rounds=work.rounds + UNTIMED, evaluate_fn=lambda server_round, arrays: tick())

    resources = {"client_resources": {"num_cpus": 1, "num_gpus": 0.0}, "init_args": {"include_dashboard": False}}
    run_simulation(server_app, client_app, work.clients, backend_config=resources)


CONTESTANTS = {
    "rollcall": rollcall,
    "pfl-research": pfl_research,
    "pfl-research, one process": pfl_research,
    "Flower": flower,
    "plain loop": plain_loop,
}
LAUNCH = {"pfl-research": ["-m", "torch.distributed.run", "--nproc-per-node", str(os.cpu_count())]}
"""How Python starts a contestant that shares the clients of a round among processes, one for each core."""


def measure(name: str, work: Work) -> dict[str, float]:
    """One measurement, in this process: milliseconds a round, and peak memory in MiB."""
    ends: list[float] = []
    CONTESTANTS[name](work, lambda: ends.append(perf_counter()))
    timed = ends[UNTIMED - 1 :]
    usage = [resource.getrusage(who).ru_maxrss for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return {"round_ms": 1000 * (timed[-1] - timed[0]) / (len(timed) - 1), "memory_mb": max(usage) / 1024}


def compare(work: str, repeat: int) -> str:
    """A table in Markdown, median (least to most). Contestants alternate; each measurement is a process of its own."""
    quiet = os.environ | {"FLWR_TELEMETRY_ENABLED": "0", "RAY_USAGE_STATS_ENABLED": "0"}
    results: dict[str, list[dict[str, float]]] = {name: [] for name in CONTESTANTS}
    for i in range(repeat):
        for name, rows in results.items():
            command = [sys.executable, *LAUNCH.get(name, []), __file__, "--measure", name, "--work", work]
            run = subprocess.run(command, env=quiet, capture_output=True, text=True, check=False)
            if run.returncode:
                sys.exit(f"{name} failed:\n{run.stderr[-2000:]}")
            rows.append(json.loads(run.stdout.splitlines()[-1]))
            print(f"{work}: {name}, {i + 1} of {repeat}: {rows[-1]['round_ms']:.1f} ms a round", file=sys.stderr)
    ours = statistics.median(row["round_ms"] for row in results["rollcall"])
    lines = [f"| {work} | ms a client-round | rounds a second | MiB | to Rollcall |", "| --- | --- | --- | --- | --- |"]
    for name, rows in results.items():
        times = sorted(row["round_ms"] for row in rows)
        middle = statistics.median(times)
        spread = f"{middle / ACTIVE:.2f} ({times[0] / ACTIVE:.2f} to {times[-1] / ACTIVE:.2f})"
        memory = statistics.median(row["memory_mb"] for row in rows)
        lines.append(f"| {name} | {spread} | {1000 / middle:,.1f} | {memory:,.0f} | {middle / ours:.2f} |")
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repeat", type=int, default=3, help="repetitions")
    parser.add_argument("--work", default="cnn,softmax", help=f"of {', '.join(WORKS)}")
    parser.add_argument("--measure", choices=CONTESTANTS, help=argparse.SUPPRESS)  # how this script calls itself
    options = parser.parse_args()
    if options.measure:
        measured = measure(options.measure, WORKS[options.work])
        if os.environ.get("RANK", "0") == "0":  # of several processes the first
            print(json.dumps(measured))
        return
    for work in options.work.split(","):
        print(compare(work, options.repeat), end="\n\n")


if __name__ == "__main__":
    main()
