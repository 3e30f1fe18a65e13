"""Conformance checks that every contributed part must pass: `rollcall check`."""

from dataclasses import dataclass
from typing import Any

from benchmark.config.contributed import Constant
from benchmark.config.errors import SourceError
from benchmark.config.registry import Choice
from benchmark.config.source import contributed_line, told
from benchmark.conformance.checks import CHECKS, FIRST, OF_KIND
from benchmark.conformance.failure import CheckFailed, location
from benchmark.conformance.subject import Subject
from benchmark.federation.checked import WrongReturnError


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

    Raises:
        SettingError: an algorithm that cannot be built, or accepts neither one local step nor three.
    """
    subject: Any = Subject.of(choice) if choice.kind == "algorithm" else choice
    part = subject.method() if choice.kind == "algorithm" else _code_of(choice)
    checks, first = (CHECKS, FIRST) if choice.kind == "algorithm" else (OF_KIND[choice.kind], OF_KIND[choice.kind][:1])
    outcomes = [_outcome(check, subject, part) for check in first]
    if all(outcome.passed for outcome in outcomes):
        outcomes += [_outcome(check, subject, part) for check in checks if check not in first]
    else:
        outcomes = [outcome for outcome in outcomes if not outcome.passed][:1]
    return sorted(outcomes, key=lambda outcome: outcome.passed)


def _code_of(choice: Choice) -> Any:
    """The class, function or object to name in failures: of the participation model `function`, the user's function."""
    options = [option for option in choice.options.values() if isinstance(option, Choice) and option.outside]
    factory = (options[0] if options and not choice.outside else choice).factory
    return factory.value if isinstance(factory, Constant) else factory


def _outcome(check: Any, subject: Any, part: Any) -> Outcome:
    title = check.__doc__ or check.__name__
    try:
        return Outcome(title, True, seen=check(subject) or "")
    except (CheckFailed, WrongReturnError) as failure:
        return Outcome(title, False, failure.expected, failure.seen, location(part, failure))
    except SourceError as error:  # of a contributed function: it begins with the place
        where, _, seen = str(error).partition(": ")
        return Outcome(title, False, "no error", seen, where)
    except Exception as error:  # a contributed part may raise anything; that is a failure of the part
        where = contributed_line(error).removesuffix(": ") or location(part, error)
        return Outcome(title, False, "no error", told(error), where)
