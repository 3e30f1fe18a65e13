"""Measured beside printed numbers, and variants, by hand."""

from dataclasses import replace

from rollcall.leaderboard.paper.cells import cells
from rollcall.leaderboard.paper.comparison import agreement, variants
from tests.support.results import COMPARED, ends, runs


def test_printed_numbers_agree_within_the_interval_and_the_papers_deviation(numbers):
    # fedavg 0.5, 0.6, 0.7: 0.6 +- 0.248; mifa 0.8 +- 0.248: the printed 0.4 is outside. `often` has one number for both.
    assert agreement(COMPARED, cells(COMPARED, runs(COMPARED, ends)), numbers) == [
        "Printed numbers: 1 differ.",
        "",
        "- seldom, mifa, test/accuracy: 80.0 [55.2, 104.8], printed 40.0",
        "",
    ]
    alone = [replace(number, value=0.615, sd=0.005, among=(), shared="") for number in numbers[:1]]
    # 0.6205 +- 0.00025, less 0.005, is above 0.615; 0.6201 +- 0.00025, less 0.005, is not
    above = cells(COMPARED, runs(COMPARED, lambda labels, seed: 0.6204 + 0.0001 * seed))
    assert agreement(COMPARED, above, alone)[0] == "Printed numbers: 1 differ."
    within = cells(COMPARED, runs(COMPARED, lambda labels, seed: 0.62 + 0.0001 * seed))
    assert agreement(COMPARED, within, alone)[0] == "Printed numbers: 1 agree."
    assert agreement(COMPARED, cells(COMPARED, []), numbers) == []


def test_short_few_and_diverged_runs_are_not_judged(numbers):
    expected = "Printed numbers: 1 not judged (fewer rounds or seeds than printed, or diverged)."
    diverged = [replace(run, tags=run.tags | {"rollcall.diverged": "50"}) for run in runs(COMPARED, ends, skip=(1, 2))]
    for made in (
        runs(COMPARED, ends, rounds=50),
        runs(COMPARED, ends, skip=(2,)),
        [*diverged, *runs(COMPARED, ends, skip=(0,))],
    ):
        assert agreement(COMPARED, cells(COMPARED, made), numbers)[0] == expected


def test_a_variant_is_compared_seed_by_seed_where_it_changes_the_trial():
    released = COMPARED.as_("as_released").only({"algorithm": ["mifa"]})
    both = [*runs(COMPARED, ends), *runs(released, lambda labels, seed: 0.6 + 0.1 * seed)]
    lines = variants(COMPARED, both, cells(COMPARED, both))
    assert lines[0] == "`as_released`: raw updates"
    rows = [[cell.strip() for cell in line.strip("| ").split("|")] for line in lines[2].splitlines()[2:4]]
    assert rows == [  # of fedavg, which the variant leaves as it is, nothing is said
        ["often, mifa", "80.0", "70.0", "-10.0 [-10.0, -10.0]", "3", "100"],
        ["seldom, mifa", "80.0", "70.0", "-10.0 [-10.0, -10.0]", "3", "100"],
    ]
    longer = runs(COMPARED, ends, rounds=200, skip=(0, 1))
    for paper_alone in (runs(COMPARED, ends), [*runs(COMPARED, ends, skip=(2,)), *longer]):
        assert variants(COMPARED, paper_alone, cells(COMPARED, paper_alone)) == []
