"""Settings as text: YAML files, values on the command line, and commands, numbers and times in messages.

In YAML as Rollcall reads and writes it, `1e-2` is a number, `on`, `no` and dates are text, a key such as `1e3` or
`null` is the text that is written, and a mapping has no key twice. PyYAML follows YAML 1.1, in which a number with an
exponent needs a point and a sign, `1.0e-2`, and `on` is true.
"""

import os
import re
import shlex
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import yaml
from pydantic_core import to_json

from rollcall.benchmark.config.errors import SettingError

if TYPE_CHECKING:
    from yaml import SafeLoader as FastLoader
else:
    FastLoader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)

CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")
"""Control characters besides tab and newline. A terminal would obey them."""


class _Loader(FastLoader):
    """Refuses a mapping that has a key twice, of which plain YAML would take the last value, and control characters."""

    def construct_scalar(self, node: yaml.ScalarNode | yaml.MappingNode) -> Any:
        if isinstance(node, yaml.ScalarNode) and (found := CONTROL.search(node.value)):
            line = node.start_mark.line + 1
            raise SettingError(
                f"line {line}: the control character {found[0]!r} is not allowed; must be printable text"
            )
        return super().construct_scalar(node)

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        lines: dict[Any, int] = {}
        for key_node, _ in node.value:
            if not isinstance(key_node, yaml.ScalarNode) or key_node.tag == "tag:yaml.org,2002:merge":
                continue
            key, line = self.construct_object(key_node), key_node.start_mark.line + 1
            if key in lines:
                raise SettingError(f"line {line}: {key!r} is already set in line {lines[key]}; remove one of the two")
            lines[key] = line
            if key is None or isinstance(key, bool | float):
                self.constructed_objects[key_node] = key_node.value  # as it is written
        return super().construct_mapping(node, deep)


class _Dumper(yaml.SafeDumper):
    """Quotes a text that would be read as a number."""


BOOL, INT, FLOAT, DATE = (f"tag:yaml.org,2002:{kind}" for kind in ("bool", "int", "float", "timestamp"))

WHOLE = re.compile(r"[-+]?(0|[1-9][0-9_]*)$")
"""A whole number. In YAML 1.1, 010 is 8 and 1:30 is 90; here they are texts, and are written in quotes."""

REAL = re.compile(
    r"[-+]?([0-9][0-9_]*\.[0-9_]*|\.[0-9][0-9_]*)([eE][-+]?[0-9]+)?$|[-+]?[0-9][0-9_]*[eE][-+]?[0-9]+$"
    r"|[-+]?\.(inf|Inf|INF)$|\.(nan|NaN|NAN)$"
)
"""A number with a point or an exponent, infinity, or not a number. In YAML 1.1, 1:30.5 is 90.5; here it is a text."""

for _kind, _own in ((_Loader, (BOOL, INT, FLOAT, DATE)), (_Dumper, (BOOL,))):
    _kind.yaml_implicit_resolvers = {
        first: [pair for pair in pairs if pair[0] not in _own] for first, pairs in _kind.yaml_implicit_resolvers.items()
    }
    _kind.add_implicit_resolver(BOOL, re.compile("(?i:true|false)$"), list("tTfF"))
    _kind.add_implicit_resolver(INT, WHOLE, list("+-0123456789"))
    _kind.add_implicit_resolver(FLOAT, REAL, list("+-.0123456789"))


def parsed(text: str) -> Any:
    """The content of a YAML text.

    Raises yaml.YAMLError: it is not YAML. Raises SettingError: a mapping has a key twice, or a control character.
    """
    try:
        return yaml.load(text, _Loader)
    except SettingError:
        raise
    except (ValueError, KeyError, AttributeError) as error:  # of PyYAML: `!!int x`, a number of 5,000 digits
        raise yaml.YAMLError(str(error)) from None


PARTS = {"task", "participation", "clock", "algorithm", "local", "server", "evaluation", "numerics"}
"""Settings of a trial that have settings of their own."""


def with_line(error: SettingError, file: Path | None) -> SettingError:
    """An error of a setting with the line of a YAML file in which it is written, if it is written there."""
    setting, _, said = re.sub(r"^panel [^:]*: ", "", str(error)).partition(": ")
    unknown = said.startswith(("is not a setting", "is not an option"))
    for path, line, value in _entries(yaml.compose(file.read_text(encoding="utf-8"), _Loader)) if file else ():
        above = iter(path.split("."))  # with labels of an axis, which the error leaves out
        is_path = all(part in above for part in setting.split(".")) and not [*above]
        if unknown and "." not in setting:  # a setting of a trial, not an option of equal name
            is_path &= not PARTS & {*path.split(".")[:-1]}
        if is_path and (unknown or said.startswith((f"{value} is ", f"{value!r} is "))):
            return SettingError(f"{file}:{line}: {error}")
    return error


def _entries(node: Any, place: str = "") -> Iterator[tuple[str, int, Any]]:
    """All keys of the mappings in a document: each with the keys above it, dotted; its line; and its value."""
    for entry in node.value if isinstance(node, yaml.CollectionNode) else ():
        key, value = entry if isinstance(entry, tuple) else (None, entry)
        path = place if key is None else f"{place}.{key.value}".removeprefix(".")
        if key is not None:
            yield path, key.start_mark.line + 1, value.value
        yield from _entries(value, path)


def dumped(content: Any, **options: Any) -> str:
    """Plain data as a YAML text that `parsed` reads; keys keep their order. Options are those of `yaml.dump`."""
    return yaml.dump(content, Dumper=_Dumper, sort_keys=False, **options)


def parse_part(field: str, text: str) -> Any:
    """A part on a command line, as its name or as a mapping: `{name: mifa, memory: updates}`.

    Raises SettingError: it is not YAML; names the field.
    """
    try:
        return parsed(text)
    except yaml.YAMLError:
        raise SettingError(
            f"{field}: {text!r} is not allowed; must be NAME or '{{name: NAME, OPTION: VALUE}}'"
        ) from None


def parse_values(field: str, text: str) -> list[Any]:
    """`0.1,0.05` as [0.1, 0.05]; the values are YAML.

    Raises SettingError: it is empty, or not YAML; names the field.
    """
    try:
        content: list[Any] = parsed(f"[{text}]")
    except yaml.YAMLError:
        content = []
    if not content:
        raise SettingError(f"{field}: {text!r} is not allowed; must be VALUE or VALUE,VALUE")
    return content


def parse_all(field: str, assignments: Iterable[str]) -> dict[str, list[Any]]:
    """Values by setting: `local.lr=0.1,0.05` as {"local.lr": [0.1, 0.05]}.

    `panel=cifar10,local.lr=0.1,0.05` holds two assignments; values of a repeated setting are joined.

    Raises SettingError: a text does not have this form; names the field.
    """
    values: dict[str, list[Any]] = {}
    for text in assignments:
        for assignment in map(str.strip, re.split(r",(?=\s*[A-Za-z_][\w.]*(?::[\w.]+)?=)", text)):
            path, equals, more = assignment.partition("=")
            if not (path and equals):
                raise SettingError(
                    f"{field}: {assignment!r} is not allowed; must be SETTING=VALUE or SETTING=VALUE,VALUE"
                )
            values[path] = values.get(path, []) + parse_values(f"{field} {path}", more)
    return values


def read_time(text: str, option: str) -> float:
    """The seconds of `30s`, `90m` or `1.5h`, given for this option; another form is refused."""
    match = re.fullmatch(r"(\d+\.?\d*)([smh])", text)
    if not match or not float(match[1]):
        raise SettingError(f"{option}: {text!r} is not allowed; must be a number above 0 with s, m or h, such as 90m")
    return float(match[1]) * {"s": 1, "m": 60, "h": 3600}[match[2]]


def duration(seconds: float) -> str:
    """A duration as text: 40 s, 12 min, 3.5 h."""
    if seconds < 90:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"


def counted(number: int, noun: str) -> str:
    """`1 trial`, `2 trials`, `10,000 rounds`; the plural of the noun ends in s."""
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def command(*words: Any, store: Path | None = None) -> str:
    """`rollcall WORD ...`, quoted for a shell.

    Args:
        words: the command, its arguments and options.
        store: the store that the command needs; `--store` is left out for the one that it takes without the option.
    """
    parts = ["rollcall", *map(str, words)]
    if store is not None and store != Path(os.environ.get("ROLLCALL_STORE", "runs")):
        parts += ["--store", str(store)]
    return shlex.join(parts)


def first_sentence(text: str) -> str:
    """The first sentence without its full stop; `Fig.` and `et al.` do not end a sentence."""
    return re.split(r"(?<!Fig)(?<!et al)\.(?:\s|$)", " ".join(text.split("\n\n")[0].split()))[0]


def repeated(option: str, values: list[str] | None) -> list[str]:
    """An option of a command with each of its values, as words: `--set a=1 --set b=2`."""
    return [word for value in values or [] for word in (option, value)]


def strict_json(value: Any, indent: int | None = 1) -> str:
    """Plain values as JSON text. JSON knows no NaN and no infinity: such a number is null."""
    return to_json(value, indent=indent, inf_nan_mode="null").decode()
