"""FINDINGS.md: what the suite's own experiments show, and which method to use; every sentence rests on claims."""

from collections.abc import Mapping, Sequence
from pathlib import Path

from pydantic import Field

from rollcall.benchmark.config.base import Settings, load_yaml, validated
from rollcall.leaderboard.paper.claims import Verdict
from rollcall.leaderboard.paper.reproduction import FOLDER, Judged, origin
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

    def outdated(self, verdicts: Mapping[str, Sequence[Verdict]]) -> list[str]:
        """The sentences that rest on a verdict that the results do not give.

        Args:
            verdicts: of the claims of each experiment.
        """
        every = (*self.findings.values(), *self.checks, *self.guide, *self.limits)
        return [
            one.says
            for one in every
            if any(verdicts[name][n - 1] != verdict for name, ns in one.rests.items() for n, verdict in ns.items())
        ]


def page(all_judged: Sequence[Judged]) -> str:
    """The text of FINDINGS.md."""
    told, own = Findings.read(), {one.experiment.name: one for one in all_judged}
    lines = [
        "# What no paper shows",
        "",
        "`rollcall report` writes this page from kept results and `findings.yaml`; do not edit it by hand.",
        "Each claim and the size that decides it was written before its runs. Links lead to the claims of a sentence.",
        "",
        "## Which method to use",
        "",
        "| your clients are | use | because |",
        "| --- | --- | --- |",
        *(f"| {one.clients} | {one.says} | {one.links()} |" for one in told.guide),
        "",
        "Where the guide does not reach:",
        "",
        *(f"- {one.says} {f'({one.links()})' if one.rests else ''}".rstrip() for one in told.limits),
        "",
    ]
    for name, finding in told.findings.items():
        one = own.get(f"findings/{name}")
        if one is None:
            continue
        runs = [run for cell in one.cells for run in cell.runs.values()]
        lines += [f"## {one.experiment.title.removeprefix('Finding: ').capitalize()}", "", f"**{finding.says}**", ""]
        if runs:
            lines += [f"![{one.experiment.title}](figures/findings/{name}.svg)", ""]
        lines += [*claims_list(one.claims), "", f"Run it: `rollcall run findings/{name}`. Cost: {finding.cost}."]
        lines += [origin(runs), ""] if runs else [""]
    lines += ["## Checks by another route", "", *(f"- {one.says} ({one.links()})" for one in told.checks), ""]
    return "\n".join(lines)
