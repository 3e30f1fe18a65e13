"""Settings as they are written: the digest that names a run, the file trial.yaml, and settings as text."""

import hashlib
import json
import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cache, lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from pydantic import ModelWrapValidatorHandler, PrivateAttr, model_validator

from rollcall.benchmark.config.base import DATA_FILES, Settings, load_yaml, mapped, validated
from rollcall.benchmark.config.choice import Choice, as_written
from rollcall.benchmark.config.dotted import put_all
from rollcall.benchmark.config.errors import SettingError
from rollcall.benchmark.config.source import (
    ADDRESS,
    SUITE,
    Source,
    absolute,
    address_of,
    identity_of,
    identity_of_name,
    is_reachable,
    suite_code,
)
from rollcall.benchmark.config.text import dumped, parsed

RESULTS = 1
"""Version of the results. It is raised when a changed default or formula alters them, and enters every digest."""

SPEED = ("engine", "device")
"""Settings of `numerics` that change speed and memory alone."""

FREE = ("rounds", "seed", *(f"numerics.{name}" for name in SPEED))
"""Settings in which a run may differ from the experiment's file and still be a run of its trial, or of its cell."""


def digest(spec: Mapping[str, Any]) -> str:
    """Ten hexadecimal digits that follow from the settings of a run as they are written, and from the user's own files.

    No part is imported and no default is filled in. Files count by their content, not by their name. The number of
    rounds is left out, so that a run can be extended: no round depends on it, as a method that needs a horizon has an
    option of its own, such as `fedavg_debiased: {horizon: 500}`. Settings that only change the speed are left out too.
    """
    settings = mapped(written(spec), _hashable)
    numerics = settings.pop("numerics", {})
    settings = {"seed": 0} | settings | {"rounds": None}
    if isinstance(numerics, dict):  # settings may not be validated yet
        settings["numerics"] = {key: one for key, one in numerics.items() if key not in SPEED}
    return hashlib.sha256(json.dumps([RESULTS, settings], sort_keys=True).encode()).hexdigest()[:10]


def run_name(spec: Mapping[str, Any]) -> str:
    """The name of a run folder, such as fedpbc-seed0-3f2a91c07d."""
    chosen = serialised(spec.get("analysis", spec.get("algorithm", "")))
    name = str(chosen.get("name") if isinstance(chosen, dict) else chosen)
    return f"{name.rpartition(':')[2]}-seed{spec.get('seed', 0)}-{digest(spec)}"


def array_file(array: np.ndarray) -> str:
    """The name of an array's copy, from its type, shape and numbers."""
    # Kept results name vectors of float64 by their numbers alone.
    kind = "" if array.dtype == np.float64 and array.ndim == 1 else f"{array.dtype} {array.shape}"
    return f"{hashlib.sha256(kind.encode() + array.tobytes()).hexdigest()[:10]}.npy"


@dataclass(frozen=True)
class DataFile:
    """A data file that settings name: the name of its copy in a run folder, and its bytes when they are read."""

    name: str
    content: bytes = field(repr=False)


def written(value: Any) -> Any:
    """Settings as they are written, in one form: a choice without options is its name, a whole number has no point.

    They are mappings and lists, whose leaves are texts, numbers, truth values, null, arrays, data files, and objects
    that are a user's choices. `FILE.py:NAME` has an absolute path. A .npy file is its array.
    """
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, os.PathLike):
        value = os.fspath(value)
    if value is None or isinstance(value, bool | int):
        return value
    if isinstance(value, str):
        if value.endswith(DATA_FILES) and Path(value).is_file():
            return _content(value, Path(value).stat().st_mtime_ns)
        return absolute(value)
    if isinstance(value, float):
        return int(value) if value.is_integer() else value
    if isinstance(value, Settings):
        value = {key: getattr(value, key) for key in value.model_fields_set}
    elif isinstance(value, Choice):
        value = {"name": value.name, **value.options}
    if isinstance(value, Mapping):
        settings = {str(key): written(one) for key, one in value.items()}
        return settings["name"] if settings.keys() == {"name"} else settings
    if isinstance(value, tuple | list):
        return [written(one) for one in value]
    if isinstance(value, np.ndarray | DataFile):
        return value
    named = as_written(value)
    return value if named is value else written(named)


def serialised(value: Any, folder: Path | None = None) -> Any:
    """Settings as a YAML file has them: arrays and data files by the names of their copies, objects by their addresses.

    Args:
        value: settings of any form.
        folder: to write the copies into; by default they are not written.
    """

    def text(leaf: Any) -> Any:
        leaf = _array(leaf)
        if isinstance(leaf, np.ndarray):
            if folder is not None:
                np.save(folder / array_file(leaf), leaf)
            return array_file(leaf)
        return _beside(folder, leaf) if isinstance(leaf, DataFile) else address_of(leaf) if _is_object(leaf) else leaf

    return mapped(written(value), text)


def flatten(spec: Any, prefix: str = "") -> dict[str, str]:
    """Serialised settings by dotted name, as text; the name of a choice has the key of the choice."""
    if not isinstance(spec, dict):
        return {prefix: _text(spec)}
    flat: dict[str, str] = {}
    for key, value in spec.items():
        path = prefix if key == "name" else f"{prefix}.{key}".lstrip(".")
        flat |= flatten(value, path)
    return flat


def nested(flat: Mapping[str, str]) -> dict[str, Any]:
    """Settings from their texts by dotted name: what `flatten` flattened."""
    return put_all({}, {path: value_of(flat[path]) for path in sorted(flat)})  # the name of a choice before its options


class Spec(Settings):
    """The settings of one run folder.

    `read` takes a mapping, or the path of a YAML file that holds one.
    """

    _written: dict[str, Any] = PrivateAttr(default_factory=dict)
    _name: str = PrivateAttr("")

    if TYPE_CHECKING:  # pydantic would list the fields of a base first
        seed: int

        @property
        def rounds(self) -> int: ...

    @model_validator(mode="wrap")
    @classmethod
    def _keep(cls, data: Any, handler: ModelWrapValidatorHandler[Self]) -> Self:
        spec = handler(data)
        if isinstance(data, Mapping):
            # At once, as the user's files may change later.
            spec._written = written(data) | {"seed": spec.seed}
            spec._name = run_name(spec._written)
        return spec

    @classmethod
    def read(cls, spec: "Self | Mapping[str, Any] | str | Path") -> Self:
        """Validate the settings. Raises SettingError: names the field, the value and what is allowed."""
        if isinstance(spec, cls):
            return spec
        if isinstance(spec, str | Path) and not Path(spec).is_file() and Path(spec).suffix not in (".yaml", ".yml"):
            raise SettingError(
                f"trial: {str(spec)!r} is not allowed; must be a mapping or a YAML file of one trial; for an "
                "experiment use rollcall.run"
            )
        return validated(cls, load_yaml(Path(spec)) if isinstance(spec, str | Path) else spec)

    def model_copy(self, *, update: Mapping[str, Any] | None = None, deep: bool = False) -> Self:
        """A copy with some settings changed, as if they had been written."""
        copy = super().model_copy(update=update, deep=deep)
        copy._written = written(self._written | dict(update or {}))
        copy._name = run_name(copy._written)
        return copy

    @property
    def name(self) -> str:
        return self._name

    @property
    def label(self) -> str:
        """The name of the method or analysis, in one word."""
        return self._name.rpartition("-seed")[0]

    @property
    def digest(self) -> str:
        return self._name.rpartition("-")[2]

    @property
    def sources(self) -> list[Source]:
        """The files of all choices that are not the suite's, each once."""
        return list(dict.fromkeys(choice.source for choice in _choices(self) if choice.source))

    @property
    def copies(self) -> dict[str, Source]:
        """The same files by their names in `source/` of the run folder."""
        copies = {Path(source.file).name: source for source in self.sources}
        if len(copies) < len(self.sources):
            files = ", ".join(source.file for source in self.sources)
            raise SettingError(f"two files of your code have the same name; rename one: {files}")
        return copies

    @property
    def code(self) -> dict[str, str]:
        """The modules of the suite that define the choices, each with a digest of its code."""
        code: dict[str, str] = {}
        for choice in _choices(self):
            code |= suite_code(choice.factory)
        return dict(sorted(code.items()))

    def complete(self, array: Callable[[np.ndarray], Any] = array_file) -> dict[str, Any]:
        """All settings as plain data, defaults included; `array` converts each array."""
        return _complete(self, array)

    @property
    def portable(self) -> dict[str, Any]:
        """The settings as written, for `unpack` in another process: objects by their address where one leads there."""

        def short(leaf: Any) -> Any:
            return address_of(leaf) if _is_object(leaf) and is_reachable(leaf) else leaf

        return mapped(self._written, short)

    def save(self, folder: Path) -> None:
        """Write trial.yaml, which `Trial.read` reads. Arrays go beside it as .npy files, the user's code to source/."""
        (folder / "trial.yaml").write_text(dumped(serialised(self._written, folder)))
        for name, source in self.copies.items():
            (folder / "source").mkdir(exist_ok=True)
            (folder / "source" / name).write_text(source.text, encoding="utf-8")


def unpack(spec: Mapping[str, Any], folder: Path) -> dict[str, Any]:
    """`Spec.portable` settings in another process: data files are written into a folder."""
    return mapped(spec, lambda leaf: str(folder / _beside(folder, leaf)) if isinstance(leaf, DataFile) else leaf)


def own_code(settings: Any) -> list[str]:
    """The addresses of code in settings that is not the suite's: `FILE.py:NAME` or `package.module:NAME`."""
    found: dict[str, None] = {}

    def note(leaf: Any) -> None:
        if isinstance(leaf, str) and (".py:" in leaf or (ADDRESS.fullmatch(leaf) and not leaf.startswith(SUITE))):
            found[leaf] = None

    mapped(serialised(settings), note)
    return list(found)


def from_copies(settings: Any, folder: Path) -> dict[str, Any]:
    """The settings of a run folder with the user's files as the run had them: their copies in `source/`."""

    def copied(leaf: Any) -> Any:
        file, _, name = leaf.rpartition(":") if isinstance(leaf, str) else ("", "", "")
        copy = folder / "source" / Path(file).name
        return f"{copy}:{name}" if file.endswith(".py") and copy.is_file() else leaf

    return mapped(written(settings), copied)


def _beside(folder: Path | None, file: DataFile) -> str:
    """The name of the copy of a data file in a folder, in which it is written."""
    if folder is not None:
        (folder / file.name).write_bytes(file.content)
    return file.name


def _array(leaf: Any) -> Any:
    """A tensor as an array; anything else as it is. Without an import of torch."""
    is_tensor = type(leaf).__module__ == "torch" and hasattr(leaf, "detach")
    return leaf.detach().cpu().numpy() if is_tensor else leaf


def _is_object(leaf: Any) -> bool:
    """Whether a leaf of written settings is a Python object that is a choice."""
    return not (leaf is None or isinstance(leaf, bool | int | float | str | np.ndarray | DataFile))


@lru_cache(maxsize=32)
def _content(file: str, changed: int) -> np.ndarray | DataFile:
    """What a data file that was last changed at this time holds."""
    with suppress(ValueError):
        if file.endswith(".npy"):
            return np.load(file)
    content = Path(file).read_bytes()
    ending = next(ending for ending in sorted(DATA_FILES, key=len, reverse=True) if file.endswith(ending))
    return DataFile(f"{hashlib.sha256(content).hexdigest()[:10]}{ending}", content)


def _hashable(leaf: Any) -> Any:
    """A leaf of written settings in a digest: arrays and files by their content, the user's code by its text."""
    leaf = _array(leaf)
    if isinstance(leaf, str):
        return identity_of_name(leaf)
    if isinstance(leaf, np.ndarray):
        return [str(leaf.dtype), leaf.shape, hashlib.sha256(np.ascontiguousarray(leaf).tobytes()).hexdigest()]
    return leaf.name if isinstance(leaf, DataFile) else identity_of(leaf) if _is_object(leaf) else leaf


@cache
def value_of(text: str) -> Any:
    """The value of a setting that `flatten` made text."""
    return parsed(text)


_texts: dict[str, str] = {}


def _text(value: Any) -> str:
    """A value of a setting as text, made once, because YAML is slow and most settings repeat."""
    key = repr(value)  # tells 1, 1.0, True and "1" apart
    if key not in _texts:
        text = dumped(value, default_flow_style=True, width=10**6)
        _texts[key] = text.removesuffix("...\n").strip()
    return _texts[key]


def _inside(value: Any) -> Any:
    """A choice or validated settings as a mapping of what is inside; anything else as it is."""
    if isinstance(value, Choice):
        return {"name": value.name, **value.options}
    return dict(value) if isinstance(value, Settings) else value


def _complete(value: Any, array: Callable[[np.ndarray], Any]) -> Any:
    value = _inside(value)
    if isinstance(value, dict):
        return {key: _complete(one, array) for key, one in value.items()}
    if isinstance(value, tuple | list):
        return [_complete(one, array) for one in value]
    return array(value) if isinstance(value, np.ndarray) else value


def _choices(value: Any) -> Iterator[Choice]:
    if isinstance(value, Choice):
        yield value
    value = _inside(value)
    for one in value.values() if isinstance(value, dict) else value if isinstance(value, tuple | list) else ():
        yield from _choices(one)
