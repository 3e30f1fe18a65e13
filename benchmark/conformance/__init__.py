"""What every algorithm must keep to, a user's own included: `rollcall check`."""

import dataclasses
from dataclasses import dataclass

from algorithms import Round
from benchmark.config.errors import SettingError
from benchmark.config.registry import Choice
from benchmark.conformance.checks import CHECKS, Broken
from benchmark.conformance.subject import Subject


@dataclass(frozen=True)
class Outcome:
    """How one check ended.

    Attributes:
        check: what it is about.
        expected, seen: of a failure; `seen` may also remark on what passed.
    """

    check: str
    passed: bool
    expected: str = ""
    seen: str = ""


def conform(choice: Choice) -> list[Outcome]:
    """All checks of an algorithm, those that failed first.

    Raises:
        SettingError: it needs knowledge that does not exist, or takes neither one local step nor three.
    """
    subject = Subject.of(choice)
    known = [field.name for field in dataclasses.fields(Round) if field.default is None]
    for name in subject.method().requires:
        if name not in known:
            raise SettingError(f"algorithm: {choice.label} needs {name!r}; must be of {', '.join(known)}")
    outcomes = []
    for check in CHECKS:
        about = check.__doc__ or check.__name__
        try:
            outcomes.append(Outcome(about, True, seen=check(subject) or ""))
        except Broken as broken:
            outcomes.append(Outcome(about, False, broken.expected, broken.seen))
        except Exception as error:  # whatever a contributed method may raise is its failure, not ours
            reason = next(iter(str(error).splitlines()), "")
            outcomes.append(
                Outcome(about, False, "a round without an error", f"{type(error).__name__}: {reason[:100]}")
            )
    return sorted(outcomes, key=lambda outcome: outcome.passed)
