"""`run_trials`: a list of trials into a store, with Ray or one by one."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.console import Console

from rollcall.benchmark.config.experiment import GridPoint, read_trial
from rollcall.benchmark.sweep.pool import Executor, Pool, RayOptions

if TYPE_CHECKING:
    from rollcall.benchmark.config.analysis import Analysis
    from rollcall.benchmark.config.trial import Trial
    from rollcall.benchmark.sweep.jobs import Ends


def run_trials(
    trials: "Sequence[GridPoint | Trial | Analysis | Mapping[str, Any]]",
    experiment: str,
    *,
    store: Path | str = "runs",
    executor: Executor | None = None,
    options: RayOptions | None = None,
    console: Console | None = None,
    mlflow: bool = True,
) -> "Ends":
    """Run trials into `STORE/EXPERIMENT`. Finished ones are skipped, interrupted ones resumed; one that fails stops
    no other.

    Args:
        trials: mappings as in an experiment file, `Trial`s, or places of a grid, which have labels.
        experiment: the folder of the run folders in the store.
        store: folder of the run folders.
        executor: `ray` or `inline`; by default Ray if it is installed.
        options: how trials run with Ray.
        console: for the progress; None for no output.
        mlflow: whether to copy the runs to MLflow, if it is installed.

    Returns:
        How the runs ended, and `frame`, a row for each run.

    Raises:
        SettingError: a setting is not allowed; nothing has run.
    """
    from rollcall.benchmark.sweep.jobs import Job, check, check_folders

    jobs: dict[str, Job] = {}
    for one in trials:
        spec = one.trial if isinstance(one, GridPoint) else read_trial(dict(one)) if isinstance(one, Mapping) else one
        labels = one.labels if isinstance(one, GridPoint) else {}
        jobs.setdefault(spec.digest, Job(spec, experiment, Path(store), labels))
    check_folders(jobs.values())
    check(job for job in jobs.values() if not job.ended)
    with Pool.of(executor, options or RayOptions(), console, mlflow) as pool:
        return pool(list(jobs.values()))
