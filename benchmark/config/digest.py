"""Digests: the name of a run follows from all settings that decide its result."""

import hashlib
import json
from collections.abc import Callable, Hashable, Iterator
from functools import cache
from operator import attrgetter
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from rollcall.benchmark.config.base import Settings
from rollcall.benchmark.config.choice import Choice
from rollcall.benchmark.config.source import Source, suite_code
from rollcall.benchmark.config.text import dumped

SINCE: dict[tuple[str, ...], Any] = {
    ("numerics", "client_memory"): "device",
    ("numerics", "devices"): 1,
    ("evaluation", "weights"): [],
    ("evaluation", "metrics"): [],
    ("evaluation", "last"): None,
    ("evaluation", "at"): [],
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
    ("task", "labelling"): "own",
    ("participation", "lasting"): "both",
    ("algorithm", "losses"): "minibatch",
    ("algorithm", "intervals"): "before",
    ("algorithm", "divisor"): "clients",
    ("algorithm", "first_shift"): "zero",
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
    def sources(self) -> list[Source]:
        """The files of all choices that are not the suite's, each once."""
        return list(dict.fromkeys(choice.source for choice in _choices(self) if choice.source))

    @property
    def code(self) -> dict[str, str]:
        """The modules of the suite that define the choices, each with a digest of its code."""
        code: dict[str, str] = {}
        for choice in _choices(self):
            code |= suite_code(choice.factory)
        return dict(sorted(code.items()))

    def spec(
        self, array: Callable[[np.ndarray], Any], name: Callable[[Choice], Any] = attrgetter("name")
    ) -> dict[str, Any]:
        """All settings as plain data, defaults included.

        Args:
            array: converts each array.
            name: what to write as the name of each choice.
        """
        return {key: _plain(getattr(self, key), array, name) for key in type(self).model_fields}

    @property
    def digest(self) -> str:
        """Ten hexadecimal digits that follow from the settings and from the code of the user's own choices.

        The number of rounds is left out, so that a run can be extended. No round depends on it: a method that needs a
        horizon has an option of its own, such as `fedavg_debiased: {horizon: 500}`.
        """
        spec = self.spec(
            lambda a: [str(a.dtype), a.shape, hashlib.sha256(np.ascontiguousarray(a).tobytes()).hexdigest()],
            attrgetter("identity"),
        )
        spec.pop("rounds", None)
        algorithm = getattr(self, "algorithm", None)
        if algorithm is not None and algorithm.source and not algorithm.mark:
            spec["algorithm"]["name"] = algorithm.source.digest  # as before other choices could be the user's own
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
        """Write trial.yaml, which `Trial.read` reads. Arrays go beside it as .npy files, the user's code to source/."""

        def beside(array: np.ndarray) -> str:
            file = array_file(array)
            np.save(folder / file, array)
            return file

        (folder / "trial.yaml").write_text(dumped(self.spec(beside)))
        for source in self.sources:
            copy = folder / "source" / Path(source.file).name
            if copy.exists() and copy.read_text(encoding="utf-8") != source.text:  # two files of one name
                copy = copy.with_name(f"{copy.stem}-{source.digest[:8]}{copy.suffix}")
            copy.parent.mkdir(exist_ok=True)
            copy.write_text(source.text, encoding="utf-8")


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
    later = _since_as_text()
    return {key: value for key, value in settings.items() if later.get(key) != value}


@cache
def _since_as_text() -> dict[str, str]:
    return {".".join(path): _text(value) for path, value in SINCE.items()}


@cache
def _scalar(kind: str, value: Hashable) -> str:
    """Cached, because YAML is slow and most settings repeat; `kind` tells 1, 1.0 and True apart, which are equal."""
    return _text(value)


def _text(value: Any) -> str:
    return dumped(value, default_flow_style=True, width=10**6).removesuffix("...\n").strip()


def _plain(value: Any, array: Callable[[np.ndarray], Any], name: Callable[[Choice], Any]) -> Any:
    if isinstance(value, Settings):
        return {key: _plain(getattr(value, key), array, name) for key in type(value).model_fields}
    if isinstance(value, Choice):
        return {"name": name(value)} | {key: _plain(option, array, name) for key, option in value.options.items()}
    if isinstance(value, np.ndarray):
        return array(value)
    if isinstance(value, tuple | list):
        return [_plain(item, array, name) for item in value]
    return value


def _choices(value: Any) -> Iterator[Choice]:
    """All choices in settings, with those among the options of a choice."""
    if isinstance(value, Settings):
        for key in type(value).model_fields:
            yield from _choices(getattr(value, key))
    elif isinstance(value, Choice):
        yield value
        for option in value.options.values():
            yield from _choices(option)
    elif isinstance(value, tuple | list):
        for item in value:
            yield from _choices(item)
