"""The participation model of a YAML file or of an experiment, for `rollcall participation`."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from pydantic import Field, PositiveFloat, PositiveInt

from rollcall.benchmark.config.base import Settings, load_yaml, validated
from rollcall.benchmark.config.digest import array_file
from rollcall.benchmark.config.errors import SettingError, at
from rollcall.benchmark.config.experiment import Experiment, places
from rollcall.benchmark.config.trial import ParticipationChoice, Trial
from rollcall.benchmark.federation.build import build
from rollcall.benchmark.sweep.estimate import missing
from rollcall.participation import Participation, Population
from rollcall.tasks.streams import stream


class Classes(Settings):
    """Class distributions for clients without data."""

    count: PositiveInt = Field(10, description="C, the number of classes")
    alpha: PositiveFloat = Field(
        0.1, description="concentration of the Dirichlet distribution from which each client's classes are drawn"
    )


class RollCall(Settings):
    """The content of a YAML file with a participation model."""

    clients: PositiveInt = Field(description="m, the number of clients")
    seed: int = Field(0, ge=0, description="seed of all random draws")
    classes: Classes = Field(Classes(), description="class distributions of the clients")
    participation: ParticipationChoice = Field(description="the participation model")

    def model(self) -> Participation:
        """Build the model.

        Raises:
            SettingError: an option does not fit the clients.
        """
        shape = np.full(self.classes.count, self.classes.alpha)
        nu = stream(self.seed, "partition").dirichlet(shape, size=self.clients)
        with at("participation"):
            model: Participation = self.participation.build(Population(self.clients, self.seed, nu))
        return model


def load(spec: str, only: Mapping[str, list[Any]] | None = None) -> tuple[Participation, str]:
    """The model of a YAML file or of an experiment: `fedpbc/table1:markov`, or `quickstart`, which has only one.

    The second `bernoulli` of an experiment is called `bernoulli#2`. If panels differ in their data, the first panel
    whose data set is on this machine counts.

    Args:
        spec: the file, or EXPERIMENT:MODEL.
        only: labels to keep by axis of the experiment, such as the panel.

    Returns:
        the model; and its panel, empty if there is but one.

    Raises:
        SettingError: the model does not exist, one of its options is not allowed, or its data set is not here.
    """
    content: Any = load_yaml(Path(spec)) if Path(spec).is_file() else None
    if isinstance(content, dict) and "trial" not in content:
        if only:
            raise SettingError("--only is not allowed with a file of a participation model; it has no panels")
        return validated(RollCall, content).model(), ""
    name, _, wanted = spec.partition(":")
    experiment = Experiment.read(name).only(only or {})
    models = _models(experiment)
    if not models:
        raise SettingError(f"participation: {name} has no participation model; its panels are analyses")
    if wanted not in models and (wanted or len(models) > 1):
        raise SettingError(f"participation: {wanted!r} is not a model of {name}; must be one of {', '.join(models)}")
    candidates = models[wanted or next(iter(models))]
    panel, trial = next((pair for pair in candidates.items() if not missing([pair[1]])), (None, None))
    if panel is None or trial is None:
        absent = missing(list(candidates.values()))
        raise SettingError(f"no data set of {spec} is here; to download one: rollcall data fetch {absent[0]}")
    return build(trial).participation, panel if len(experiment.panels) > 1 else ""


def _models(experiment: Experiment) -> dict[str, dict[str, Trial]]:
    """For each participation model of an experiment, by label, the first trial of each panel that has it."""
    models: dict[str, dict[str, Trial]] = {}
    labels: dict[str, str] = {}
    for place in places(experiment):
        if not isinstance(place.trial, Trial):
            continue
        settings = json.dumps(place.trial.complete(array_file)["participation"], sort_keys=True)
        if settings not in labels:
            label = place.labels.get("participation", place.trial.participation.name)
            same = sum(name.partition("#")[0] == label for name in models)
            labels[settings] = f"{label}#{same + 1}" if same else label
        models.setdefault(labels[settings], {}).setdefault(place.labels["panel"], place.trial)
    return models
