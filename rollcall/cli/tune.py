"""`rollcall tune`."""

from typing import TYPE_CHECKING, Annotated, Literal

import typer

from rollcall.benchmark.config.errors import SettingError
from rollcall.benchmark.config.experiment import Scheduler
from rollcall.benchmark.config.text import command, duration, parse_values, repeated, strict_json
from rollcall.cli import options as opt
from rollcall.cli.options import STORE, err, plans_of, say

if TYPE_CHECKING:
    from rollcall.benchmark.search.tune import Tuning


def tune(
    experiment: opt.Name,
    space: Annotated[str | None, typer.Option(metavar="SPACE", help="A YAML file, or SETTING=DOMAIN,...")] = None,
    samples: Annotated[int | None, typer.Option(min=1, help="Samples of each cell, at most. Default: 30.")] = None,
    grid: Annotated[bool, typer.Option("--grid", help="Try all combinations instead of samples.")] = False,
    search: Annotated[Literal["random", "optuna"], typer.Option(help="Random samples, or Optuna's TPE.")] = "random",
    scheduler: Annotated[Scheduler | None, typer.Option(help="Tune's scheduler that stops bad samples.")] = None,
    metric: Annotated[str | None, typer.Option(help="What judges samples. Default: validation/accuracy.")] = None,
    mode: Annotated[
        Literal["max", "min"] | None,
        typer.Option(help="The better end. Default: known for accuracies and losses."),
    ] = None,
    seeds: Annotated[str | None, typer.Option(metavar="SEED,...", help="Seeds of the search. Default: 1000.")] = None,
    rounds: opt.Rounds = None,
    per: Annotated[str | None, typer.Option(metavar="AXIS,...", help="Axes with own searches. Default: all.")] = None,
    variant: opt.Variant = "",
    only: opt.Only = None,
    settings: opt.Set = None,
    methods: opt.Methods = None,
    executor: opt.ExecutorChoice = None,
    gpus: opt.Gpus = "0",
    retries: opt.Retries = 1,
    every: opt.Every = "2m",
    address: opt.Address = "",
    storage: opt.Storage = "",
    store: opt.Store = STORE,
    as_json: opt.Json = False,
) -> None:
    """Search hyper-parameters, for every cell alike; rerun to resume."""
    from rollcall.benchmark.search.tune import tune as search_for
    from rollcall.leaderboard.figures import save, searched

    if grid and samples is not None:
        raise SettingError("--samples is not allowed with --grid, which tries all combinations; must be left out")
    chosen = plans_of([experiment], variant, "", only, settings, None, methods)
    if len(chosen) != 1:
        raise SettingError(f"experiment: {experiment!r} is not allowed; must be one experiment")
    tuning = search_for(
        chosen[0].experiment,
        space,
        samples="grid" if grid else samples,
        search_alg=None if search == "random" else search,
        scheduler=scheduler,
        metric=metric,
        mode=mode,
        seeds=None if seeds is None else parse_values("seeds", seeds),
        rounds=rounds,
        per=None if per is None else [axis for axis in per.split(",") if axis],
        execution=opt.execution(store, executor, gpus, retries, every, storage, address),
    )
    for note in tuning.notes:
        say(note, err)
    if not tuning.best:
        if as_json:
            print(strict_json({"best": {}}))
        say(f"No answer: all {len(tuning.samples)} samples failed. Their errors: {tuning.beside('samples.json')}", err)
        raise typer.Exit(1)
    save(searched(tuning), tuning.beside("samples.svg"))
    if as_json:
        print(strict_json({"best": tuning.best}))
    else:
        words = ["run", experiment, *(["--variant", variant] if variant else []), "--tuned", tuning.file]
        words += [*repeated("--algorithm", methods), *repeated("--set", settings), *repeated("--only", only)]
        _tell(tuning, command(*words, store=store))


def _tell(tuning: "Tuning", next_step: str) -> None:
    """Print the best settings of each cell, and the command for the final table."""
    import pandas as pd

    from rollcall.benchmark.search.answer import found

    seconds, answers = tuning.samples.groupby("cell")["seconds"].sum(), tuning.tuned.best
    rows = [
        {
            "cell": name,
            "best settings": " ".join(f"{path}={value}" for path, value in one.settings.items()),
            "score": f"{one.score:.4g}" + ("" if one.spread is None else f" ± {one.spread:.2g}"),
            "samples": one.samples,
            "client gradients": f"{one.gradients:,.0f}",
            "time": duration(seconds[name]),
        }
        for name, one in answers.items()
    ]
    say(found(list(answers.values())))
    if any(one.spread is not None for one in answers.values()):
        say("score: mean ± standard deviation over the seeds of the search")
    print(pd.DataFrame(rows).to_string(index=False))  # not cut to the terminal: settings are copied
    say(f"In {tuning.file}. Final table: {next_step}")
