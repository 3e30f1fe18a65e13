"""A participation model by itself: from a file or an experiment, and what its rounds look like."""

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
    """Class distributions of clients that have no data."""

    count: PositiveInt = Field(10, description="C")
    alpha: PositiveFloat = Field(0.1, description="each client's distribution is drawn from Dirichlet(alpha)")


class RollCall(Settings):
    """What a YAML file of a participation model holds."""

    clients: PositiveInt
    seed: int = Field(0, ge=0)
    classes: Classes = Classes()
    participation: ParticipationChoice

    def model(self) -> Participation:
        """The model, built.

        Raises:
            SettingError: an option that does not fit.
        """
        shape = np.full(self.classes.count, self.classes.alpha)
        nu = stream(self.seed, "partition").dirichlet(shape, size=self.clients)
        with at("participation"):
            return self.participation.build(Population(self.clients, self.seed, nu))


def load(spec: str) -> Participation:
    """The model of a YAML file, or of an experiment: `fedpbc/table1:markov`, or just `quickstart`, which has but one.

    Of several models of a name the second is called `bernoulli#2`.

    Raises:
        SettingError: there is none, or an option of it does not fit.
    """
    content: Any = load_yaml(Path(spec)) if Path(spec).is_file() else None
    if isinstance(content, dict) and "trial" not in content:
        return validated(RollCall, content).model()
    name, _, wanted = spec.partition(":")
    found = _models(Experiment.read(name))
    if wanted not in found and (wanted or len(found) > 1):
        raise SettingError(f"participation: {wanted!r} is not a model of {name}; must be one of {', '.join(found)}")
    return build(found[wanted or next(iter(found))]).participation


def _models(experiment: Experiment) -> dict[str, Trial]:
    """A trial with each of an experiment's models, by the label of the model."""
    found: dict[str, Trial] = {}
    seen: list[Choice] = []
    for place in places(experiment):
        if isinstance(place.trial, Trial) and place.trial.participation not in seen:
            seen.append(place.trial.participation)
            label = place.labels.get("participation", place.trial.participation.name)
            same = sum(name.partition("#")[0] == label for name in found)
            found[f"{label}#{same + 1}" if same else label] = place.trial
    return found
