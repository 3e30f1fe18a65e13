"""What `--json` prints of a trial."""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import numpy as np

    from benchmark.sweep.jobs import Job

LARGEST = 100
"""Entries of the largest array that is printed."""


def described(job: "Job") -> dict[str, Any]:
    """A trial or an analysis: its names, seed, settings, state, run folder and last metrics."""
    history = job.folder.history()
    return {
        "trial": job.trial.name,
        "experiment": job.experiment,
        **{
            kind: getattr(job.trial, kind).label
            for kind in ("algorithm", "participation", "task", "analysis")
            if hasattr(job.trial, kind)
        },
        "seed": job.trial.seed,
        "settings": job.trial.spec(_array),
        "state": job.folder.state,
        "folder": str(job.folder.path),
        "metrics": {} if history.empty else history.iloc[-1].to_dict(),
    }


def _array(array: "np.ndarray") -> Any:
    """The values of a small array; of a large one the name of its file in the run folder."""
    from benchmark.config.digest import array_file

    return array.tolist() if array.size <= LARGEST else array_file(array)
