"""YAML as Rollcall reads and writes it: `1e-2` is a number, and a mapping has no key twice.

PyYAML follows YAML 1.1, in which a number with an exponent needs a point and a sign: `1.0e-2`.
"""

import re
from typing import TYPE_CHECKING, Any

import yaml

from benchmark.config.errors import SettingError

if TYPE_CHECKING:
    from yaml import SafeLoader as FastLoader
else:
    FastLoader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)

EXPONENT = re.compile(r"[-+]?([0-9]+\.?[0-9]*|\.[0-9]+)[eE][-+]?[0-9]+$")


class _Loader(FastLoader):
    """Refuses a mapping that has a key twice; plain YAML would take the last value."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        lines: dict[Any, int] = {}
        for key_node, _ in node.value:
            if not isinstance(key_node, yaml.ScalarNode) or key_node.tag == "tag:yaml.org,2002:merge":
                continue
            key, line = self.construct_object(key_node), key_node.start_mark.line + 1
            if key in lines:
                raise SettingError(f"line {line}: {key!r} is already set in line {lines[key]}; remove one of the two")
            lines[key] = line
        return super().construct_mapping(node, deep)


class _Dumper(yaml.SafeDumper):
    """Quotes a text that would be read as a number."""


for _kind in (_Loader, _Dumper):
    _kind.add_implicit_resolver("tag:yaml.org,2002:float", EXPONENT, list("+-.0123456789"))


def parsed(text: str) -> Any:
    """The content of a YAML text.

    Raises:
        yaml.YAMLError: it is not YAML.
        SettingError: a mapping has a key twice.
    """
    return yaml.load(text, _Loader)


def dumped(content: Any, **options: Any) -> str:
    """Plain data as a YAML text that `parsed` reads; keys keep their order. Options are those of `yaml.dump`."""
    text: str = yaml.dump(content, Dumper=_Dumper, sort_keys=False, **options)
    return text
