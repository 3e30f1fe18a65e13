"""The command line in this process, and an experiment that takes no time."""

import sys
from pathlib import Path

import pytest
import yaml

from rollcall.cli import main

TINY = {
    "title": "Tiny",
    "trial": {
        "task": {"name": "quadratic", "targets": [[0.0, 1.0], [4.0, 5.0], [2.0, -3.0]]},
        "participation": {"name": "bernoulli", "probability": 0.5},
        "local": {"steps": 2, "lr": 0.1},
        "rounds": 20,
    },
    "grid": {"seed": [0, 1], "algorithm": ["fedavg", "fedpbc"]},
    "report": {"metrics": {"train/distance": "min"}, "last_rounds": 10},
}


def write(folder: Path, name: str = "tiny", **changes) -> str:
    """An experiment file like TINY, and its path."""
    file = folder / f"{name}.yaml"
    file.write_text(yaml.safe_dump(TINY | changes, sort_keys=False))
    return str(file)


def rollcall(capsys: pytest.CaptureFixture, *arguments: str) -> tuple[int, str, str]:
    """Exit code, output and errors of `rollcall ARGUMENTS`."""
    before, sys.argv = sys.argv, ["rollcall", *arguments]
    try:
        main()
        code = 0
    except SystemExit as end:
        code = int(end.code or 0)
    finally:
        sys.argv = before
    return (code, *capsys.readouterr())
