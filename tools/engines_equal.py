"""Compares engines on a device with the sequential engine on the CPU, and finishes on the CPU what began on the device.

All in float64.

    python tools/engines_equal.py --device cuda

It needs no pytest, so that it runs on a bare machine with a GPU. It prints a line for each comparison and exits with 1
if one of them differs by more than 1e-10.
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

from rollcall import simulate
from rollcall.algorithms import ALGORITHMS
from rollcall.benchmark.config.errors import SettingError

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


def trials() -> Iterator[tuple[str, dict[str, Any]]]:
    """The trials to compare, by name: every method, and ways of local training on which engines differ."""
    for method in ALGORITHMS:
        local = {"steps": 1 if method in ONE_STEP else 3, "lr": 0.05, "batch_size": 8}
        yield method, DIGITS | {"algorithm": method, "local": local}
    epochs = {"epochs": 2, "lr": 0.05, "batch_size": 8, "momentum": 0.9, "weight_decay": 0.01}
    yield "fedavg, two epochs, momentum", DIGITS | {"algorithm": "fedavg", "local": epochs}
    adam = {"steps": 3, "lr": 0.01, "batch_size": 8, "optimizer": "adam", "clip_norm": 1.0}
    yield "fedavg, local Adam, clipped", DIGITS | {"algorithm": "fedavg", "local": adam}
    convolutions = DIGITS["task"] | {"model": "cnn", "augmentation": {"name": "crop_flip", "padding": 1}}
    local = {"steps": 3, "lr": 0.05, "batch_size": 8}
    yield "fedpbc, convolutions", DIGITS | {"task": convolutions, "algorithm": "fedpbc", "local": local}


def server(trial: dict[str, Any], engine: str, device: str, folder: Path | None = None) -> Vector:
    """The server model at the end of a trial in float64."""
    numerics = {"dtype": "float64", "engine": engine, "device": device}
    return simulate(trial | {"numerics": numerics}, folder=folder).server


def difference(ours: Vector, expected: Vector) -> float:
    """The greatest difference, relative to the greatest parameter if that is above 1."""
    return float(np.abs(ours - expected).max() / max(1.0, np.abs(expected).max()))


def finish(folder: Path) -> None:
    """Finish, on this process's device, the runs that another process stopped halfway."""
    for i, (_, trial) in enumerate(trials()):
        if (folder / str(i)).exists():
            np.save(folder / f"{i}.npy", server(trial, "auto", "auto", folder / str(i)))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", default="cuda", help="cuda or cpu")
    parser.add_argument("--engine", default="sequential,vectorised", help="engines to compare, separated by commas")
    parser.add_argument("--only", default="", help="only trials whose name contains this text")
    parser.add_argument("--finish", type=Path, help=argparse.SUPPRESS)  # how this script calls itself
    options = parser.parse_args()
    if options.finish:
        finish(options.finish)
        return
    expected: dict[int, Vector] = {}
    wrong = 0

    def report(name: str, what: str, ours: Vector, i: int) -> None:
        nonlocal wrong
        distance = difference(ours, expected[i])
        wrong += not distance <= MOST
        print(f"{name:32} {what:20} {distance:.1e}  {'equal' if distance <= MOST else 'DIFFERENT'}", flush=True)

    chosen = [(i, name, trial) for i, (name, trial) in enumerate(trials()) if options.only in name]
    with tempfile.TemporaryDirectory() as folder:
        for i, name, trial in chosen:
            expected[i] = server(trial, "sequential", "cpu")
            for engine in options.engine.split(","):
                try:
                    report(name, engine, server(trial, engine, options.device), i)
                except SettingError as error:
                    print(f"{name:32} {engine:20} refused: {error}", flush=True)
            # With device `auto`, a run is the same trial on a GPU and on a CPU, so that it can move.
            server(trial | {"rounds": trial["rounds"] // 2}, "auto", "auto", Path(folder) / str(i))
        on_cpu = os.environ | {"CUDA_VISIBLE_DEVICES": ""}
        subprocess.run([sys.executable, __file__, "--finish", folder], env=on_cpu, check=True)
        for i, name, _ in chosen:
            report(name, "finished on the CPU", np.load(Path(folder) / f"{i}.npy"), i)
    sys.exit(wrong > 0)


if __name__ == "__main__":
    main()
