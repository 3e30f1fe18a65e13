"""Digests: the name of a run follows from all settings that decide its result."""

import hashlib
import json
from collections.abc import Callable, Hashable
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import yaml

from benchmark.config.base import Settings
from benchmark.config.registry import Choice
from benchmark.config.renamed import FORMER

SINCE: dict[tuple[str, ...], Any] = {
    ("numerics", "client_memory"): "device",
    ("evaluation", "weights"): [],
    ("evaluation", "metrics"): [],
    ("evaluation", "last"): None,
    ("local", "epochs"): None,
    ("local", "last_batch"): "keep",
    ("local", "momentum"): 0.0,
    ("local", "keep_momentum"): False,
    ("local", "weight_decay"): 0.0,
    ("local", "optimizer"): "sgd",
    ("local", "betas"): [0.9, 0.999],
    ("local", "eps"): 1e-8,
    ("local", "clip_norm"): None,
    ("server", "weight_decay"): 0.0,
    ("task", "augmentation", "fill"): "black",
    ("participation", "lasting"): "both",
    ("algorithm", "losses"): "minibatch",
}
"""Settings that were added later, with the value that describes earlier runs. A digest leaves a setting out if it has
this value, so that earlier runs keep their digests."""


class Spec(Settings):
    """The settings of one run folder."""

    if TYPE_CHECKING:  # pydantic would list the fields of a base first
        seed: int

        @property
        def rounds(self) -> int: ...

    @property
    def label(self) -> str:
        """The name of what is run, in one word."""
        raise NotImplementedError

    @property
    def source(self) -> str | None:
        """The SHA-256 of a user's code, if the run uses any."""
        return None

    def spec(self, array: Callable[[np.ndarray], Any]) -> dict[str, Any]:
        """All settings as plain data, defaults included; `array` converts each array."""
        return {key: _plain(getattr(self, key), array) for key in type(self).model_fields}

    @property
    def digest(self) -> str:
        """Ten hexadecimal digits that follow from the settings and from the code of a user's algorithm.

        The number of rounds is left out, so that a run can be extended. No round depends on it: a method that needs a
        horizon has an option of its own, such as `fedavg_debiased: {horizon: 500}`.
        """
        spec = self.spec(
            lambda a: [str(a.dtype), a.shape, hashlib.sha256(np.ascontiguousarray(a).tobytes()).hexdigest()]
        )
        spec.pop("rounds", None)
        spec = {FORMER.get(key, key): value for key, value in spec.items()}
        if self.source:
            spec["algorithm"]["name"] = self.source
        for (*sections, setting), before in SINCE.items():
            inner: Any = spec
            for section in sections:
                inner = inner.get(section) if isinstance(inner, dict) else None
            if isinstance(inner, dict) and setting in inner and inner[setting] == before:
                del inner[setting]
        return hashlib.sha256(json.dumps(spec, sort_keys=True).encode()).hexdigest()[:10]

    @property
    def name(self) -> str:
        """The name of the run folder, such as fedpbc-seed0-3f2a91c07d."""
        return f"{self.label}-seed{self.seed}-{self.digest}"

    def save(self, folder: Path) -> None:
        """Write trial.yaml, which `Trial.read` reads; arrays are saved beside it as .npy files."""

        def beside(array: np.ndarray) -> str:
            file = array_file(array)
            np.save(folder / file, array)
            return file

        (folder / "trial.yaml").write_text(yaml.safe_dump(self.spec(beside), sort_keys=False))


def array_file(array: np.ndarray) -> str:
    """The name of the file that holds an array."""
    return f"{hashlib.sha256(array.tobytes()).hexdigest()[:10]}.npy"


def flatten(spec: Any, prefix: str = "") -> dict[str, str]:
    """Nested settings by dotted name, as text; the name of a choice has the key of the choice."""
    if not isinstance(spec, dict):
        return {prefix: _text(spec) if isinstance(spec, list) else _scalar(type(spec).__name__, spec)}
    flat: dict[str, str] = {}
    for key, value in spec.items():
        path = prefix if key == "name" else f"{prefix}.{key}".lstrip(".")
        flat |= flatten(value, path)
    return flat


def known_since(settings: dict[str, str]) -> dict[str, str]:
    """Settings as text without those that `SINCE` leaves out, so that runs of different ages can be compared."""
    later = {".".join(path): _text(value) for path, value in SINCE.items()}
    return {key: value for key, value in settings.items() if later.get(key) != value}


@cache
def _scalar(kind: str, value: Hashable) -> str:
    """Cached, because YAML is slow and most settings repeat; `kind` tells 1, 1.0 and True apart, which are equal."""
    return _text(value)


def _text(value: Any) -> str:
    return yaml.safe_dump(value, default_flow_style=True, width=10**6).removesuffix("...\n").strip()


def _plain(value: Any, array: Callable[[np.ndarray], Any]) -> Any:
    if isinstance(value, Settings):
        return {key: _plain(getattr(value, key), array) for key in type(value).model_fields}
    if isinstance(value, Choice):
        return {"name": value.name} | {key: _plain(option, array) for key, option in value.options.items()}
    if isinstance(value, np.ndarray):
        return array(value)
    if isinstance(value, tuple | list):
        return [_plain(item, array) for item in value]
    return value
