"""Claims decided by hand."""

import math
from dataclasses import replace

import pytest

from rollcall import SettingError
from rollcall.benchmark.config.base import validated
from rollcall.leaderboard.cells import Cell, cells
from rollcall.leaderboard.paper.claims import Told, check_claim, decided, weakest
from rollcall.leaderboard.paper.experiment import Claim
from rollcall.leaderboard.paper.sentences import claims_list
from tests.support.results import diverging, ends, experiment, runs


def claimed(claim):
    return validated(Claim, {"says": "so", "tag": "ours"} | claim)


def decide(claim, ends, made=None, **options):
    made = made or experiment()
    return check_claim(claimed(claim), made, cells(made, runs(made, ends, **options)))


def scattered(labels, seed):
    """FedAvg 0.5, 0.6, 0.7; mifa above it by 0.1, 0.1, 0.1 where clients are often there, by -0.1, 0.0, 0.4 else."""
    more = 0.1 if labels["participation"] == "often" else (-0.1, 0.0, 0.4)[seed]
    return 0.5 + 0.1 * seed + (more if labels["algorithm"] == "mifa" else 0.0)


ABOVE = {"of": {"algorithm": "mifa"}, "minus": {"algorithm": "fedavg"}, "least": 0.0}


def test_a_difference_is_paired_over_seeds():
    result = decide(ABOVE, scattered)
    often, seldom = result.places
    assert often.labels == {"participation": "often"}
    assert (often.quantity.mean, *often.quantity.interval()) == pytest.approx((0.1, 0.1, 0.1))
    assert often.verdict == "holds"
    assert seldom.quantity.mean == pytest.approx(0.1)  # of -0.1, 0.0, 0.4: sd 0.2646, half-width 0.657
    assert seldom.quantity.interval()[0] == pytest.approx(0.1 - 4.302653 * math.sqrt(0.07 / 3), abs=1e-6)
    assert seldom.verdict == "undecided"
    assert result.verdict == "undecided"


def test_one_of_several_places_must_contradict_more_clearly():
    """Student's t of mifa less fedavg is -5 with three seeds: p = 0.038, which is below 0.05 but not below 0.05 / 2."""

    def ends(labels, seed):
        clear = labels["participation"] == "often"
        return 0.5 + (0.1 if clear else -0.5 + 0.1 * 3**0.5 * (seed - 1)) * (labels["algorithm"] == "mifa")

    result = decide(ABOVE, ends)
    assert [place.verdict for place in result.places] == ["holds", "contradicted"]
    assert result.verdict == "undecided"
    assert decide(ABOVE | {"where": {"participation": ["seldom"]}}, ends).verdict == "contradicted"
    made = experiment()
    seldom = runs(made.only({"participation": ["seldom"]}), ends)
    alone = check_claim(claimed(ABOVE), made, cells(made, seldom))
    assert {place.verdict for place in alone.places} == {"not run", "contradicted"}
    assert alone.verdict == "contradicted"  # of the places that were run, one
    low, high = result.places[1].quantity.interval(0.975)
    assert (low, high) == pytest.approx((-0.5 - 0.62053, -0.5 + 0.62053), abs=1e-5)  # t(0.9875, 2) = 6.2053


def under(readings, **claim):
    """A claim that mifa is above fedavg, with readings: often there (it is, by 0.1) and seldom there (by -0.1)."""

    def ends(labels, seed):
        sign = 1 if labels["participation"] == "often" else -1
        return 0.5 + 0.1 * seed + (0.1 * sign if labels["algorithm"] == "mifa" else 0.0)

    return decide(ABOVE | {"readings": readings} | claim, ends)


OFTEN = {"says": "clients are often there", "where": {"participation": "often"}}
SELDOM = {"says": "clients are seldom there", "where": {"participation": "seldom"}}


@pytest.mark.parametrize(("printed", "verdict"), [(0.13, "holds"), (0.14, "not testable")])
def test_a_number_that_identifies_the_data_is_missed_by_more_than_a_quarter(printed, verdict):
    """The gap is 0.1, which is 0.03 (less than 0.0325) or 0.04 (more than 0.035) away."""
    assert under({"often": OFTEN}, identifies=True, printed=printed).verdict == verdict


def test_a_reading_has_the_data_of_the_one_that_its_name_begins_with():
    """The claim whose number tells that `own` has other data has no reading `own, again`, which has the same data."""
    number = under({"own": OFTEN}, identifies=True, printed=0.14)
    assert number.misses == {"own"}
    made = experiment()
    readings = {"own": OFTEN, "own, again": OFTEN, "other": OFTEN}
    claim = claimed(ABOVE | {"readings": readings, "data": "e"})
    assert check_claim(claim, made, cells(made, []), identified=number).misses == {"own", "own, again"}


def test_two_readings_that_disagree_are_not_testable():
    result = under({"often": OFTEN, "seldom": SELDOM})
    assert {name: one.verdict for name, one in result.readings.items()} == {"often": "holds", "seldom": "contradicted"}
    assert result.verdict == "not testable"
    assert [place.reading for place in result.places] == ["often", "seldom"]
    assert [place.quantity.mean for place in result.places] == pytest.approx([0.1, -0.1])
    assert "2 readings: 1 holds, 1 contradicted" in claims_list([result])[0]
    (_, *why) = claims_list([result], why=True)
    assert why[0] == "   - reading often (clients are often there): holds: 10.0"


def test_a_reading_may_be_of_another_metric():
    """mifa is 0.2 above fedavg in accuracy, and 0.2 below it in the loss, which nobody reads but the second reading."""
    made = experiment()
    losses = runs(made, lambda labels, seed: -ends(labels, seed), metric="train/loss")
    both = [
        replace(run, history=run.history.join(loss.history)) for run, loss in zip(runs(made, ends), losses, strict=True)
    ]
    readings = {"accuracy": {"says": "accuracy"}, "loss": {"says": "loss", "metric": "train/loss"}}
    result = check_claim(claimed(ABOVE | {"readings": readings}), made, cells(made, both))
    means = {name: [place.quantity.mean for place in one.places] for name, one in result.readings.items()}
    assert means == {"accuracy": pytest.approx([0.2, 0.2]), "loss": pytest.approx([-0.2, -0.2])}
    assert result.verdict == "not testable"


def test_other_rates_that_are_as_good_must_give_the_same_verdict():
    assert under({"often": OFTEN, "other rates": SELDOM | {"rates": True}}).verdict == "undecided"
    assert under({"often": OFTEN, "other rates": OFTEN | {"rates": True}}).verdict == "holds"
    alone = under({"other rates": SELDOM | {"rates": True}}, where={"participation": "often"})
    assert list(alone.readings) == ["", "other rates"]


def test_a_formula_that_is_false_as_printed_is_an_erratum():
    paper = {"tag": "paper", "section": "III", "statement": "PBC-04", "erratum": "it remains true that"}
    assert decide(ABOVE | {"least": 0.2} | paper, scattered).verdict == "erratum"
    assert decide(ABOVE | {"where": {"participation": "often"}} | paper, scattered).verdict == "holds"
    readings = {"often": OFTEN, "seldom": SELDOM}  # a reading is contradicted or not; the claim is the erratum
    assert under(readings, least=0.2, **paper).verdict == "erratum"
    assert under(readings, **paper).verdict == "not testable"


def test_of_several_verdicts_the_first_in_the_order_counts():
    assert weakest(["holds", "not testable", "contradicted"]) == "contradicted"
    assert weakest(["not testable", "not run", "holds"]) == "not run"
    assert weakest(["not testable", "erratum"]) == "erratum"
    assert weakest(["not run", "contradicted"]) == "contradicted"
    assert weakest(["holds", "no difference that matters", "undecided"]) == "undecided"
    assert weakest(["undecided", "too short"]) == "too short"
    assert weakest(["too short", "not run", "data missing"]) == "not run"
    assert weakest(["data missing", "holds"]) == "holds"
    assert weakest(["data missing"]) == "data missing"
    assert weakest([]) == "not run"


def test_a_diverged_seed_leaves_a_place_undecided():
    made = experiment()
    found = runs(made, scattered)
    diverged = [diverging(found[0]), *found[1:]]
    result = check_claim(claimed(ABOVE), made, cells(made, diverged))
    assert result.verdict == "undecided"
    assert [(place.quantity is None, place.diverged) for place in result.places] == [(True, 1), (False, 0)]
    alone = check_claim(claimed(ABOVE), made, cells(made, diverged[:1]))  # the other method was not run
    assert alone.verdict == "not run"


def test_a_value_as_part_of_an_earlier_one_and_of_the_final_one():
    """Each run falls by 0.9 and 0.8 (mifa) every ten rounds, from a start of its own, which the parts do not have."""

    def falling(labels, seed):
        factor = 0.8 if labels["algorithm"] == "mifa" else 0.9
        return [(seed + 1) * factor**i for i in range(11)]

    often = {"where": {"participation": "often"}, "of": {"algorithm": "mifa"}, "at": 50, "over_round": 20}
    (place,) = decide(often | {"most": 0.6}, falling).places
    assert place.quantity.values == pytest.approx([0.8**3] * 3)
    (_, why) = claims_list([decide(often | {"most": 0.6}, falling)], why=True)
    assert "part of its own value after round 20 " in why
    (final,) = decide(often | {"at": 90, "over_round": "final", "most": 2}, falling).places
    assert final.quantity.values == pytest.approx([1 / 0.8] * 3)
    (less,) = decide(often | {"minus": {"algorithm": "fedavg"}, "most": 0}, falling).places
    assert less.quantity.values == pytest.approx([0.8**3 - 0.9**3] * 3)
    assert decide(often | {"most": 0.6}, falling, rounds=50).verdict == "holds"  # it needs 50 rounds
    assert decide(often | {"over_round": "final", "most": 0.6}, falling, rounds=50).verdict == "too short"


def test_the_exponent_over_an_axis():
    """Mifa falls as T^-1 in the mean of the seeds (-0.9, -1, -1.1), FedAvg as T^-1/2: their ratio as T^-1/2."""
    axis = {str(T): {"rounds": T, "local.lr": T**-0.5} for T in (10, 100, 1000)}
    made = experiment(panels={"": {"grid": {"T": axis}}, "other": {}})

    def powers(labels, seed):
        exponent = -1 + 0.1 * (seed - 1) if labels["algorithm"] == "mifa" else -0.5
        return 4.0 * float(labels.get("T", 1)) ** exponent

    claim = {"of": {"algorithm": "mifa"}, "where": {"participation": "often"}, "slope": "T"}
    (place,) = decide(claim | {"most": -0.5}, powers, made).places
    assert (place.labels, place.seeds, place.verdict) == ({}, 3, "holds")
    assert place.quantity.interval() == pytest.approx((-1 - 4.302653 * 0.1 / 3**0.5, -1 + 4.302653 * 0.1 / 3**0.5))
    assert decide(claim | {"most": -1.5}, powers, made).verdict == "contradicted"
    (ratio,) = decide(claim | {"over": {"algorithm": "fedavg"}, "most": 0}, powers, made).places
    assert ratio.quantity.mean == pytest.approx(-0.5)
    assert decide(claim | {"most": 0}, lambda labels, seed: -1.0, made).verdict == "undecided"  # no logarithm
    assert decide(claim | {"most": 0, "where": {"panel": "other"}}, powers, made).verdict == "not run"


def test_few_seeds_are_too_short_and_none_is_not_run():
    assert decide(ABOVE, scattered, skip=(1, 2)).verdict == "too short"
    short = decide(ABOVE, scattered, skip=(2,))
    assert short.verdict == "too short"
    assert "   - too short: 2 of 3 seeds" in claims_list([short], why=True)
    result = decide(ABOVE, scattered, skip=(0, 1, 2))
    assert result.verdict == "not run"
    assert {place.verdict for place in result.places} == {"not run"}


def test_a_pair_needs_the_seeds_in_common():
    """Five seeds decide; FedAvg has 0 to 4 and mifa 2 to 6, so that three pairs are left, or other ones and none."""
    made = experiment(grid=experiment().grid | {"seed": list(range(10))}, decides={"seeds": 5})

    def chosen(first):
        kept = {"fedavg": range(5), "mifa": range(first, first + 5)}
        ran = [run for run in runs(made, apart(0.1)) if int(run.tags["seed"]) in kept[run.settings["algorithm"]]]
        return check_claim(claimed(ABOVE), made, cells(made, ran))

    assert {(place.verdict, place.short) for place in chosen(2).places} == {("too short", "3 of 5 seeds")}
    assert {(place.verdict, place.short) for place in chosen(5).places} == {("too short", "0 of 5 seeds")}
    assert {(place.verdict, place.seeds) for place in chosen(0).places} == {("holds", 5)}


def test_a_ratio_without_a_value_in_one_seed_decides_nothing():
    def ends(labels, seed):
        return 0.0 if seed == 3 else 0.4 if labels["algorithm"] == "mifa" else 0.2

    over = {"of": {"algorithm": "mifa"}, "over": {"algorithm": "fedavg"}, "least": 1.5}
    made = experiment(grid=experiment().grid | {"seed": [0, 1, 2, 3]})
    assert {place.verdict for place in decide(over, ends, made).places} == {"undecided"}
    assert {place.verdict for place in decide(over, ends).places} == {"holds"}


@pytest.mark.parametrize(
    ("decides", "verdict"), [({}, "too short"), ({"rounds": 50}, "holds"), ({"rounds": 51}, "too short")]
)
def test_the_size_that_decides_is_written_beforehand(decides, verdict):
    made = experiment(decides=decides)
    result = decide(ABOVE, apart(0.2), made, rounds=50)
    assert result.verdict == verdict
    assert {place.reached for place in result.places} == {(50, 100)}
    reason = {"too short": {f"50 of {decides.get('rounds', 100)} rounds"}}.get(verdict, {""})
    assert {place.short for place in result.places} == reason
    assert ("   - judged after 50 of 100 rounds" in claims_list([result], why=True)) == (verdict == "holds")
    assert decide(ABOVE | {"size": {"rounds": 40}}, apart(0.2), made, rounds=50).verdict == "holds"


def apart(gap):
    """Mifa is above FedAvg by this much, give or take 0.01."""
    return lambda labels, seed: 0.5 + (gap + 0.01 * (seed - 1)) * (labels["algorithm"] == "mifa")


@pytest.mark.parametrize(
    ("gap", "claim", "verdict"),
    [
        (0.0, {}, "undecided"),
        (0.0, {"printed": 0.2}, "no difference that matters"),  # within a quarter of the printed difference, 0.05
        (0.0, {"printed": -0.2}, "no difference that matters"),
        (0.0, {"printed": 0.09}, "undecided"),  # 0.0225 is less than the half-width, 0.0248
        (0.0, {"margin": 0.025}, "no difference that matters"),
        (-0.05, {"margin": 0.08}, "no difference that matters"),  # contradicted but for the margin
        (-0.05, {}, "contradicted"),
        (0.03, {"margin": 0.05}, "holds"),
    ],
)
def test_a_difference_within_the_margin_does_not_matter(gap, claim, verdict):
    assert decide(ABOVE | claim, apart(gap)).verdict == verdict


@pytest.mark.parametrize(("printed", "size"), [(0.12, "agrees"), (0.13, "differs"), (None, "not judged")])
def test_the_size_is_judged_beside_the_direction(printed, size):
    result = decide(ABOVE | {"printed": printed}, apart(0.1))  # 0.1 +- 0.0248
    assert {place.verdict for place in result.places} == {"holds"}
    assert {place.size for place in result.places} == {size}
    short = decide(ABOVE | {"printed": printed, "size": {"rounds": 50}}, apart(0.1), rounds=50)
    assert {(place.verdict, place.size) for place in short.places} == {("holds", "not judged")}
    two = decide(ABOVE | {"printed": printed}, apart(0.1), experiment(decides={"seeds": 2}), skip=(2,))
    assert {(place.verdict, place.size) for place in two.places} == {("undecided", "not judged")}  # without an interval


@pytest.mark.parametrize(("printed", "size"), [(0.75, "agrees"), (0.7, "differs")])
def test_the_size_of_an_exact_number_is_judged_by_one_seed(printed, size, monkeypatch):
    monkeypatch.setattr(Cell, "exact", True)
    one = experiment(grid=experiment().grid | {"seed": [0]})
    result = decide({"of": {"algorithm": "mifa"}, "least": 0.5, "printed": printed}, lambda *_: 0.75, one)
    assert {(place.verdict, place.size, place.seeds) for place in result.places} == {("holds", size, 1)}


def test_looks_at_growing_numbers_of_seeds_cost_confidence():
    """Student's t of mifa less FedAvg is 5 with three seeds: p = 0.038, which is not below 0.05 / 2."""
    ends = apart(0.01 * 5 / 3**0.5)
    assert decide(ABOVE, ends).verdict == "holds"
    looked = decide(ABOVE, ends, experiment(decides={"looks": 2}))
    assert (looked.verdict, looked.level) == ("undecided", 0.975)
    own = decide(ABOVE | {"size": {"looks": 2}}, ends)
    assert (own.verdict, own.level) == ("undecided", 0.975)
    printed = decide(ABOVE | {"printed": 0.055}, ends, experiment(decides={"looks": 2}))
    assert {place.size for place in printed.places} == {"differs"}  # outside 0.029 +- 0.025, of 95 %


@pytest.mark.parametrize(
    "claim",
    [
        {"of": {"algorithm": "mifa"}, "minus": {"algorithm": "fedavg"}, "least": 0.05},
        {"of": {"algorithm": "fedavg"}, "minus": {"algorithm": "mifa"}, "most": -0.05},
    ],
)
def test_a_number_that_depends_on_no_seed_is_compared_with_every_seed(claim, monkeypatch):
    """FedAvg's is exact and has one run. The difference, 0.1 give or take 0.01, has an interval in both directions."""
    monkeypatch.setattr(Cell, "exact", property(lambda cell: cell.labels["algorithm"] == "fedavg"))
    made = experiment(decides={"seeds": 1})
    ran = [run for run in runs(made, apart(0.1)) if run.settings["algorithm"] == "mifa" or run.tags["seed"] == "1"]
    result = check_claim(claimed(claim), made, cells(made, ran))
    assert {(place.verdict, place.seeds) for place in result.places} == {("holds", 3)}


def test_false_verdicts_are_expected_among_all_claims_that_were_tested():
    """Of the papers' claims one holds, one is undecided, one has no spread, one is too short; an own one does not count."""

    def told(ends, skip=(), **claim):
        paper = {"tag": "paper", "statement": "PBC-01", "section": "Fig. 1"}
        return Told(experiment(), "", 1, decide(ABOVE | paper | claim, ends, skip=skip))

    reworded = {"since": "2026-01-01", "before": "mifa leads by far"}
    equal = {"mifa": 0.75, "fedavg": 0.5}
    always = told(lambda labels, _: equal[labels["algorithm"]], **reworded)
    of = [told(apart(0.1), **reworded), told(apart(0.01)), always, told(apart(0.1), skip=(2,))]
    own = told(apart(0.1), tag="ours", statement=None)
    assert decided([*of, own]) == {
        "all": 2, "tested": 2, "by_interval": 1, "all_reworded": 2, "tested_reworded": 1, "by_interval_reworded": 1,
    }  # fmt: skip


def test_either_of_two_methods_is_enough():
    """Of two methods one is above, one below: `the better is above` holds, `both are above` is contradicted."""
    grid = experiment().grid | {"algorithm": {"low": "fedavg", "high": "mifa", "base": "fedavg_all"}}
    made = experiment(grid=grid)

    def ends(labels, seed):
        base = {"low": 0.4, "high": 0.7, "base": 0.5}[labels["algorithm"]]
        return base + 0.01 * seed * (labels["algorithm"] == "high")

    both = {"of": {"algorithm": ["low", "high"]}, "minus": {"algorithm": "base"}, "least": 0.0}
    assert decide(both, ends, made).verdict == "contradicted"
    result = decide(both | {"either": ["algorithm"]}, ends, made)
    assert result.verdict == "holds"
    assert [place.labels["participation"] for place in result.places] == ["often", "seldom"]
    half = 6.20535 * 0.01 / 3**0.5  # t(0.9875, 2): two are compared, the better one counts
    assert result.places[0].quantity.interval() == pytest.approx((0.21 - half, 0.21 + half), abs=1e-6)
    assert decide(both | {"either": ["algorithm"], "least": 0.3}, ends, made).verdict == "contradicted"
    at_most = {"of": both["of"], "minus": both["minus"], "either": ["algorithm"], "most": 0.0}
    assert decide(at_most, ends, made).verdict == "holds"  # low is 0.1 below the base
    assert decide(at_most | {"most": -0.15}, ends, made).verdict == "contradicted"
    both = {"of": {"algorithm": ["low", "base"]}, "minus": {"algorithm": ["high", "base"]}, "most": 0.3}
    named = [place.labels["algorithm"] for place in decide(both | {"either": ["algorithm"]}, ends, made).places]
    assert named == ["best against high", "best against base"] * 2


def test_either_of_the_cells_of_two_axes_is_enough():
    """One method is above the base under one of two participations: `at least once above it` holds, in one place."""
    grid = experiment().grid | {"algorithm": {"low": "fedavg", "high": "mifa", "base": "fedavg_all"}}

    def ends(labels, seed):
        above = labels["algorithm"] == "high" and labels["participation"] == "seldom"
        return 0.5 + (0.2 + 0.01 * seed) * above - 0.1 * (labels["algorithm"] == "low")

    once = {"of": {"algorithm": ["low", "high"], "participation": ["often", "seldom"]}, "minus": {"algorithm": "base"}}
    (place,) = decide(
        once | {"either": ["participation", "algorithm"], "least": 0.1}, ends, experiment(grid=grid)
    ).places
    assert place.verdict == "holds"
    half = 8.86026 * 0.01 / 3**0.5  # t(0.99375, 2): the best of four
    assert place.quantity.interval() == pytest.approx((0.21 - half, 0.21 + half), abs=1e-5)
    by_method = decide(once | {"either": ["algorithm"], "least": 0.1}, ends, experiment(grid=grid))
    assert by_method.verdict == "contradicted"  # under "often" no method is


def test_cells_are_compared_after_equal_rounds():
    made = experiment(decides={"rounds": 50})
    rising = [0.01 * i for i in range(11)]  # after 0, 10, ..., 100 rounds
    falling = [1.0 - 0.01 * i for i in range(11)]
    shortened = [run for run in runs(made, lambda *_: rising, rounds=50) if run.settings["algorithm"] == "mifa"]
    whole = [run for run in runs(made, lambda *_: falling) if run.settings["algorithm"] == "fedavg"]
    result = check_claim(claimed(ABOVE), made, cells(made, [*shortened, *whole]))
    assert [place.quantity.mean for place in result.places] == pytest.approx([0.05 - 0.95] * 2)  # after 50 rounds
    late = [replace(run, history=run.history.loc[60:]) for run in whole]  # not evaluated in the common rounds
    (place, _) = check_claim(claimed(ABOVE), made, cells(made, [*shortened, *late])).places
    assert (place.quantity, place.verdict) == (None, "undecided")


def test_what_cannot_be_decided_is_refused():
    with pytest.raises(SettingError, match="least: is missing; a claim must have least, most or both"):
        claimed({})
    with pytest.raises(SettingError, match="least: 10 is not allowed; must be at most `most`, 1"):
        claimed(ABOVE | {"least": 10, "most": 1})
    with pytest.raises(SettingError, match="margin: is not allowed beside least and most; two bounds have it in them"):
        claimed(ABOVE | {"least": 0, "most": 1, "margin": 0.1})
    with pytest.raises(SettingError, match="minus: is not allowed beside over or along"):
        claimed(ABOVE | {"along": "seed"})
    with pytest.raises(SettingError, match="over_round: is not allowed beside a time-average or a maximum"):
        claimed(ABOVE | {"over_round": 10, "quantity": "maximum"})
    for wrong, message in (
        ({"least": 0, "against": "test/loss"}, "against: is not allowed without minus or over"),
        ({"least": 0, "per": "cost/gradients"}, "per: is not allowed without at"),
        ({"least": 0, "at": 5, "quantity": "maximum"}, "at: is not allowed beside a time-average or a maximum"),
    ):
        with pytest.raises(SettingError, match=message):
            claimed(wrong)
    with pytest.raises(SettingError, match="section: is missing; a claim of the paper must say where it is stated"):
        validated(Claim, ABOVE | {"says": "so"})
    with pytest.raises(SettingError, match="statement: is missing"):
        validated(Claim, ABOVE | {"says": "so", "section": "IV"})
    with pytest.raises(SettingError, match="statement"):
        validated(Claim, ABOVE | {"says": "so", "section": "IV", "statement": "PBC 1"})
    for wrong, message in (
        (
            ABOVE | {"over_round": 10, "readings": {"b": {"says": "b", "metric": "round_of:test/accuracy>=0"}}},
            "over_round: is not allowed beside a threshold",
        ),
        *(
            (ABOVE | {"metric": "round_of:test/accuracy>=0.5", key: value}, f"{key}: is not allowed beside a threshold")
            for key, value in {"at": 10, "against": "test/loss", "quantity": "maximum"}.items()
        ),
        ({"over": ABOVE["minus"], "metric": "round_of:test/accuracy>=0.5", "most": 1}, "over: is not allowed beside"),
        (ABOVE | {"printed": {"mifaa": 0.1}}, "printed: 'mifaa' is not allowed; must be one of .*Did you mean mifa"),
        (ABOVE | {"either": ["seed"]}, "either: 'seed' is not allowed; must be one of algorithm"),
        (
            {"of": {"algorithm": "fedsgd"}, "least": 0},
            "algorithm: 'fedsgd' is not allowed; must be one of fedavg, mifa",
        ),
    ):
        claims = {"claims": [wrong | {"says": "", "tag": "ours"}]}
        with pytest.raises(SettingError, match=message):
            validated(type(experiment()), experiment().model_dump() | claims)
