"""What `--json` prints of a trial."""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from benchmark.sweep.jobs import Job


def described(job: "Job") -> dict[str, Any]:
    """A trial or an analysis: its names, seed, settings, state, run folder and last metrics."""
    from benchmark.config.digest import array_file

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
        "settings": job.trial.spec(array_file),
        "state": job.folder.state,
        "folder": str(job.folder.path),
        "metrics": {} if history.empty else history.iloc[-1].to_dict(),
    }
