"""Reference of choices: every name that an experiment file can choose, with its options."""

import inspect
import sys
from collections.abc import Callable
from functools import partial
from typing import Any

import algorithms
from benchmark.config.choice import KINDS, options
from reference_pages.docstrings import markdown, parse, summary
from reference_pages.settings import entry
from reference_pages.words import shown, slug, type_in_words

ABOUT = {
    "task": "What is learned: the data, the model and how samples are split among clients. The key `task` of a trial.",
    "model": "The network. An option of the image tasks.",
    "partition": "How samples are split among clients. An option of the image tasks.",
    "augmentation": "How training images are changed before each step. An option of the image tasks.",
    "participation": "Which clients are available in each round. The key `participation` of a trial.",
    "probability": "Where the probabilities of the clients come from. An option of most participation models.",
    "variation": "How the probabilities change over time. An option of some participation models.",
    "function": "A roll call of your own as a function of (t, rng). An option of the participation model `function`.",
    "algorithm": "The federated method. The key `algorithm` of a trial.",
    "metric": "What is measured besides the metrics of the task. The key `metrics` of `evaluation`.",
    "schedule": "How the local learning rate changes over rounds. The key `schedule` of `local`.",
    "local_optimizer": "What takes the local steps of a client. The key `optimizer` of `local`.",
    "server_optimizer": "What applies the update of a method to the server's model. The key `optimizer` of `server`.",
    "analysis": "A computation without training. The key `analysis` of a panel.",
}


def pages() -> dict[str, str]:
    """A page for each kind of choice."""
    return {f"choices/{slug(kind)}.md": page(kind) for kind in KINDS}


def page(kind: str) -> str:
    """All choices of a kind."""
    title = kind.replace("_", " ").capitalize()
    text = [f"(choices-{slug(kind)})=", f"# {title}", "", ABOUT.get(kind, f"Values of `{kind}`."), ""]
    for name, factory in KINDS[kind].known.items():
        text += section(kind, name, factory, KINDS[kind].supplied)
    return "\n".join(text)


def section(kind: str, name: str, factory: Callable[..., Any], supplied: int) -> list[str]:
    """One choice: what it is, and an entry for each option."""
    said = parse(documented(factory))
    text = [f"(choice-{slug(kind)}-{slug(name)})=", f"## `{name}`", "", markdown(body(factory)), ""]
    for key, parameter in options(factory, supplied).items():
        default = "required" if parameter.default is parameter.empty else f"default {shown(parameter.default)}"
        text += entry(key, type_in_words(parameter.annotation, key), default, said.meanings.get(key, ""))
    return text


def documented(factory: Callable[..., Any]) -> str | None:
    """The docstring that names the options; that of the function itself where arguments are filled in already."""
    return inspect.getdoc(factory.func if isinstance(factory, partial) else factory)


def body(factory: Callable[..., Any]) -> str:
    """What the choice is: of a method, its file's docstring; of a data set, that of the data set."""
    if isinstance(factory, partial):
        return summary(parse(inspect.getdoc(factory.args[0])).body)
    if isinstance(factory, type) and issubclass(factory, algorithms.Algorithm):
        return parse(sys.modules[factory.__module__].__doc__).body
    return parse(inspect.getdoc(factory)).body
