"""Conformance checks that every algorithm must pass, your own included: `rollcall check`."""

import dataclasses
from dataclasses import dataclass

from algorithms import Round
from benchmark.config.errors import SettingError
from benchmark.config.registry import Choice
from benchmark.conformance.checks import CHECKS
from benchmark.conformance.failure import CheckFailed, location
from benchmark.conformance.subject import Subject


@dataclass(frozen=True)
class Outcome:
    """The outcome of one check.

    Attributes:
        check: its title.
        passed: whether the method passed.
        expected, seen: of a failure; `seen` may also be a remark on a check that passed.
        where: of a failure, `FILE:LINE` in the method's code.
    """

    check: str
    passed: bool
    expected: str = ""
    seen: str = ""
    where: str = ""


def conform(choice: Choice) -> list[Outcome]:
    """The outcomes of all checks of an algorithm, failures first.

    Raises:
        SettingError: it requires unknown knowledge, or accepts neither one local step nor three.
    """
    subject = Subject.of(choice)
    method = subject.method()
    known = [field.name for field in dataclasses.fields(Round) if field.default is None]
    for name in method.requires:
        if name not in known:
            raise SettingError(f"algorithm: {choice.label} requires {name!r}; must be of {', '.join(known)}")
    outcomes = []
    for check in CHECKS:
        title = check.__doc__ or check.__name__
        try:
            outcomes.append(Outcome(title, True, seen=check(subject) or ""))
        except CheckFailed as failure:
            outcomes.append(Outcome(title, False, failure.expected, failure.seen, location(method, failure)))
        except Exception as error:  # a contributed method may raise anything; that is a failure of the method
            first_line = next(iter(str(error).splitlines()), "")
            seen = f"{type(error).__name__}: {first_line[:100]}"
            outcomes.append(Outcome(title, False, "a round without an error", seen, location(method, error)))
    return sorted(outcomes, key=lambda outcome: outcome.passed)
