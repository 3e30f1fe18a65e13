"""FINDINGS.md: what the suite's own experiments show, and which method to use; every sentence rests on claims."""

from collections.abc import Sequence
from pathlib import Path

from pydantic import Field

from rollcall.benchmark.config.base import Settings, load_yaml, validated
from rollcall.leaderboard.paper.claims import Verdict
from rollcall.leaderboard.paper.reproduction import FOLDER, PAGES, Judged, origin
from rollcall.leaderboard.paper.sentences import claims_list

NAME = "FINDINGS.md"
FILE = Path(__file__).parents[1] / "findings.yaml"


class Sentence(Settings):
    """A sentence written by hand, and the verdicts that it rests on: by experiment, by the number of the claim."""

    says: str
    rests: dict[str, dict[int, Verdict]] = Field({})

    def links(self) -> str:
        """Links to the claims that it rests on."""
        named = ((name, number) for name, numbers in self.rests.items() for number in numbers)
        return ", ".join(f"[{name} {n}]({FOLDER}/findings/{name}.md#{n})" for name, n in named)


class Finding(Sentence):
    """The main sentence of an experiment, and its processor time, measured or estimated from measured trials."""

    cost: str


class Advice(Sentence):
    """What to use (`says`) if the clients are like this."""

    clients: str


class Findings(Settings):
    """The content of `findings.yaml`: findings by experiment, checks by another route, the guide and its limits."""

    findings: dict[str, Finding]
    checks: tuple[Sentence, ...]
    guide: tuple[Advice, ...]
    limits: tuple[Sentence, ...]

    @classmethod
    def read(cls) -> "Findings":
        """The findings of the suite."""
        return validated(cls, load_yaml(FILE))


def page(all_judged: Sequence[Judged]) -> str:
    """The text of FINDINGS.md."""
    told, own = Findings.read(), {one.experiment.name: one for one in all_judged}
    shown = [
        (name, finding, one, claims_list(one.claims), [run for cell in one.ran for run in cell.runs.values()])
        for name, finding in told.findings.items()
        if (one := own.get(f"findings/{name}")) is not None
    ]
    return PAGES.get_template("findings.md").render(told=told, shown=shown, origin=origin)
