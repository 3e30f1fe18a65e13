"""The user's own code: loading it, what identifies it in a digest, and the place of an error in it."""

import ast
import copyreg
import hashlib
import inspect
import linecache
import marshal
import operator
import re
import sys
import traceback
from collections.abc import Callable, Collection, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cache, partial
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from types import CodeType, ModuleType
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np

from rollcall.benchmark.config.errors import SettingError, SourceError, listed

SUITE = "rollcall."
ADDRESS = re.compile(r"[A-Za-z_][\w.]*:[A-Za-z_]\w*")


@dataclass(frozen=True)
class Source:
    """The absolute path of a contributed choice's file (for code in no file a name for one), and its content."""

    file: str
    text: str = field(repr=False)

    @property
    def digest(self) -> str:
        return hashlib.sha256(self.text.encode()).hexdigest()


# Loading.

_texts: dict[str, str] = {}
"""Texts to use instead of files, by path."""


def supply(texts: Mapping[str, str]) -> None:
    """Use these texts, by path, instead of the files: on a machine that may not have the files."""
    _texts.update(texts)


def _text(file: str) -> str | None:
    """The content of a file, or the text supplied for it; None if there is neither."""
    if file in _texts:
        return _texts[file]
    return decoded(Path(file)) if Path(file).is_file() else None


def decoded(file: Path) -> str:
    """The text of a file.

    Raises SourceError: it is not in UTF-8.
    """
    try:
        return file.read_bytes().decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise SourceError(f"{file}: is not in UTF-8 (byte {error.start}); save it so") from None


def loaded(address: str) -> tuple[Any, Source]:
    """The value of `FILE.py:NAME` or `package.module:NAME`, and its source.

    Raises SettingError: there is no such file or module, it cannot be run, or it does not define the name.
    """
    place, _, name = address.rpartition(":")
    refused = f"name: {address!r} is not allowed; "
    source = None
    if place.endswith(".py"):
        file = str(Path(place).resolve())
        text = _text(file)
        if text is None:
            raise SettingError(f"{refused}there is no file {file}")
        module, source = _module(file, text), Source(file, text)
    else:
        module = _imported(place, refused)
    if not hasattr(module, name):
        own = {key: str(getattr(one, "__module__", "")) for key, one in vars(module).items()}
        defined = [key for key in own if own[key].startswith(module.__name__) and not key.startswith("_")]
        raise SettingError(f"{refused}{Path(place).name} must define {name}; it defines {listed(defined, name)}")
    value = getattr(module, name)
    return value, source or source_of(value)


@cache
def _module(file: str, text: str) -> ModuleType:
    """A file as a module. It is run once; after a change of its content, again."""
    module = ModuleType(f"rollcall_contributed_{hashlib.sha256((file + text).encode()).hexdigest()[:8]}")
    module.__file__ = file
    sys.modules[module.__name__] = module  # dataclasses and pickle look their module up
    try:
        exec(compile(text, file, "exec"), vars(module))
    except (Exception, SystemExit) as error:
        if isinstance(error, SyntaxError) and error.filename == file:
            line = (error.text or "").strip()
            raise SourceError(f"{relative(file)}:{error.lineno}: this is not Python: {error.msg}: {line}") from None
        raise SourceError(f"{contributed_line(error, {file}) or f'{relative(file)}: '}{told(error)}") from None
    return module


def _imported(name: str, refused: str) -> ModuleType:
    """A module by its name."""
    try:
        return import_module(name)
    except (Exception, SystemExit) as error:
        if isinstance(error, ModuleNotFoundError) and error.name and name.startswith(error.name):
            needs = "Install its package, or name a file: FILE.py:NAME"
            raise SettingError(f"{refused}there is no module {error.name}. {needs}") from None
        files = {frame.filename for frame in traceback.extract_tb(error.__traceback__)}
        raise SourceError(f"{name}: {contributed_line(error, files)}{told(error)}") from None


# Names and digests.


def plain(value: Any) -> Any:
    """The class or function behind a callable: without filled-in arguments, and of an instance its class."""
    while isinstance(value, partial):
        value = value.func
    return value if inspect.isclass(value) or inspect.isroutine(value) else type(value)


_known: WeakKeyDictionary[Any, tuple[list[CodeType], str]] = WeakKeyDictionary()
"""By class or function: its code, and the text of its file when `source_of` first read it."""


def source_of(value: Any) -> Source:
    """The file of a class or function, or of the class of an instance; without a file (a notebook), its definition.

    Raises SourceError: the file was changed, and the class or function still has its earlier code.
    """
    thing = plain(value)
    if (file := _file_of(thing)) is not None:
        own = vars(thing).values() if inspect.isclass(thing) else (thing,)
        code = [one.__code__ for one in own if inspect.isfunction(one)]
        text = decoded(file)
        known, first = _known.setdefault(thing, (code, text))
        if text != first and len(known) == len(code) and all(map(operator.is_, known, code)):
            raise SourceError(f"{file}: was changed after {thing.__name__} was imported; reload it, or restart Python")
        _known[thing] = code, text
        return Source(str(file), text)
    try:
        text = inspect.getsource(thing)
    except (OSError, TypeError):
        text = _of_cell(thing) if inspect.isclass(thing) and thing.__module__ == "__main__" else fingerprint(thing)
    return Source(_without_file(thing), text)


def _of_cell(thing: type) -> str:
    """The text of a class in a notebook, which `inspect` does not find before Python 3.13: from where its methods are.

    Without a text, as after `python -c`, a fingerprint of its methods and values.
    """
    own = {name: one for name, one in vars(thing).items() if inspect.isfunction(one) or not name.startswith("__")}
    for file in {one.__code__.co_filename for one in own.values() if inspect.isfunction(one)}:
        for node in ast.walk(ast.parse("".join(linecache.getlines(file)))):
            if isinstance(node, ast.ClassDef) and node.name == thing.__name__:
                return ast.unparse(node)
    return fingerprint([thing, thing.__bases__, own])


def _file_of(thing: Any) -> Path | None:
    """The file of a class or function; None if it is in no file."""
    with suppress(TypeError, OSError):  # a builtin; a class of a notebook
        file = inspect.getsourcefile(thing)
        if file is not None and Path(file).is_file() and thing.__module__ in sys.modules:
            return Path(file).resolve()
    return None


def _without_file(thing: Any) -> str:
    """The name for the code of a class or function that is in no file."""
    return f"{getattr(thing, '__name__', 'object')}.txt"


def address_of(value: Any) -> str:
    """The name under which a file of settings finds a class or function again; `python:NAME` if nothing leads to it."""
    thing = plain(value)
    if thing.__qualname__.isidentifier():
        return f"{_file_of(thing) or _without_file(thing)}:{thing.__qualname__}"
    return f"python:{thing.__qualname__.rpartition('.')[2]}"


def is_reachable(value: Any) -> bool:
    """Whether another process finds an object by its address."""
    thing = plain(value)
    return thing is value and thing.__module__ != "__main__" and ".py:" in address_of(value)


def refuse_local(value: Any) -> None:
    """Raise SettingError for a lambda, and a function or class of a function: their text does not identify them."""
    name = getattr(value, "__qualname__", "")
    if "<" in name:
        place = definition(value)
        raise SettingError(
            f"name: {name}{place and f', at {place},'} is not allowed; must be a function or class at the top level of "
            "a file or notebook, whose text identifies it; what differs between two of them must be an option"
        )


def identity_of(value: Any) -> str:
    """An object in a digest: its code, and the values that it holds if no address leads to it."""
    refuse_local(value)
    label = address_of(value).rpartition(":")[2]
    return ":".join([source_of(value).digest, label, *([] if is_reachable(value) else [fingerprint(value)])])


def absolute(name: str) -> str:
    """`FILE.py:NAME` with the absolute path of the file; any other text as it is."""
    path, colon, attribute = name.rpartition(":")
    return f"{Path(path).resolve()}:{attribute}" if colon and path.endswith(".py") else name


def identity_of_name(name: str) -> str:
    """`FILE.py:NAME` or `package.module:NAME` in a digest: the content of the file and the name. Other texts: as is."""
    path, _, attribute = absolute(name).rpartition(":")
    if ADDRESS.fullmatch(name) and not name.startswith(SUITE):
        with suppress(ImportError, ValueError):  # no module of this name; a script, `__main__`, has no file to find
            path = getattr(find_spec(path), "origin", None) or path
    text = _text(path) if path.endswith(".py") else None
    return name if text is None else f"{Source(path, text).digest}:{attribute}"


def suite_code(factory: Callable[..., Any]) -> dict[str, str]:
    """The modules of the suite that define a choice and its base classes, each with a digest of its code.

    Comments, docstrings and layout do not change a digest.
    """
    thing, code = plain(factory), {}
    for part in thing.__mro__ if inspect.isclass(thing) else (thing,):
        if part.__module__.startswith(SUITE):
            code[part.__module__.removeprefix(SUITE)] = _code_digest(inspect.getfile(part))
    return code


@cache
def package_code(folder: Path) -> str:
    """A digest of the code of all modules in a folder."""
    digests = [_code_digest(str(file)) for file in sorted(folder.glob("*.py"))]
    return hashlib.sha256(" ".join(digests).encode()).hexdigest()[:10]


@cache
def _code_digest(file: str) -> str:
    tree = ast.parse(Path(file).read_text(encoding="utf-8"))
    for node in ast.walk(tree):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef):
            docstrings = [one for one in node.body if isinstance(one, ast.Expr) and isinstance(one.value, ast.Constant)]
            node.body = [one for one in node.body if one not in docstrings] or [ast.Pass()]
    return hashlib.sha256(ast.unparse(tree).encode()).hexdigest()[:10]


def fingerprint(value: Any) -> str:
    """The SHA-256 of numbers, text, arrays, tensors, containers, functions, and of objects by their attributes."""
    digest = hashlib.sha256()
    _feed(digest, value, set())
    return digest.hexdigest()


def _feed(digest: Any, value: Any, above: set[int]) -> None:
    """Add a value to a digest. An object inside itself is added once."""
    if value is None or isinstance(value, bool | int | float | complex | str | bytes):
        digest.update(f"{type(value).__name__}:{value!r};".encode())
    elif id(value) in above:
        digest.update(b"again;")
    else:
        digest.update(f"{type(value).__module__}.{type(value).__qualname__}(".encode())
        for part in _parts_of(value):
            _feed(digest, part, above | {id(value)})
        digest.update(b");")


def _parts_of(value: Any) -> list[Any]:
    """The parts of an object, in an order that does not change."""
    if isinstance(value, np.ndarray):
        return [str(value.dtype), *value.shape, np.ascontiguousarray(value).tobytes()]
    if type(value).__module__.startswith("torch") and hasattr(type(value), "detach"):
        tensor = value.detach().cpu()
        return [tensor.numpy()] if "bfloat16" not in str(tensor.dtype) else ["bfloat16", tensor.float().numpy()]
    if isinstance(value, Mapping):
        return [part for key in sorted(value, key=repr) for part in (key, value[key])]
    if isinstance(value, set | frozenset):
        return sorted(fingerprint(part) for part in value)
    if isinstance(value, list | tuple):
        return list(value)
    if isinstance(value, partial):
        return [value.func, value.args, value.keywords]
    if isinstance(value, type):
        return [value.__module__, value.__qualname__]
    if inspect.isfunction(value):
        cells = [cell.cell_contents for cell in value.__closure__ or ()]
        return [marshal.dumps(value.__code__, 2), value.__defaults__, cells]  # 2: without marks that vary
    reduce = copyreg.dispatch_table.get(type(value))
    with suppress(Exception):  # what pickle would write; attributes alone miss slots, and what C code holds
        reduced = reduce(value) if reduce else value.__reduce_ex__(2)
        return [reduced] if isinstance(reduced, str) else [*reduced[:3], *map(list, filter(None, reduced[3:5]))]
    return [vars(value)] if hasattr(value, "__dict__") else [type(value).__qualname__]  # such as a lock


# Errors.

_files: set[str] = set()
"""The files of contributed choices."""


def remember(factory: Any, source: Source | None) -> None:
    """Remember the file of a contributed choice, so that `contributed_line` finds its lines."""
    thing = plain(factory)
    if thing.__module__.startswith(SUITE):  # such as the class of what `supervised` makes
        return
    code = getattr(thing, "__code__", None)
    _files.update([source.file] if source else [], [code.co_filename] if code else [])


def contributed_line(error: BaseException, files: Collection[str] = _files) -> str:
    """`FILE:LINE`, with a colon and a space, of the innermost line of these files in a traceback; empty without one."""
    for frame in reversed(traceback.extract_tb(error.__traceback__)):
        if frame.filename in files:
            return f"{relative(frame.filename)}:{frame.lineno}: "
    return ""


def definition(factory: Callable[..., Any]) -> str:
    """`FILE:LINE` of the definition of a class or function; empty if it is in no file."""
    thing = plain(factory)
    try:
        return f"{relative(inspect.getfile(thing))}:{inspect.getsourcelines(thing)[1]}"
    except (OSError, TypeError):
        return ""


def in_words(value: Any) -> str:
    """A value in words, with the place of its definition."""
    if isinstance(value, tuple):
        return f"({', '.join(type(entry).__name__ for entry in value)})"
    if not isinstance(value, type) and not inspect.isroutine(value):
        name = type(value).__name__
        return "None" if value is None else f"{'an' if name[0] in 'aeiouAEIOU' else 'a'} {name}"
    bases = ", ".join(base.__name__ for base in getattr(value, "__bases__", ()) if base is not object)
    kind = "class" if isinstance(value, type) else "function"
    place = definition(value)
    return f"a {kind}{f' of {bases}' if bases else ''}{f', at {place}' if place else ''}"


def told(error: BaseException) -> str:
    """An error in one line."""
    first = next(iter(str(error).splitlines()), "")[:200]
    text = f"{type(error).__name__}: {first}" if first else type(error).__name__
    if isinstance(error, ModuleNotFoundError):
        return f"{text}. Install it, or correct the import; what you wrote yourself must be in this one file"
    return text


def relative(path: str) -> str:
    """A path, relative to the working directory if it is inside."""
    return str(Path(path).relative_to(Path.cwd())) if Path(path).is_relative_to(Path.cwd()) else path
