"""A tenth of the statements' experiments run again."""

from functools import cache
from itertools import chain

import numpy as np
import pytest

from rollcall import simulate
from rollcall.benchmark.config.digest import serialised
from rollcall.benchmark.config.experiment import names
from rollcall.benchmark.config.grid import grid_points
from rollcall.benchmark.config.trial import Analysis
from rollcall.leaderboard.cells import cells
from rollcall.leaderboard.paper.claims import check_claim
from rollcall.leaderboard.paper.experiment import PaperExperiment
from rollcall.leaderboard.runs import Run, unarchive

pytestmark = pytest.mark.full

OPTIONS = ("minus", "over", "along", "slope", "at", "either", "printed", "cause", "least", "most")


@cache
def read(name):
    return PaperExperiment.read(name)


def panels_of(experiment, claim):
    """The panels whose runs a claim reads."""
    parts = (claim.where, claim.of, claim.minus or {}, claim.over or {})
    return set(chain.from_iterable(labels.get("panel", ()) for labels in parts)) or set(experiment.panels)


def part(experiment, claim):
    """The experiment with what a claim needs: its panels, and its labels on axes on which nothing is compared."""
    compared = {*(claim.minus or {}), *(claim.over or {})}
    labels = {axis: list(found) for axis, found in (claim.where | claim.of).items() if axis not in compared}
    return experiment.only(labels | {"panel": sorted(panels_of(experiment, claim))})


def kinds(experiment, claim):
    """The analyses that a claim reads, and the options that it has."""
    computed = [experiment.panels[panel].analysis for panel in panels_of(experiment, claim)]
    given = {option for option in OPTIONS if getattr(claim, option) is not None}
    return given | {analysis["name"] if analysis else "training" for analysis in computed}


def cost(experiment, claim):
    """A measure of the time of a claim's runs: their rounds; an analysis counts as 200."""
    every = sorted(grid_points(part(experiment, claim)), key=lambda point: point.rounds)
    return sum({point.digest: 200 if "analysis" in point.spec else point.rounds for point in every}.values())


def ran(experiment, known=None):
    """The runs of an experiment, computed now unless they are known; of equal trials the longest."""
    known = {} if known is None else known
    for point in sorted(grid_points(experiment), key=lambda point: -point.rounds):
        if point.digest not in known or known[point.digest].rounds < point.rounds:
            trial = point.trial
            table = trial.table() if isinstance(trial, Analysis) else simulate(trial).history
            tags = {"seed": str(point.seed), "rollcall.trial": point.digest}
            known[point.digest] = Run(tags, serialised(point.spec), table.set_index("round").astype(float))
    return [known[digest] for digest in {point.digest for point in grid_points(experiment)}]


@cache
def archived(name):
    """The kept runs of an experiment by digest."""
    return {run.tags["rollcall.trial"]: run for run in unarchive(read(name).home)}


@cache
def cells_of(name):
    return cells(read(name), list(archived(name).values()))


def kept(experiment, claim):
    return check_claim(claim, experiment, cells_of(experiment.name)).verdict


def test_a_tenth_of_the_statements_is_run_again():
    """The cheapest claims that have a new kind of analysis or of claim: equal rows and equal verdicts."""
    every = [read(name) for pattern in ("*/statements", "*/quadratics") for name in names(of=pattern)]
    claims = [(one, claim) for one in every for claim in one.claims]
    claims = [
        pair for pair in claims if {point.digest for point in grid_points(part(*pair))} <= archived(pair[0].name).keys()
    ]
    assert len(claims) >= 150  # of 167
    claims.sort(key=lambda pair: cost(*pair))
    chosen, seen = [], set()
    for experiment, claim in claims:
        if kept(experiment, claim) in ("not run", "too short"):
            continue
        if kinds(experiment, claim) - seen or len(chosen) < len(claims) / 10:
            chosen.append((experiment, claim))
            seen |= kinds(experiment, claim)
    assert len(chosen) >= len(claims) / 10
    known = {}
    for experiment, claim in chosen:
        of = part(experiment, claim)
        runs = ran(of, known)
        for run in runs:
            before = archived(experiment.name)[run.tags["rollcall.trial"]].history.loc[: run.history.index[-1]]
            again = run.history.loc[before.index, before.columns]
            np.testing.assert_allclose(again, before, rtol=1e-5, atol=1e-9, err_msg=f"{experiment.name}: {claim.says}")
        assert check_claim(claim, of, cells(of, runs)).verdict == kept(experiment, claim), claim.says
