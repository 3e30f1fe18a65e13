"""The participation model of a YAML file or of an experiment, for `rollcall participation`."""

from pathlib import Path
from typing import Any

import numpy as np
from pydantic import Field, PositiveFloat, PositiveInt

from benchmark.config.base import Settings, load_yaml, validated
from benchmark.config.errors import SettingError, at
from benchmark.config.experiment import Experiment
from benchmark.config.grid import places
from benchmark.config.registry import Choice
from benchmark.config.trial import ParticipationChoice, Trial
from benchmark.federation.build import build
from participation import Participation, Population
from tasks.streams import stream


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


def load(spec: str) -> Participation:
    """The model of a YAML file or of an experiment: `fedpbc/table1:markov`, or `quickstart`, which has only one.

    The second `bernoulli` of an experiment is called `bernoulli#2`.

    Raises:
        SettingError: the model does not exist, or one of its options is not allowed.
    """
    content: Any = load_yaml(Path(spec)) if Path(spec).is_file() else None
    if isinstance(content, dict) and "trial" not in content:
        return validated(RollCall, content).model()
    name, _, wanted = spec.partition(":")
    models = _models(Experiment.read(name))
    if wanted not in models and (wanted or len(models) > 1):
        raise SettingError(f"participation: {wanted!r} is not a model of {name}; must be one of {', '.join(models)}")
    return build(models[wanted or next(iter(models))]).participation


def _models(experiment: Experiment) -> dict[str, Trial]:
    """For each participation model of an experiment, by label, a trial that has it."""
    models: dict[str, Trial] = {}
    seen: list[Choice] = []
    for place in places(experiment):
        if isinstance(place.trial, Trial) and place.trial.participation not in seen:
            seen.append(place.trial.participation)
            label = place.labels.get("participation", place.trial.participation.name)
            same = sum(name.partition("#")[0] == label for name in models)
            models[f"{label}#{same + 1}" if same else label] = place.trial
    return models
