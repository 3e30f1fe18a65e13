"""What can be chosen, and a sentence about each choice, read from the source files.

Nothing is imported, since torch and Lightning take seconds to import and `rollcall list` needs neither.
"""

import ast
import re
from functools import cache
from pathlib import Path


def summaries(address: str) -> dict[str, str]:
    """The names in a dictionary of choices, each with the first sentence of its docstring.

    Args:
        address: of the dictionary, such as `rollcall.algorithms:ALGORITHMS`. Its values may be classes, functions, or
            partial functions, which are described by their first argument.
    """
    return {choice: first_sentence(ast.get_docstring(node) or "") for choice, (_, node) in definitions(address).items()}


Definition = ast.FunctionDef | ast.ClassDef


def definitions(address: str) -> dict[str, tuple[str, Definition]]:
    """The names in a dictionary of choices, each with the module and the syntax tree of its class or function."""
    module, _, name = address.partition(":")
    return {choice: definition(where, value) for choice, where, value in _entries(module, name)}


def source(module: str) -> str:
    """The text of a module of ours."""
    path = Path(__file__).parents[2].joinpath(*module.split(".")[1:])
    return (path / "__init__.py" if path.is_dir() else path.with_suffix(".py")).read_text(encoding="utf-8")


def first_sentence(text: str) -> str:
    """The first sentence without its full stop; `Fig.` and `et al.` do not end a sentence."""
    return re.split(r"(?<!Fig)(?<!et al)\.(?:\s|$)", " ".join(text.split("\n\n")[0].split()))[0]


def _entries(module: str, name: str) -> list[tuple[str, str, ast.expr]]:
    """Each key, module and value of a dictionary that a module assigns to a name, with those of `**OTHER`."""
    for node in _parsed(module).body:
        if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name) and node.target.id == name:
            assert isinstance(node.value, ast.Dict)
            entries: list[tuple[str, str, ast.expr]] = []
            for key, value in zip(node.value.keys, node.value.values, strict=True):
                if key is None:
                    assert isinstance(value, ast.Name)
                    entries += _entries(module, value.id)
                else:
                    entries.append((ast.literal_eval(key), module, value))
            return entries
    return _entries(_imported(module, name)[0], name)


def definition(module: str, value: ast.expr) -> tuple[str, Definition]:
    """The module and the syntax tree of what an expression in a module stands for."""
    if isinstance(value, ast.Attribute):  # datasets.digits
        assert isinstance(value.value, ast.Name)
        package, name = _imported(module, value.value.id)
        return definition(f"{package}.{name}", ast.Name(value.attr))
    if isinstance(value, ast.Call):  # partial(classification, datasets.digits, model=mlp)
        return definition(module, value.args[1])
    assert isinstance(value, ast.Name)
    for node in _parsed(module).body:
        if isinstance(node, Definition) and node.name == value.id:
            return module, node
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name) and node.targets[0].id == value.id:
            return definition(module, node.value)
    package, name = _imported(module, value.id)
    return definition(package, ast.Name(name))


def _imported(module: str, name: str) -> tuple[str, str]:
    """Where a module imports a name from: the other module, and the name there."""
    for node in _parsed(module).body:
        if isinstance(node, ast.ImportFrom) and node.module:
            for alias in node.names:
                if name == (alias.asname or alias.name):
                    return node.module, alias.name
    raise LookupError(f"{module} neither defines nor imports {name}")


@cache
def _parsed(module: str) -> ast.Module:
    return ast.parse(source(module))
