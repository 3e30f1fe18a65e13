"""FINDINGS.md: what no paper shows. The boards, a guide, our own experiments, and published orders taken apart.

The page follows from kept results and `findings.yaml`.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd

from rollcall.benchmark.config.base import load_yaml, validated
from rollcall.benchmark.config.experiment import names
from rollcall.benchmark.config.metric import Metric
from rollcall.benchmark.config.text import counted
from rollcall.benchmark.search.board import Board
from rollcall.leaderboard.paper.claims import Results, pairs_of, values_of
from rollcall.leaderboard.paper.experiment import Claim, printed, printed_for
from rollcall.leaderboard.paper.quantities import Estimate, estimate, geometric
from rollcall.leaderboard.paper.reproduction import HERE, PAGES, Judged, Written, kept, origin
from rollcall.leaderboard.paper.sentences import MARK, RATIO, change, claims_list, interval
from rollcall.leaderboard.render import markdown
from rollcall.leaderboard.standing import Standing, expectations, points, result_table, standing

NAME, PICTURE = "FINDINGS.md", "pictures/orders.svg"


@dataclass(frozen=True)
class Gap:
    """A row with its gap over the seeds, the step from the first row's gap, the printed gap, and the size of the runs.

    `searched`: whether rates were searched, whose uncertainty is not in the interval.
    """

    row: Written
    gap: Estimate
    step: Estimate | None
    printed: float | None
    metric: Metric
    size: str
    searched: bool

    @property
    def text(self) -> str:
        return self._of(self.gap) + MARK * self.searched

    @property
    def printed_text(self) -> str:
        return "" if self.printed is None else f"{'+' * (self.printed >= 0)}{self.metric.text(self.printed)}"

    @property
    def step_text(self) -> str:
        return f"{'× ' if self.gap.logarithmic else ''}{self._of(self.step)}" if self.step else ""

    def _of(self, quantity: Estimate) -> str:
        return interval(quantity, RATIO) if quantity.logarithmic else change(quantity, self.metric)


def taken_apart(order: Written, results: Callable[[str], Results]) -> list[Gap]:
    """The gap in each row; `results` gives the experiment, or a variant of it by name, with its cells."""
    made: list[Gap] = []
    first = pd.Series(dtype=float)
    for row in (Written(**{"variant": "", "changes": {}} | row) for row in order.rows):
        experiment, cells = results(row.variant)
        claim = validated(Claim, {"says": row.setting, "tag": "ours", "least": 0.0, **order.gap, **row.changes})
        metric = claim.metric or experiment.report.metrics[0]
        ((cell, other),) = pairs_of(claim, metric, cells)
        assert other is not None
        values = values_of(claim, metric, experiment, cell, other)
        known = [printed_for(one.labels, metric, printed(experiment)) for one in (cell, other)]
        of_table = [number.value for number in known if number is not None and number.value is not None]
        paper = of_table[0] - of_table[1] if len(of_table) == 2 else None if made else order.printed
        of = geometric if claim.over else estimate
        steps = (values / first if claim.over else values - first).dropna()
        first = values if first.empty else first
        planned = f" of {cell.rounds:,}" if cell.rounds_run < cell.rounds else ""
        size = f"{counted(len(values), 'seed')}, {cell.rounds_run:,}{planned} rounds"
        step, searched = of(steps.to_numpy()) if made else None, bool(cell.searched or other.searched)
        made.append(Gap(row, of(values.to_numpy()), step, paper, metric, size, searched))
    return made


def written() -> Written:
    """The sentences of FINDINGS.md: findings by name, published orders, checks by another route, guide and limits."""
    told: dict[str, Any] = load_yaml(HERE / "findings.yaml")
    own: dict[str, Any] = {"rests": {}, "search": "", "boards": ()}
    lists = {key: [Written(**own | one) for one in told[key]] for key in ("checks", "guide", "limits")}
    orders = [Written(**{"printed": None} | one) for one in told["orders"]]
    return Written(
        findings={name: Written(**own | one) for name, one in told["findings"].items()}, orders=orders, **lists
    )


def findings(all_judged: Sequence[Judged], *archives: Path) -> str:
    """FINDINGS.md; its published orders follow from some archives, see `unarchive`, its boards also from the last."""
    found = boards(*archives[-1:])
    content, own = guided(found), {one.experiment.name: one for one in all_judged}

    def rests(sentence: Written) -> str:
        """The claims that a sentence rests on."""
        return ", ".join(f"{name} {number}" for name, numbers in sentence.rests.items() for number in numbers)

    shown = [
        (name, finding, one, claims_list(one.claims), [run for cell in one.ran for run in cell.runs.values()])
        for name, finding in content.findings.items()
        if (one := own.get(f"findings/{name}")) is not None
    ]
    return PAGES.get_template("findings.md").render(
        told=content, shown=shown, origin=origin, rests=rests, boards=found.values(),
        board_table=lambda board: markdown(result_table(board, "fedavg")), expectations=expectations,
        orders=orders(*archives) if shown else [], picture=PICTURE,
    )  # fmt: skip


def boards(archive: Path | None = None) -> dict[str, Standing]:
    """The suite's boards by name, with their kept entries and those in another archive."""
    return {name: standing(Board.read(name), archive) for name in names("standard")}


def guided(boards: Mapping[str, Standing]) -> Written:
    """The sentences of FINDINGS.md, those of the guide with their numbers of boards."""
    content = written()
    for row in content.guide:
        row.says = row.says.format(*(gap_on(place, boards) for place in row.boards))
    return content


def gap_on(place: str, boards: Mapping[str, Standing]) -> str:
    """How far a method is above another, with the 95 % interval over searches; place: `BOARD PATTERN METHOD OTHER`."""
    board, pattern, method, baseline = place.split()
    gap = boards[board].differences(pattern, baseline)[method]
    return points((gap.mean, gap.half), "+")


def orders(*archives: Path) -> list[tuple[Written, str, list[Gap]]]:
    """The published orders of `findings.yaml`: each with what it shows, and its gaps by the runs in some archives."""
    listed = [(order, taken_apart(order, kept(order.experiment, *archives).results)) for order in written().orders]
    return [(order, order.says.format(*(gap.text for gap in gaps)), gaps) for order, gaps in listed]
