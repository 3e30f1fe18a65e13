"""What can be run and named: settings that decide a result, all of them."""

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
    ("evaluation", "last"): None,
    ("local", "epochs"): None,
    ("local", "last_batch"): "keep",
    ("local", "momentum"): 0.0,
    ("local", "keep_momentum"): False,
    ("local", "weight_decay"): 0.0,
    ("server", "weight_decay"): 0.0,
    ("task", "augmentation", "fill"): "black",
    ("participation", "lasting"): "both",
    ("algorithm", "losses"): "minibatch",
}
"""Settings that were added later, and what was done before. A digest leaves them out at that value, so that older runs
keep theirs."""


class Spec(Settings):
    """The settings of one run folder."""

    if TYPE_CHECKING:  # pydantic would list the fields of a base first
        seed: int

        @property
        def rounds(self) -> int: ...

    @property
    def label(self) -> str:
        """What is run, in a word."""
        raise NotImplementedError

    @property
    def source(self) -> str | None:
        """A digest of code that is not the suite's own, if any is run."""
        return None

    def spec(self, array: Callable[[np.ndarray], Any]) -> dict[str, Any]:
        """The settings as plain data, complete with defaults; `array` says what stands for an array."""
        return _plain(self, array)

    @property
    def digest(self) -> str:
        """Ten hexadecimal digits that name a run: its settings and the code of a contributed algorithm.

        The number of rounds is left out, so that a run can grow. Nothing in a round depends on it: a setting that
        follows a horizon names its own, as `fedavg_debiased: {horizon: 500}` does.
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
        """A name for people and folders: fedpbc-seed0-3f2a91c07d."""
        return f"{self.label}-seed{self.seed}-{self.digest}"

    def save(self, folder: Path) -> None:
        """Write trial.yaml, which can be read again; arrays lie beside it as .npy files."""

        def beside(array: np.ndarray) -> str:
            file = array_file(array)
            np.save(folder / file, array)
            return file

        (folder / "trial.yaml").write_text(yaml.safe_dump(self.spec(beside), sort_keys=False))


def array_file(array: np.ndarray) -> str:
    """The name of the file that an array is kept in."""
    return f"{hashlib.sha256(array.tobytes()).hexdigest()[:10]}.npy"


def flatten(spec: Any, prefix: str = "") -> dict[str, str]:
    """Nested settings as dotted names; a choice's own name stands under the choice."""
    if not isinstance(spec, dict):
        return {prefix: _text(spec) if isinstance(spec, list) else _scalar(type(spec).__name__, spec)}
    flat: dict[str, str] = {}
    for key, value in spec.items():
        path = prefix if key == "name" else f"{prefix}.{key}".lstrip(".")
        flat |= flatten(value, path)
    return flat


def known_since(settings: dict[str, str]) -> dict[str, str]:
    """Settings as text without those that were added later and say what was done before, as in `SINCE`. Runs of
    different ages can so be compared."""
    later = {".".join(path): _text(value) for path, value in SINCE.items()}
    return {key: value for key, value in settings.items() if later.get(key) != value}


@cache
def _scalar(kind: str, value: Hashable) -> str:
    """YAML is slow, and most settings are the same all over; 1, 1.0 and True are equal, so that the kind counts too."""
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
