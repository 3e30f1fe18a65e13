"""Conformance checks that every contributed part must pass: `rollcall check`."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from rollcall.benchmark.config.choice import Choice, Instance
from rollcall.benchmark.config.errors import SourceError
from rollcall.benchmark.config.source import told
from rollcall.benchmark.conformance import algorithm, parts
from rollcall.benchmark.conformance.failure import CheckFailed, location
from rollcall.benchmark.conformance.subject import Subject
from rollcall.benchmark.federation.checked import WrongReturnError

CHECKS: Mapping[str, Sequence[Callable[[Any], Any]]] = {
    "algorithm": (
        algorithm.declared_knowledge,
        algorithm.runs,
        algorithm.empty_rounds,
        algorithm.returns_the_update,
        algorithm.inputs_unmodified,
        algorithm.deterministic,
        algorithm.devices,
        algorithm.renumbering,
        algorithm.only_the_active_work,
        algorithm.own_steps,
        algorithm.inactive_clients_stay,
        algorithm.state_is_kept,
        algorithm.reload,
        algorithm.full_participation,
        algorithm.limit,
    ),
    "participation": (parts.participation, parts.marginals, parts.long_run),
    "probability": (parts.probability,),
    "partition": (parts.partition,),
    "model": (parts.model,),
    "task": (parts.task,),
    "metric": (parts.metric,),
}
"""The checks of each kind. A check takes the choice, or of an algorithm a `Subject`. Its docstring is its title.

If it returns a text, that is a remark. Of all kinds but algorithms, the first check is made reproducible too.
"""


@dataclass(frozen=True)
class Outcome:
    """The outcome of one check.

    Attributes:
        check: its title.
        passed: whether the part passed.
        expected, seen: of a failure; `seen` may also be a remark on a check that passed.
        where: of a failure, `FILE:LINE` in the part's code.
    """

    check: str
    passed: bool
    expected: str = ""
    seen: str = ""
    where: str = ""


def conform(choice: Choice) -> list[Outcome]:
    """The outcomes of all checks of a choice, failures first.

    After a failure of one of the checks that come first, such as an error in every round, there are no others: they
    would fail for the same reason.

    Raises SettingError: an algorithm that cannot be built, or accepts neither one local step nor three.
    """
    checks = CHECKS[choice.kind]
    if choice.kind == "algorithm":
        subject: Any = Subject.of(choice)
        part, first = subject.method(), 6  # the number of checks on which the others rely
    else:
        subject, part, first = choice, _code_of(choice), 2
        checks = (parts.reproducible(checks[0]), *checks)
    outcomes = [_outcome(check, subject, part) for check in checks[:first]]
    if not all(outcome.passed for outcome in outcomes):
        return [outcome for outcome in outcomes if not outcome.passed][:1]
    outcomes += [_outcome(check, subject, part) for check in checks[first:]]
    return sorted(outcomes, key=lambda outcome: outcome.passed)


def _code_of(choice: Choice) -> Any:
    """The class, function or object to name in failures: of the participation model `function`, the user's function."""
    options = [option for option in choice.options.values() if isinstance(option, Choice) and option.source]
    factory = (options[0] if options and not choice.source else choice).factory
    return factory.value if isinstance(factory, Instance) else factory


def _outcome(check: Callable[[Any], Any], subject: Any, part: Any) -> Outcome:
    title = check.__doc__ or check.__name__
    try:
        result = check(subject)
        return Outcome(title, True, seen=result if isinstance(result, str) else "")
    except (CheckFailed, WrongReturnError) as failure:
        return Outcome(title, False, failure.expected, failure.seen, location(part, failure))
    except SourceError as error:  # of a contributed function: it begins with the place
        where, _, seen = str(error).partition(": ")
        return Outcome(title, False, "no error", seen, where)
    except Exception as error:  # a contributed part may raise anything; that is a failure of the part
        return Outcome(title, False, "no error", told(error), location(part, error))
