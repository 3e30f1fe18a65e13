"""Claims decided by hand."""

import math
from dataclasses import replace

import pytest
from scipy import stats

from benchmark import SettingError
from benchmark.config.base import validated
from benchmark.config.report import Claim, Report
from leaderboard.paper.cells import Estimate, cells
from leaderboard.paper.claims import check_claim
from leaderboard.paper.sentences import claims_list
from tests.support.results import experiment, runs

REPORT = Report()


def decide(claim, ends, **options):
    made = experiment()
    return check_claim(validated(Claim, {"says": "so"} | claim), REPORT, cells(made, runs(made, ends, **options)))


def scattered(labels, seed):
    """FedAvg 0.5, 0.6, 0.7; mifa above it by 0.1, 0.1, 0.1 where clients are often there, by -0.1, 0.0, 0.4 else."""
    more = 0.1 if labels["participation"] == "often" else (-0.1, 0.0, 0.4)[seed]
    return 0.5 + 0.1 * seed + (more if labels["algorithm"] == "mifa" else 0.0)


ABOVE = {"of": {"algorithm": "mifa"}, "minus": {"algorithm": "fedavg"}, "least": 0.0}


def test_a_difference_is_paired_over_seeds():
    result = decide(ABOVE, scattered)
    often, seldom = result.places
    assert often.labels == {"participation": "often"}
    assert (often.quantity.mean, often.quantity.low, often.quantity.high) == pytest.approx((0.1, 0.1, 0.1))
    assert often.verdict == "holds"
    assert seldom.quantity.mean == pytest.approx(0.1)  # of -0.1, 0.0, 0.4: sd 0.2646, half-width 0.657
    assert seldom.quantity.low == pytest.approx(0.1 - 4.302653 * math.sqrt(0.07 / 3), abs=1e-6)
    assert seldom.verdict == "undecided"
    assert result.verdict == "undecided"
    assert not result.reduced


def test_a_claim_about_one_place():
    result = decide(ABOVE | {"where": {"participation": ["often"]}}, scattered)
    assert result.verdict == "holds"
    assert [place.labels for place in result.places] == [{}]


def test_a_claim_fails_where_one_place_says_so():
    assert decide(ABOVE | {"least": 0.2}, scattered).verdict == "fails"
    assert decide({"most": 0.4}, scattered).verdict != "holds"
    assert decide({"of": {"algorithm": "fedavg"}, "least": 0.0, "most": 1.0}, scattered).verdict == "holds"


def test_one_of_several_places_must_fail_more_clearly():
    """Student's t of mifa less fedavg is -5 with three seeds: p = 0.038, which is below 0.05 but not below 0.05 / 2."""

    def ends(labels, seed):
        clear = labels["participation"] == "often"
        return 0.5 + (0.1 if clear else -0.5 + 0.1 * 3**0.5 * (seed - 1)) * (labels["algorithm"] == "mifa")

    result = decide(ABOVE, ends)
    assert [place.verdict for place in result.places] == ["holds", "fails"]
    assert result.verdict == "undecided"
    assert decide(ABOVE | {"where": {"participation": ["seldom"]}}, ends).verdict == "fails"
    low, high = result.places[1].quantity.interval(0.975)
    assert (low, high) == pytest.approx((-0.5 - 0.62053, -0.5 + 0.62053), abs=1e-5)  # t(0.9875, 2) = 6.2053


def test_ratios_are_averaged_as_ratios():
    def halves_and_doubles(labels, seed):
        return 1.0 if labels["algorithm"] == "fedavg" else (0.5, 2.0, 1.0)[seed]

    claim = {"of": {"algorithm": "mifa"}, "over": {"algorithm": "fedavg"}, "most": 100}
    (place, _) = decide(claim, halves_and_doubles).places
    assert place.quantity.mean == pytest.approx(1.0)
    assert place.quantity.high == pytest.approx(math.exp(4.302653 * math.log(2) / math.sqrt(3)), rel=1e-5)


def test_a_quantity_over_decades_has_its_interval_in_the_logarithm():
    made = experiment(report={"metrics": {"test/accuracy": "max"}, "log": ["y"]})
    found = cells(made, runs(made, lambda labels, seed: (1e-4, 1e-2, 1e-3)[seed]))
    claim = validated(Claim, {"says": "so", "of": {"algorithm": "mifa"}, "least": 1e-6})
    result = check_claim(claim, made.report, found)
    assert result.places[0].quantity.mean == pytest.approx(1e-3)
    assert result.places[0].quantity.low == pytest.approx(10 ** (-3 - 4.302653 / math.sqrt(3)), rel=1e-5)
    assert result.verdict == "holds"


def test_a_claim_at_equal_cost():
    """Mifa halves in every evaluation and sends twice as much: at 40 floats it is at 1/4, fedavg at its end, 0.1."""
    made = experiment()
    found = runs(
        made, lambda labels, seed: [1, 0.5, 0.25, 0.2, 0.2] if labels["algorithm"] == "mifa" else [1] * 4 + [0.1]
    )
    for run in found:
        run.history["cost/floats_up"] = run.history.index * (2 if run.settings["algorithm"] == "mifa" else 1)
    claim = {"of": {"algorithm": "fedavg"}, "minus": {"algorithm": "mifa"}, "most": 0.0}
    claim = validated(Claim, {"says": "so", "at": 40, "per": "cost/floats_up"} | claim)
    result = check_claim(claim, made.report, cells(made, found))
    assert result.verdict == "holds"
    assert result.places[0].quantity.mean == pytest.approx(0.1 - 0.25)


def test_seeds_that_would_decide_a_claim():
    """By Student's t: with n seeds, (t(.975) + z(.8)) sd / sqrt(n) is first below the gap."""
    result = decide(ABOVE | {"where": {"participation": ["seldom"]}}, scattered)
    quantity = result.places[0].quantity
    exact = next(
        n for n in range(2, 999) if (stats.t.ppf(0.975, n - 1) + 0.8416) * quantity.sd / n**0.5 < quantity.mean
    )
    assert abs(result.seeds_to_decide - exact) <= 1
    assert decide(ABOVE, scattered, skip=(2,)).seeds_to_decide is None  # two seeds tell too little
    assert decide(ABOVE | {"least": 5.0}, scattered).seeds_to_decide is None  # decided
    ratio = Estimate(1.11, 0.05, 1.04, 1.18, 5, logarithmic=True)
    assert ratio.seeds_to_exclude(1.1) == math.ceil((2.802 * 0.05 / math.log(1.11 / 1.1)) ** 2 + 1.9208)


def test_every_undecided_place_must_be_decided():
    def ends(labels, seed):
        return 0.5 + ((-0.1, 0.0, 0.4)[seed] if labels["algorithm"] == "mifa" else 0.0)

    both, one = decide(ABOVE, ends), decide(ABOVE | {"where": {"participation": ["seldom"]}}, ends)
    gap, sd = 0.1, math.sqrt(0.07)
    assert one.seeds_to_decide == math.ceil((2.8016 * sd / gap) ** 2 + 1.9208)
    assert both.seeds_to_decide == math.ceil(((1.95996 + stats.norm.ppf(0.8**0.5)) * sd / gap) ** 2 + 1.9208)


def test_a_claim_that_would_fail_is_decided_by_one_place():
    def ends(labels, seed):
        less, spread = (0.3, 0.2) if labels["participation"] == "often" else (0.001, 0.2)
        return 0.5 + (spread * (seed - 1) - less if labels["algorithm"] == "mifa" else 0.0)

    z = stats.norm.ppf([0.9875, 0.8])  # of two places, so 0.05 / 2
    expected = math.ceil((z.sum() * 0.2 / 0.3) ** 2 + z[0] ** 2 / 2)
    assert decide(ABOVE, ends).seeds_to_decide == expected


def test_no_number_of_seeds_decides_what_diverges():
    made = experiment()
    found = runs(made, scattered)
    diverged = [replace(run, tags=run.tags | {"rollcall.diverged": "50"}) for run in found[:1]] + found[1:]
    claim = validated(Claim, {"says": "so"} | ABOVE)
    result = check_claim(claim, REPORT, cells(made, diverged))
    assert (result.verdict, result.seeds_to_decide) == ("undecided", None)
    alone = check_claim(claim, REPORT, cells(made, diverged[:1]))  # the other method was not run
    assert alone.verdict == "not run"


def test_what_is_never_reached_is_later_than_what_is():
    def ends(labels, seed):
        return [0.0, 0.1, 0.2] if labels["algorithm"] == "mifa" else [0.0, 0.3, 0.4]

    later = {"of": {"algorithm": "mifa"}, "minus": {"algorithm": "fedavg"}, "metric": "round_of:test/accuracy>=0.3"}
    assert decide(later | {"least": 0.0}, ends, rounds=20).verdict == "holds"
    assert decide(later | {"most": 0.0}, ends, rounds=20).verdict == "fails"
    neither = later | {"metric": "round_of:test/accuracy>=0.9", "most": 0.0}
    assert decide(neither, ends, rounds=20).verdict == "undecided"


def test_along_an_axis():
    def rising(labels, seed):
        return 0.1 * seed + (1.0 if labels["participation"] == "seldom" else 0.0)

    up = {"along": "participation", "of": {"algorithm": "fedavg"}, "least": 0.5}
    result = decide(up, rising)
    assert result.verdict == "holds"
    assert result.places[0].quantity.mean == pytest.approx(1.0)
    assert decide(up | {"least": None, "most": -0.5}, rising).verdict == "fails"


def test_one_seed_decides_nothing_and_none_is_not_run():
    assert decide(ABOVE, scattered, skip=(1, 2)).verdict == "undecided"
    made = experiment(report={"metrics": {"test/accuracy": "max"}, "log": ["y"]})
    positive = validated(Claim, {"says": "so", "least": 0.0})
    assert check_claim(positive, made.report, cells(made, runs(made, scattered, skip=(1, 2)))).verdict == "undecided"
    result = decide(ABOVE, scattered, skip=(0, 1, 2))
    assert result.verdict == "not run"
    assert {place.verdict for place in result.places} == {"not run"}


def test_reduced_runs_are_called_so():
    assert decide(ABOVE, scattered, rounds=50).reduced
    assert decide(ABOVE, scattered, skip=(2,)).reduced


def test_cells_are_compared_after_equal_rounds():
    made = experiment()
    rising = [0.01 * i for i in range(11)]  # after 0, 10, ..., 100 rounds
    falling = [1.0 - 0.01 * i for i in range(11)]
    shortened = [run for run in runs(made, lambda *_: rising, rounds=50) if run.settings["algorithm"] == "mifa"]
    whole = [run for run in runs(made, lambda *_: falling) if run.settings["algorithm"] == "fedavg"]
    result = check_claim(validated(Claim, {"says": "so"} | ABOVE), REPORT, cells(made, [*shortened, *whole]))
    assert [place.quantity.mean for place in result.places] == pytest.approx([0.05 - 0.95] * 2)  # after 50 rounds
    assert result.reduced
    late = [replace(run, history=run.history.loc[60:]) for run in whole]  # not evaluated in the common rounds
    assert check_claim(validated(Claim, {"says": "so"} | ABOVE), REPORT, cells(made, [*shortened, *late])).verdict == (
        "not run"
    )


def test_what_cannot_be_decided_is_refused():
    with pytest.raises(SettingError, match="least: is missing; a claim must have least, most or both"):
        validated(Claim, {"says": "so"})
    with pytest.raises(SettingError, match="minus: is not allowed beside over or along"):
        validated(Claim, ABOVE | {"says": "so", "along": "seed"})
    with pytest.raises(SettingError, match="at: is missing; must be given beside per"):
        validated(Claim, ABOVE | {"says": "so", "per": "cost/floats_up"})
    with pytest.raises(SettingError, match=r"algorithm: 'fedsgd' is not allowed; must be one of fedavg, mifa"):
        validated(
            type(experiment()),
            experiment().model_dump() | {"claims": [{"says": "", "of": {"algorithm": "fedsgd"}, "least": 0}]},
        )


@pytest.mark.parametrize(
    ("claim", "unmeasured"),
    [
        (ABOVE, []),
        (ABOVE | {"metric": "test/acuracy"}, ["test/acuracy"]),
        (ABOVE | {"at": 5, "per": "cost/flots"}, ["cost/flots"]),
    ],
)
def test_a_metric_that_no_run_measured_is_named(claim, unmeasured):
    """Such as a misspelt one about an analysis, whose columns are not known before."""
    result = decide(claim, scattered)
    assert [metric.name for metric in result.unmeasured] == unmeasured
    lines = claims_list([result])
    assert [line for line in lines if "no run" in line] == [f"   - no run measured {name}" for name in unmeasured]
    assert decide(claim, scattered, skip=(0, 1, 2)).unmeasured == ()
