"""Choices: a name with its options, such as `{name: dirichlet, alpha: 0.1}`, of the suite or of the user's own code.

What can be chosen is a callable. The suite supplies its first parameters when it is built; the others are its options.
Their annotations and defaults are the only description of the options, so that nothing has to be kept in agreement.
"""

import dataclasses
import inspect
import re
import sys
import typing
from collections.abc import Callable, Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass, field
from functools import cache, cached_property, partial, update_wrapper
from importlib.metadata import entry_points
from pathlib import Path
from pkgutil import resolve_name
from types import NoneType, UnionType
from typing import Annotated, Any, Literal

import numpy as np
from pydantic import BaseModel, BeforeValidator, ConfigDict, PlainValidator, TypeAdapter, ValidationError, create_model

from rollcall.benchmark.config.base import DATA_FILES, for_pydantic
from rollcall.benchmark.config.errors import (
    CompleteError,
    SettingError,
    SourceError,
    allowed,
    from_pydantic,
    in_yaml,
    listed,
)
from rollcall.benchmark.config.source import (
    SUITE,
    Source,
    absolute,
    address_of,
    contributed_line,
    definition,
    in_words,
    loaded,
    plain,
    refuse_local,
    remember,
    source_of,
    told,
)

REFUSAL = re.compile(r"[\w.]+: .*(is|are) not allowed")
"""How a `ValueError` begins that names the setting itself."""


@dataclass(frozen=True)
class Kind:
    """A kind of choice.

    Attributes:
        address: of the dictionary that lists the suite's choices; imported when a choice is read, which takes long.
        about: what is chosen, and by which key.
        parameters: the names of those that the suite supplies.
        returns: address of the class of its results; several for the entries of a tuple, none for numbers or arrays.
        returned: the results in words; by default the class.
        subclass: whether a choice must be a subclass of `returns`.
        method: name of a method; a result that has it needs no base class.
        adapts: address of a function of a user's result and of what the suite supplied. It gives the result in the form
            that the suite takes, and raises ValueError where it is wrong.
    """

    address: str
    about: str
    parameters: tuple[str, ...] = ()
    returns: str = ""
    returned: str = ""
    subclass: bool = False
    method: str = ""
    adapts: str = ""

    @cached_property
    def known(self) -> Mapping[str, Callable[..., Any]]:
        return resolve_name(self.address)

    @property
    def described(self) -> str:
        return self.returned or f"a {self.returns.replace(':', '.')}"

    @cached_property
    def results(self) -> tuple[Any, ...]:
        """The class of the results, or those of the entries of a tuple; empty if they are numbers or arrays."""
        return tuple(map(resolve_name, self.returns.split()))

    def fits(self, value: Any) -> bool:
        """Whether a value may be a result; numbers and arrays are not examined."""
        if not self.results or (self.method and callable(getattr(value, self.method, None))):
            return True
        entries = value if len(self.results) > 1 and isinstance(value, tuple) else (value,)
        return len(entries) == len(self.results) and all(map(isinstance, entries, self.results))

    def is_base_of(self, cls: type) -> bool:
        """Whether a class has the base class of the results, or the method that stands for it."""
        return issubclass(cls, self.results[0]) or bool(self.method and callable(getattr(cls, self.method, None)))

    def makes(self, cls: type) -> bool:
        """Whether instances of a class may be results; those of a protocol need no base class."""
        if not self.results:
            return True
        is_protocol = getattr(self.results[0], "_is_protocol", False)
        return len(self.results) == 1 and (is_protocol or self.is_base_of(cls))


BASES = ("task", "algorithm", "participation", "metric", "server_optimizer", "model")
"""The kinds that a base class tells. Tasks and torchmetrics' metrics are torch modules too, so models are last."""

KINDS = {
    "task": Kind(
        "rollcall.tasks:TASKS",
        "Data, model and partition of the samples among clients. The key `task` of a trial.",
        ("seed",),
        "rollcall.tasks:Task rollcall.tasks:ClientData",
        "(rollcall.tasks.Task, rollcall.tasks.ClientData); rollcall.tasks.supervised(train, test, network) makes one, "
        "also from a LightningModule",
    ),
    "model": Kind(
        "rollcall.tasks.models:MODELS",
        "The network. An option of the image tasks.",
        ("shape", "classes"),
        "torch.nn:Module",
        adapts="rollcall.tasks.supervised:checked_model",
    ),
    "partition": Kind(
        "rollcall.tasks.partitions:PARTITIONS",
        "How samples are split among clients. An option of the image tasks.",
        ("labels", "clients", "seed"),
        "rollcall.tasks.partitions:Parts",
        "rollcall.tasks.partitions.Parts, or a list of the samples' numbers for each client",
        adapts="rollcall.tasks.partitions:checked_parts",
    ),
    "augmentation": Kind(
        "rollcall.tasks.images:AUGMENTATIONS",
        "How training images are changed before each step. An option of the image tasks.",
        ("seed",),
        "rollcall.tasks.images:Augment",
    ),
    "participation": Kind(
        "rollcall.participation:MODELS",
        "Which clients are available in each round. The key `participation` of a trial.",
        ("population",),
        "rollcall.participation:Participation",
        "a rollcall.participation.Participation or another object with active(t); or a function of (t, rng) that "
        "returns a mask or ids of clients; or a mask",
        method="active",
        adapts="rollcall.participation.function:checked_model",
    ),
    "probability": Kind(
        "rollcall.participation.probabilities:PROBABILITIES",
        "Where the probabilities of the clients come from. An option of most participation models.",
        ("population",),
        returned="a probability for each client",
    ),
    "variation": Kind(
        "rollcall.participation.probabilities:VARIATIONS",
        "How the probabilities change over time. An option of some participation models.",
        ("p", "t"),
        returned="a probability for each client",
    ),
    "speed": Kind(
        "rollcall.participation.clock:SPEEDS",
        "Speeds of devices and links. The keys `speed`, `up` and `down` of `clock`.",
        ("population", "rng"),
        returned="a speed for each client",
    ),
    "algorithm": Kind(
        "rollcall.algorithms:ALGORITHMS",
        "The federated method. The key `algorithm` of a trial.",
        returns="rollcall.algorithms:Algorithm",
        subclass=True,
    ),
    "schedule": Kind(
        "rollcall.benchmark.config.optimization:SCHEDULES",
        "How the local learning rate changes over rounds. The key `schedule` of `local`.",
        ("t",),
        returned="a number",
    ),
    "server_optimizer": Kind(
        "rollcall.benchmark.federation.server_optimizers:OPTIMIZERS",
        "Optimizer of the server's model for a method's update. The key `optimizer` of `server`.",
        ("params", "lr"),
        "torch.optim:Optimizer",
    ),
    "metric": Kind(
        "rollcall.tasks.metrics:METRICS",
        "Measurements besides the metrics of the task. The key `metrics` of `evaluation`.",
        returns="rollcall.tasks.metrics:TaskMetric",
        returned="a torchmetrics.Metric or a rollcall.tasks.metrics.OverClients",
    ),
    "function": Kind(
        "rollcall.participation.function:FUNCTIONS",
        "A user-defined function (t, rng) of active clients. An option of the participation model `function`.",
        ("t", "rng"),
        returned="a mask or ids of clients",
    ),
    "analysis": Kind(
        "rollcall.participation.analyses:ANALYSES",
        "A computation without training. The key `analysis` of a panel.",
        ("seed",),
        "pandas:DataFrame",
    ),
}


@dataclass(frozen=True)
class Choice:
    """A validated choice.

    Attributes:
        name: as in the experiment file, or under which a file of settings finds a user's choice again.
        options: complete, defaults included; an option that is itself a choice is a `Choice`.
        factory: the callable that was chosen.
        kind: of the choice.
        source: the file that a user's choice comes from; None for what the suite has.
    """

    name: str
    options: dict[str, Any]
    factory: Callable[..., Any]
    kind: str = ""
    source: Source | None = field(default=None, compare=False)

    def build(self, *supplied: Any) -> Any:
        """The chosen thing, made from what the suite supplies and from the options."""
        return self.bound()(*supplied)

    def bound(self) -> Callable[..., Any]:
        """The callable with its options filled in; of a user's, errors name the file and results are checked."""
        options = {key: value.bound() if isinstance(value, Choice) else value for key, value in self.options.items()}
        factory = partial(self.factory, **options)
        if self.source is None:
            return factory
        # It keeps the signature, from which a variation's period is read.
        return update_wrapper(partial(_checked_call, self.kind, factory), factory)

    @property
    def label(self) -> str:
        """The name in tables: for a class of a user's file, the name of the class."""
        return self.name.rpartition(":")[2]


@dataclass(frozen=True, eq=False)  # not every object can be hashed
class Instance:
    """Makes the same thing whatever is supplied; a copy, since a run changes a network."""

    value: Any

    def __call__(self, *supplied: Any) -> Any:
        return deepcopy(self.value)


def read(kind: str, value: Any) -> Choice:
    """A choice from a name, from a mapping with a name and options, or from a Python object.

    A name is one of the suite's, one of an installed package, `FILE.py:NAME` or `package.module:NAME`. The object is a
    class, a function or an instance; it may be the `name` of a mapping.

    Raises SettingError: unknown name, something that is not of this kind, unknown option, or a value that the option
    does not allow.
    """
    if isinstance(value, Choice):
        return value
    value = _in_long_form(value) if kind == "participation" else value
    name, settings = _split(value)
    if name is None or isinstance(name, bool | int | float | list | tuple | Mapping):
        raise SettingError(f"name: is missing in {in_yaml(value)}; must be {_names(kind, None)}")
    chosen = find(kind, name)
    supplied = 1 if isinstance(chosen.factory, Instance) else len(KINDS[kind].parameters)
    try:
        model = _model(chosen.factory, supplied)
    except TypeError:  # it cannot be hashed, such as an object with a list
        model = _model.__wrapped__(chosen.factory, supplied)
    settings = for_pydantic(chosen.options | settings, model, f"an option of {chosen.name}")
    try:
        return dataclasses.replace(chosen, options=dict(model.model_validate(settings)))
    except ValidationError as error:
        raise from_pydantic(error) from None


def _split(value: Any) -> tuple[Any, dict[str, Any]]:
    """The name of a choice, or the object, and its options."""
    settings = dict(value) if isinstance(value, Mapping) else {"name": value}
    return settings.pop("name", None), settings


def _in_long_form(value: Any) -> Any:
    """A participation model in its long form; what has no short form is returned as it is.

    An array [rounds, m], its name, or the path of a recording becomes the model `trace`. A function of (t, rng), or its
    name, becomes the model `function`; options that this model lacks are those of the function.
    """
    if isinstance(value, np.ndarray | list | tuple) or (isinstance(value, str) and value.endswith(DATA_FILES)):
        return {"name": "trace", "mask": value}
    name, settings = _split(value)
    address = _address("participation", name) if isinstance(name, str) else ""
    thing = loaded(address)[0] if ":" in address else name
    if isinstance(thing, np.ndarray):
        return {"name": "trace", "mask": thing} | settings
    from rollcall.participation.function import FromFunction, is_draw

    if not is_draw(thing):
        return value
    own, models = inspect.signature(thing).parameters, inspect.signature(FromFunction).parameters
    of_function = {key: option for key, option in settings.items() if key in own or key not in models}
    of_model = {key: option for key, option in settings.items() if key not in of_function}
    return {"name": "function", "function": {"name": address or name} | of_function} | of_model


# From a name or an object to what was chosen.


def installed(kind: str) -> dict[str, Any]:
    """The choices of a kind that installed packages offer, by name: the entry points `KIND.NAME` of `rollcall`."""
    points = _points(tuple(sys.path))
    return {name.removeprefix(f"{kind}."): point for name, point in points.items() if name.startswith(f"{kind}.")}


@cache
def _points(path: tuple[str, ...]) -> dict[str, Any]:
    """All that packages on this `sys.path` offer, by name. Reading their metadata takes 20 ms."""
    return {point.name: point for point in entry_points(group="rollcall")}


def _names(kind: str, name: Any) -> str:
    names = [*KINDS[kind].known, *installed(kind)]
    own = "your own as FILE.py:NAME or package.module:NAME"
    return f"one of {listed(names, name, f'; or {own}')}" if names else own


def _address(kind: str, name: str) -> str:
    """The address of what an installed package offers by a name; every other name as it is."""
    suite = name in KINDS[kind].known
    return str(installed(kind)[name].value) if not suite and name in installed(kind) else name


def find(kind: str, name: Any) -> Choice:
    """The choice that a name stands for, or a class, a function or an instance. It has no options yet.

    Raises SettingError: unknown name, or something that is not of this kind.
    """
    entry, source = KINDS[kind], None
    if not isinstance(name, str):
        if entry.subclass and isinstance(name, entry.results) and dataclasses.is_dataclass(name):
            return dataclasses.replace(find(kind, type(name)), options=fields_of(name))
        thing = name
    elif name in entry.known:
        thing = entry.known[name]
    elif ":" in (address := _address(kind, name)):
        thing, source = loaded(address)
        name = absolute(name)
        source = None if address.startswith(SUITE) else source
    elif name.endswith(".py"):
        raise SettingError(f"name: {name!r} is not allowed; must say what in the file: {name}:NAME")
    else:
        raise SettingError(f"name: {name!r} is not allowed; must be {_names(kind, name)}")
    for own, value in entry.known.items():
        if value is thing:
            return Choice(own, {}, thing, kind)
    if not isinstance(name, str):
        refuse_local(thing)
        name, source = address_of(thing), source_of(thing)
    factory = _factory(kind, name.rpartition("/")[2], thing)
    remember(thing, source)
    return Choice(name, {}, factory, kind, source)


def _factory(kind: str, label: str, thing: Any) -> Callable[..., Any]:
    """A user's callable; or of a result one that makes it, whatever is supplied.

    Raises SettingError: it cannot be of this kind.
    """
    entry, is_class = KINDS[kind], isinstance(thing, type)
    if entry.results and not is_class and entry.fits(thing):
        return Instance(thing)
    needs = f"a function of ({', '.join(entry.parameters)}) that returns {entry.described}"
    if entry.subclass:
        needs = f"a subclass of {entry.returns.replace(':', '.')}"
    refusal = f"name: {label!r} is not allowed; must be {needs}; it "
    if not (entry.makes(thing) if is_class else callable(thing) and not entry.subclass):
        raise SettingError(f"{refusal}is {in_words(thing)}")
    try:
        parameters = list(inspect.signature(thing, eval_str=True).parameters.values())
    except NameError as error:
        raise SourceError(f"{definition(thing)}: {told(error)}") from None
    for i, name in enumerate(entry.parameters):  # an option must not take what the suite supplies
        one = parameters[i] if i < len(parameters) else None
        positional = one and one.kind in (one.POSITIONAL_ONLY, one.POSITIONAL_OR_KEYWORD)
        if one is None or not (positional and (one.default is one.empty or one.name == name)):
            taken = ", ".join(str(one).partition(":")[0] for one in parameters)
            rule = "Parameters after the first ones are its options, each by name"
            raise SettingError(f"{refusal}takes ({taken}), at {definition(thing)}. {rule}")
    return thing


def as_written(value: Any) -> Any:
    """An object as a file of settings has it: the suite's by its name, a method by its class and its fields."""
    loaded_kinds = [kind for kind in KINDS.values() if kind.address.partition(":")[0] in sys.modules]
    if any(kind.subclass and isinstance(value, kind.results) for kind in loaded_kinds):
        return {"name": type(value)} | fields_of(value)
    known = (named for kind in loaded_kinds for named in kind.known.items())
    return next((name for name, one in known if one is value), value)


def fields_of(value: Any) -> dict[str, Any]:
    """The fields of a dataclass that are not at their defaults, by name."""
    fields: list[Any] = [field for field in dataclasses.fields(value) if field.init]
    values = ((field.name, getattr(value, field.name), field.default) for field in fields)
    return {name: one for name, one, default in values if one is not default and not np.array_equal(one, default)}


def kind_of(name: str) -> str:
    """The kind of what a name stands for, by the suite's lists or by its base class; `algorithm` if it is not known.

    Raises SettingError: a file that cannot be loaded, a name of several kinds, or a base class that tells no kind.
    """
    if ":" in name:
        thing = loaded(name)[0]
        cls = thing if isinstance(thing, type) else type(thing)
        mask = isinstance(thing, np.ndarray) and thing.ndim == 2
        kinds = ["participation"] if mask else [kind for kind in BASES if KINDS[kind].is_base_of(cls)][:1]
    else:
        kinds = [kind for kind, entry in KINDS.items() if name in entry.known or name in installed(kind)]
        kinds = ["algorithm"] if "algorithm" in kinds or not kinds else kinds
    if len(kinds) != 1:
        several = f"may be of the kinds {', '.join(kinds)}; say which with --kind"
        unclear = f"its kind is not clear from a base class; say it with --kind ({', '.join(KINDS)})"
        raise SettingError(f"{name}: {several if kinds else unclear}")
    return kinds[0]


# Options.


def options(factory: Callable[..., Any], supplied: int) -> dict[str, inspect.Parameter]:
    """The parameters of a callable that an experiment file sets."""
    parameters = inspect.signature(factory, eval_str=True).parameters
    several = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)  # as torchmetrics' classes have
    return {key: one for key, one in list(parameters.items())[supplied:] if one.kind not in several}


@cache
def _model(factory: Callable[..., Any], supplied: int) -> type[BaseModel]:
    settings = ConfigDict(strict=True, arbitrary_types_allowed=True)
    types: dict[str, Any] = {}
    fields = dataclasses.fields(factory) if dataclasses.is_dataclass(factory) else ()
    made = {one.name: one.default_factory for one in fields if one.default_factory is not dataclasses.MISSING}
    for key, parameter in options(factory, supplied).items():
        default = ... if parameter.default is inspect.Parameter.empty else parameter.default
        if key in made:
            default = made[key]()
        if callable(default) and key in KINDS:  # a default such as model=mlp: that choice, without options
            default = read(key, default)
        annotation = Any if parameter.annotation is inspect.Parameter.empty else parameter.annotation
        types[key] = (_annotation(key, annotation), default)
    return create_model("options", __config__=settings, **types)


def _annotation(key: str, annotation: Any) -> Any:
    """The type as which pydantic validates an option. Choices and arrays get a validator of ours."""
    union = typing.get_origin(annotation) in (typing.Union, UnionType)
    members = typing.get_args(annotation) if union else (annotation,)
    kind = key if key in KINDS and any(typing.get_origin(member) is Callable for member in members) else ""
    if kind or np.ndarray in members:
        return Annotated[Any, PlainValidator(partial(read_option, kind, members))]
    return Annotated[annotation, BeforeValidator(partial(_typed, annotation))]


def _typed(annotation: Any, value: Any) -> Any:
    """A value of a file as a type that YAML or `for_pydantic` lacks: a path, a tensor, or a list."""
    union = typing.get_origin(annotation) in (typing.Union, UnionType)
    members = typing.get_args(annotation) if union else (annotation,)
    for member in members:
        if member is Path and isinstance(value, str) and str not in members:
            return Path(value)
        is_file = isinstance(value, str) and value.endswith(DATA_FILES)
        if getattr(member, "__module__", "") == "torch" and (is_file or isinstance(value, np.ndarray | tuple)):
            return sys.modules["torch"].as_tensor(_array(value, members))
        if list in (member, typing.get_origin(member)) and isinstance(value, tuple):
            (of,) = typing.get_args(member) or (Any,)
            return [_typed(of, one) for one in value]
    return value


def read_option(kind: str, members: tuple[Any, ...], value: Any) -> Any:
    """The value of an option that may be a choice or an array.

    Args:
        kind: of its choices; empty if it is no choice.
        members: the types that its annotation allows.
        value: from the experiment file.

    Raises ValueError: none of the types fits.
    """
    named = isinstance(value, str) and (":" in value or (kind and value in {*KINDS[kind].known, *installed(kind)}))
    if kind and (named or isinstance(value, Mapping | Choice) or callable(value)):
        return read(kind, value)
    if isinstance(value, bool) and bool not in members:
        raise ValueError("must be a number, an array or a choice")
    for member in members:
        if typing.get_origin(member) in (Annotated, Literal) and isinstance(value, int | float | str):
            try:
                return TypeAdapter(member).validate_python(value, strict=True)
            except ValidationError as error:
                if not isinstance(value, str):  # which may name a file
                    raise ValueError(allowed(error.errors()[0])) from None
    if isinstance(value, int | float) and float in members:
        return float(value)
    if (value is None and NoneType in members) or (isinstance(value, int) and int in members):
        return value
    if np.ndarray not in members:
        raise ValueError(f"must be {_names(kind, value)}")
    return _array(value, members)


def _array(value: Any, members: tuple[Any, ...]) -> Any:
    """Numbers, those of a file, or texts. A recording with a name stays its name: it is read when a trial is built."""
    if isinstance(value, str | Path):
        from rollcall.participation import recording

        try:
            if str in members and Path(value).is_file():
                return recording.load(value)
            if str in members and recording.named(value):
                return value
            if str(value).endswith(DATA_FILES):
                return recording.array(Path(value))
        except ValueError as error:
            raise CompleteError(str(error)) from None
    if isinstance(value, np.ma.MaskedArray):
        raise ValueError("must be an array without a mask")
    try:
        numbers = np.asarray(value)
    except ValueError:
        raise ValueError("must be numbers in rows of equal length") from None
    names = numbers.dtype.kind == "U" and any(typing.get_origin(member) is Sequence for member in members)
    if numbers.dtype.kind not in "biuf" and not names:
        raise ValueError("must be numbers, or the path of a .npy or .npz file")
    return numbers


# A user's callable at work.


def _checked_call(kind: str, factory: Callable[..., Any], *supplied: Any, **options: Any) -> Any:
    """What a user's callable makes, checked, in the form that the suite takes.

    Raises SourceError: it raised an error or made something else; with the file and the line.
    """
    made_by = getattr(factory, "func", factory)  # without the options
    entry, place = KINDS[kind], definition(made_by.value if isinstance(made_by, Instance) else made_by)
    place = f"{place}: " if place else ""
    try:
        result = factory(*supplied, **options)
    except Exception as error:
        of_suite = plain(factory).__module__.startswith(SUITE)  # such as the class of what `supervised` makes
        named = isinstance(error, ValueError) and (of_suite or REFUSAL.match(str(error)))
        if isinstance(error, SourceError) or named:
            raise
        raise SourceError(f"{contributed_line(error) or place}{_said(error)}") from error
    try:
        adapted = resolve_name(entry.adapts)(result, *supplied) if entry.adapts else result
    except Exception as error:
        raise SourceError(f"{contributed_line(error) or place}{_said(error)}") from error
    if not entry.fits(adapted):
        raise SourceError(f"{place}must return {entry.described}; returned {in_words(result)}")
    return adapted


def _said(error: Exception) -> str:
    """An error of a user's code. One of a check of the suite keeps its own words."""
    own_words = REFUSAL.match(str(error)) or (isinstance(error, ValueError) and not contributed_line(error))
    return str(error) if own_words else told(error)
