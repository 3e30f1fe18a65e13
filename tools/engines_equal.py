"""Compares both engines on a GPU with the sequential engine on the CPU, and finishes on the CPU what began on the GPU.

    python tools/engines_equal.py --device cuda

All in float64. It needs no pytest, so that it runs on a bare machine with a GPU. It prints a line for each comparison
and exits with 1 if one of them differs by more than 1e-10.
"""

import argparse
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
from jaxtyping import Float
from torch import nn

from rollcall import simulate
from rollcall.algorithms import ALGORITHMS

Vector: TypeAlias = Float[np.ndarray, "d"]
"""Parameters of a model."""

MOST = 1e-10
ONE_STEP = ("fedsgd", "fedsgd_iw")
DIGITS: dict[str, Any] = {
    # Six clients of uneven size, each of them seldom active: there are rounds without any client.
    "task": {"name": "digits", "clients": 6, "model": "mlp", "partition": {"name": "dirichlet", "alpha": 0.5}},
    "participation": {"name": "markov_pi_lambda", "probability": 0.3, "correlation": 0.4},
    "rounds": 20,
    "evaluation": {"every": 10},
}


def cnn(shape: tuple[int, ...], classes: int) -> nn.Module:
    """A small convolutional network for images of 8 x 8 pixels."""
    layers = nn.Conv2d(shape[0], 4, 3), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(), nn.Linear(36, classes)
    return nn.Sequential(*layers)


def trials() -> Iterator[tuple[str, dict[str, Any]]]:
    """The trials to compare, by name: every method, and ways of local training on which engines differ."""
    for method in ALGORITHMS:
        local = {"steps": 1 if method in ONE_STEP else 3, "lr": 0.05, "batch_size": 8}
        yield method, DIGITS | {"algorithm": method, "local": local}
    epochs = {"epochs": 2, "lr": 0.05, "batch_size": 8, "momentum": 0.9, "weight_decay": 0.01}
    yield "fedavg, two epochs, momentum", DIGITS | {"algorithm": "fedavg", "local": epochs}
    convolutions = DIGITS["task"] | {"model": f"{__file__}:cnn", "augmentation": {"name": "crop_flip", "padding": 1}}
    local = {"steps": 3, "lr": 0.05, "batch_size": 8}
    yield "fedpbc, convolutions", DIGITS | {"task": convolutions, "algorithm": "fedpbc", "local": local}


def server(trial: dict[str, Any], engine: str, device: str, folder: Path | None = None) -> Vector:
    """The server model at the end of a trial in float64."""
    numerics = {"dtype": "float64", "engine": engine, "device": device}
    return simulate(trial | {"numerics": numerics}, folder=folder).server


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", default="cuda", help="cuda or cpu")
    parser.add_argument("--finish", type=Path, help=argparse.SUPPRESS)  # how this script calls itself
    options = parser.parse_args()
    if options.finish:
        for i, (_, trial) in enumerate(trials()):
            np.save(options.finish / f"{i}.npy", server(trial, "auto", "auto", options.finish / str(i)))
        return
    wrong = 0

    def report(name: str, how: str, ours: Vector, expected: Vector) -> None:
        nonlocal wrong
        distance = float(np.abs(ours - expected).max() / max(1.0, np.abs(expected).max()))
        wrong += not distance <= MOST
        print(f"{name:32} {how:20} {distance:.1e}  {'equal' if distance <= MOST else 'DIFFERENT'}", flush=True)

    expected = []
    with tempfile.TemporaryDirectory() as folder:
        for i, (name, trial) in enumerate(trials()):
            expected.append(server(trial, "sequential", "cpu"))
            for engine in ("sequential", "vectorised"):
                report(name, engine, server(trial, engine, options.device), expected[i])
            # With device `auto`, a run is the same trial on a GPU and on a CPU, so that it can move.
            server(trial | {"rounds": trial["rounds"] // 2}, "auto", "auto", Path(folder) / str(i))
        on_cpu = os.environ | {"CUDA_VISIBLE_DEVICES": ""}
        subprocess.run([sys.executable, __file__, "--finish", folder], env=on_cpu, check=True)
        for i, (name, _) in enumerate(trials()):
            report(name, "finished on the CPU", np.load(Path(folder) / f"{i}.npy"), expected[i])
    sys.exit(wrong > 0)


if __name__ == "__main__":
    main()
