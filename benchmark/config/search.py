"""The hyper-parameter search of an experiment: what `rollcall tune` does without options."""

from typing import Any, Literal

from pydantic import Field, NonNegativeInt, PositiveInt

from rollcall.benchmark.config.base import Settings
from rollcall.benchmark.config.metric import Metric, MetricName

Scheduler = Literal["none", "asha", "median", "hyperband"]


class Search(Settings):
    """A search of an experiment's hyper-parameters. It is part of no digest: runs do not depend on it."""

    space: dict[str, Any] = Field(
        min_length=1,
        description="domains by dotted setting, such as `local.lr: loguniform(1e-3,1)`; below the name of a method, "
        "those of this method alone",
    )
    samples: PositiveInt | Literal["grid"] = Field(30, description="samples of each cell; `grid`: all combinations")
    rounds: PositiveInt | None = Field(None, description="rounds of a sample; by default those of its cell")
    seeds: tuple[NonNegativeInt, ...] = Field((1000,), min_length=1, description="seeds; none of the experiment's")
    metric: MetricName = Field(Metric("validation/accuracy"), description="metric that judges samples")
    scheduler: Scheduler = Field("none", description="which of Tune's schedulers stops bad samples early")
    per: tuple[str, ...] = Field((), description="axes with a search of their own; by default all")
    finals: PositiveInt | None = Field(
        None,
        description="makes the experiment a board: each of `seeds` is an independent search, and its answer runs with "
        "so many further seeds of the grid",
    )
