"""What `--json` tells of a trial."""

from typing import Any


def report(job: Any) -> dict[str, Any]:
    """A trial as `--json` tells of it."""
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
        "state": job.folder.state,
        "folder": str(job.folder.path),
        "metrics": {} if history.empty else history.iloc[-1].to_dict(),
    }
