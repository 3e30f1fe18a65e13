"""For those who have a Tuner of Ray already: the trials of an experiment as a trainable (docs/howto/libraries.md)."""

from collections.abc import Callable
from pathlib import Path
from time import sleep
from typing import Any

from rollcall.benchmark.config.errors import SettingError
from rollcall.benchmark.config.experiment import Experiment
from rollcall.benchmark.config.grid import grid_points

__all__ = ["trainable"]


def trainable(experiment: Experiment | str | Path, store: Path | str = "runs") -> Callable[[dict[str, Any]], None]:
    """A function that Tune takes as a trainable. It runs one trial and reports every evaluation, with `round`.

    Its configuration names a run of the experiment: labels by axis (`panel`, `algorithm`, `participation`, ...), and
    values by dotted setting, `seed` included. The run folder is the one of `rollcall run`, so a finished run is not run
    again, and an interrupted one resumes; all machines must see it. A trial that fails raises its error; one that
    diverged ends, with `state` `diverged`. A scheduler that changes settings of a running trial cannot be used.

    Args:
        experiment: a name, the path of a YAML file, or an `Experiment`.
        store: folder of the run folders.
    """
    from rollcall.benchmark.sweep.ray_executor import here

    chosen = experiment if isinstance(experiment, Experiment) else Experiment.read(str(experiment))
    home = Path(store).resolve() / chosen.home
    place = here()

    def rollcall_trial(config: dict[str, Any]) -> None:
        from ray import tune

        from rollcall.benchmark.federation.run_folder import RunFolder
        from rollcall.benchmark.sweep.jobs import run_job
        from rollcall.benchmark.sweep.ray_executor import Reports, go_to

        go_to(place)
        axes = {"panel", *chosen.axes} - {"seed"}
        labels = {axis: [label] for axis, label in config.items() if axis in axes}
        settings = {path: [value] for path, value in config.items() if path not in axes}
        runs = grid_points(chosen.only(labels).varied(settings))
        if len(runs) != 1:
            left = ", ".join(sorted(axes - config.keys() - {"panel"}))
            raise SettingError(f"config: {config} names {len(runs)} runs of {chosen.name}; must name one. Axes: {left}")
        trial = runs[0].trial
        run = RunFolder(home / trial.name)
        reports = Reports(run)
        while not (error := run_job(trial, run.path, reports, callbacks=[reports])) and run.in_use:
            sleep(1.0)  # another trial has the same configuration: its result is this one's too
        if error:
            raise RuntimeError(error)
        if not reports.ended:
            reports.rest()
            tune.report({**next(reversed(run.rows()), {}), "state": run.state, "error": ""})

    return rollcall_trial
