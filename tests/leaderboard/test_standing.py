"""The expectations of the boards, judged by hand from entries whose accuracies are invented."""

from functools import cache

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from rollcall.benchmark.config.experiment import Experiment
from rollcall.benchmark.search.board import Board
from rollcall.benchmark.search.entry import ENDING, Entry, Final
from rollcall.leaderboard.figures import board_chart
from rollcall.leaderboard.render import latex
from rollcall.leaderboard.runs import PACKAGE
from rollcall.leaderboard.standing import (
    SYMBOLS,
    Standing,
    as_data,
    caption,
    cost_table,
    holm,
    pattern_table,
    points,
    tables,
    verdicts,
)

BOARDS = {name: Board.read(f"standard/{name}") for name in ("digits", "fashion")}
SEARCHES = [80.0, 81.0, 82.0, 83.0, 84.0]
NOISE = [0.1, -0.1, 0.1, -0.1, 0.0]
ALL = ("equal", "coupled", "absences", "varying", "cyclic", "together")


@cache
def kept_entry():
    return Entry.read(PACKAGE / "standard" / "digits" / f"fedavg{ENDING}")


def entered(board="fashion", missing=0, noise=1.0, impossible=(), noises=None, **gains):
    """A board on which a method is this many points above FedAvg under a pattern, up to noise; by default under none.

    `impossible` has pairs of a pattern and a method; `noises` the noise of single methods.
    """
    kept, entries = kept_entry(), {}
    for method in list(BOARDS[board].methods)[: len(BOARDS[board].methods) - missing]:
        cells = {}
        size = (noises or {}).get(method, noise)
        for pattern in (name for name in ALL if (name, method) not in impossible):
            gain = gains.get(f"{pattern}_{method}", 0.0)
            values = [a + gain + size * (method != "fedavg") * e for a, e in zip(SEARCHES, NOISE, strict=True)]
            cells[pattern] = [
                one.model_copy(update={"finals": [run.model_copy(update={"value": v / 100}) for run in one.finals]})
                for one, v in zip(kept.cells[pattern], values, strict=True)
            ]
        none = {name: "not possible" for name in ALL if name not in cells}
        entries[method] = kept.model_copy(update={"method": method, "cells": cells, "impossible": none})
    return Standing(BOARDS[board], entries)


def judged(*args, **options):
    """The verdicts on a board."""
    return {name: verdict for name, (verdict, _) in verdicts(entered(*args, **options)).items()}


def test_each_expectation_from_the_sign_and_the_size_that_decides():
    """Noise of 0.1 in four of five searches makes an interval of 0.12 = 2.776 x 0.1 / sqrt(5)."""
    none = judged()
    assert none == {
        "nothing to correct": "holds",
        "knowledge pays": "contradicted",
        "memory pays with absences": "undecided",
        "no method for all": "contradicted",
    }
    assert judged(equal_mifa=2.5)["nothing to correct"] == "contradicted"
    assert judged(equal_mifa=2.05)["nothing to correct"] == "undecided"
    assert judged(coupled_fedavg_known=2.5)["knowledge pays"] == "holds"
    assert judged(coupled_fedavg_known=1.95)["knowledge pays"] == "undecided"
    assert judged("digits", coupled_fedavg_known=2.5)["knowledge pays"] == "not about this board"
    more = {"absences_mifa": 2.0, "absences_fedvarp": 2.0, "coupled_mifa": 1.0}
    assert judged(noise=0.0, **more)["memory pays with absences"] == "holds"  # 2 less 0.5, in every search
    assert judged(noise=0.0, coupled_mifa=1.0)["memory pays with absences"] == "contradicted"


def test_all_methods_decide_whether_one_is_above_fedavg_not_the_one_with_the_largest_mean():
    """Intervals from SciPy's t: a wide one reaches above 2 points; one of k methods above them needs 1 - 0.05 / k."""
    k = len(BOARDS["fashion"].methods) - 1
    wide = {"mifa": 1.0, "scaffold": 40.0}
    shown = entered(noises=wide, equal_mifa=1.0, equal_scaffold=0.96)
    verdict, measured = verdicts(shown)["nothing to correct"]
    assert (verdict, measured) == ("undecided", "scaffold +1.0 ± 5.0, the interval that ends highest")
    half, strict = (stats.t.ppf(1 - level / 2, 4) * 0.1 / 5**0.5 for level in (0.05, 0.05 / k))
    assert judged(equal_mifa=2 + (half + strict) / 2)["nothing to correct"] == "undecided"  # above 2 at 95 % alone
    measured = ("contradicted", "mifa +2.5 ± 0.1, the interval that begins highest")
    assert verdicts(entered(noises={"scaffold": 40.0}, equal_mifa=2.5))["nothing to correct"] == measured
    assert judged(equal_mifa=2 + 1.01 * strict)["nothing to correct"] == "contradicted"
    assert judged(equal_mifa=2 - 1.01 * half)["nothing to correct"] == "holds"


def test_only_the_methods_of_the_board_decide_and_their_planned_number_is_k():
    """One of the user's own, 9 points above FedAvg everywhere, changes nothing; two missing entries do not lower k."""
    shown = entered()
    own = entered(**{f"{pattern}_mifa": 9.0 for pattern in ALL}).entries["mifa"].model_copy(update={"method": "Own"})
    assert verdicts(Standing(shown.board, shown.entries | {"Own": own})) == verdicts(shown)
    k = len(BOARDS["fashion"].methods) - 1
    fewer, strict = (stats.t.ppf(1 - 0.05 / n / 2, 4) * 0.1 / 5**0.5 for n in (k - 2, k))
    assert judged(missing=2, equal_mifa=2 + (fewer + strict) / 2)["nothing to correct"] == "open"
    assert judged(missing=2, equal_mifa=2 + 1.01 * strict)["nothing to correct"] == "contradicted"


def test_an_interval_reads_as_touching_the_bound_only_if_it_does():
    assert points((0.56, 0.53), "+", 0.0) == "+0.6 ± 0.5"
    assert points((1.44, 0.52), "+", 2.0) == "+1.4 ± 0.5"
    assert points((1.55, 0.38), "+", 2.0) == "+1.55 ± 0.38"  # 1.6 ± 0.4 would end at 2
    assert points((0.62, 0.59), "+", 0.0) == "+0.62 ± 0.59"
    assert points((0.6, 0.6), "+", 0.0) == "+0.6 ± 0.6"
    assert points((-0.04, 0.6), "+", 0.0) == "+0.0 ± 0.6"


def test_no_method_is_best_everywhere_if_each_loses_once():
    first, second = list(BOARDS["fashion"].methods)[:2]
    gains = {f"{pattern}_{first if pattern == 'equal' else second}": 1.0 for pattern in ALL}
    assert judged(**gains)["no method for all"] == "holds"


def test_methods_that_no_test_tells_apart_are_all_in_all_groups():
    """Leads of 0.5 to 20 points, with a noise that is as large: the groups decide, as was written before the runs."""
    methods = list(BOARDS["fashion"].methods)
    shown = entered(noises={name: 100.0 + 10 * i for i, name in enumerate(methods)})
    assert all(shown.group(name) == {*methods} for name in ALL)
    assert verdicts(shown)["no method for all"] == ("contradicted", ", ".join(methods))


def test_the_best_group_has_the_methods_that_no_other_is_shown_to_be_above():
    """By hand: SciPy's paired t tests of the three pairs, the smallest p-value times 3, the next times 2, then 1."""
    a, b, c = (
        np.array([5.0, 6.0, 7.0, 8.0, 9.0]),
        np.array([4.9, 6.1, 6.9, 8.1, 8.8]),
        np.array([4.0, 5.1, 6.0, 7.1, 8.0]),
    )
    shown = entered()
    vars(shown)["values"] = {"equal": pd.DataFrame({"c": c, "a": a, "b": b})}
    first, second, third = (stats.ttest_rel(*pair).pvalue for pair in ((c, a), (c, b), (b, a)))
    assert first < second < third
    by_hand = {("c", "a"): 3 * first, ("c", "b"): max(3 * first, 2 * second), ("b", "a"): third}
    assert shown.pairs["equal"] == pytest.approx(by_hand)
    assert shown.group("equal") == {"a", "b"}
    assert {name: one.p for name, one in shown.from_best("equal").items()} == pytest.approx(
        {"c": by_hand["c", "a"], "b": by_hand["b", "a"]}
    )
    means = {name: one.mean for name, one in shown.from_best("equal").items()}
    assert means == pytest.approx({"c": -0.96, "b": -0.04})  # means 7, 6.96 and 6.04


def test_holms_p_values_do_not_fall():
    """3 x 0.02, then 2 x 0.022 = 0.044 and 0.04, which are below it."""
    assert holm({"b": 0.022, "a": 0.02, "c": 0.04}) == pytest.approx({"b": 0.06, "a": 0.06, "c": 0.06})


def test_equal_methods_share_the_best_group():
    """Of 200 boards with 18 equal methods, at most 5 % leave a method out of the group, up to chance (0.999 quantile)."""
    rng, wrong, shown = np.random.default_rng(0), 0, entered()
    for _ in range(200):
        vars(shown).pop("pairs", None)
        vars(shown)["values"] = {"equal": pd.DataFrame(rng.normal(size=(5, 18))).rename(columns=str)}
        wrong += len(shown.group("equal")) < 18
    assert wrong <= stats.binom.ppf(0.999, 200, 0.05)


def test_patterns_that_methods_cannot_have_are_empty():
    methods = list(BOARDS["fashion"].methods)
    shown = entered(impossible=[("equal", "mifa"), *(("cyclic", name) for name in methods)])
    assert shown.losses("mifa", "equal") == {}
    assert (shown.best("cyclic"), shown.group("cyclic")) == ("", set())
    found = tables(shown, "fedavg")
    row = next(row for row in found["loss from equal"].rows if row[0] == "mifa")
    assert row[1:] == [""] * 5
    place = found["test accuracy"].titles.index("best group in")
    best = {row[0]: row[place] for row in found["test accuracy"].rows}
    assert best == {name: "4 of 4" if name == "mifa" else "5 of 5" for name in methods}  # none is shown to be better
    column = found["minus the best"].titles.index("cyclic")
    assert {row[column] for row in found["minus the best"].rows} == {""}
    assert len(board_chart(shown).to_dict()["concat"]) == 5
    assert judged(impossible=[("absences", "mifa")]).keys() == judged().keys() - {"memory pays with absences"}


def test_the_tables_of_a_board_have_no_letter_that_pdflatex_does_not_know():
    """Up to U+00FF it knows all that they have; the caption is a comment."""
    shown = entered()
    marks = shown.entries["mifa"].marks.model_copy(update={"knows": [*SYMBOLS]})
    shown.entries["mifa"] = shown.entries["mifa"].model_copy(update={"marks": marks})
    text = "".join(map(latex, tables(shown, "fedavg").values()))
    assert r"p $\pi$ $\lambda$ c F*" in text
    body = [line for line in text.splitlines() if not line.startswith("%")]
    assert [line for line in body if max(line, default="") > "\xff"] == []


def test_searches_without_a_final_run_count_0_and_do_not_reach_the_target():
    """Mifa has one search left of thirty, whose two runs reach 10 %, and one diverges at the end; fedvarp has none."""
    shown = entered()
    lost = {"samples": [], "best": None, "finals": []}
    for method, left in (("mifa", 1), ("fedvarp", 0)):
        cells = {name: [one.model_copy(update=lost) for one in of] for name, of in shown.entries[method].cells.items()}
        for i, one in enumerate(shown.entries[method].cells["equal"][:left]):
            first, second = one.finals
            cells["equal"][i] = one.model_copy(update={"finals": [first, second.model_copy(update={"value": None})]})
        shown.entries[method] = shown.entries[method].model_copy(update={"cells": cells})
    rows = {row[0]: row[1:] for row in cost_table(shown, target=0.1).rows}
    assert rows["fedvarp"] == ["", "", "", "- (0%)", "- (0%)"]
    assert rows["mifa"][3:] == ["- (3%)", "- (3%)"]
    assert "" not in rows["mifa"][:3]
    assert rows["fedavg"][3].endswith("(100%)")
    told = caption(shown, "fedavg")
    assert (
        "mifa: 1 final runs diverged and count 0; mifa: searches whose samples all diverged, which count 0: 29" in told
    )
    assert shown.values["equal"]["mifa"].tolist() == pytest.approx([80.1 / 2, 0, 0, 0, 0])
    assert shown.values["equal"]["fedvarp"].tolist() == [0] * 5


def test_costs_are_means_and_rounds_and_uploads_until_the_target_medians():
    """Of 20 rounds with 400 floats up and 600 down, 50 % is reached after 5, after exactly 10, and never."""
    cost = {"floats_up": 400.0, "floats_down": 600.0, "memory": 7.0}
    curves = [[(0, 0.1), (5, 0.6)], [(5, 0.4), (10, 0.5), (15, 0.7)], [(10, 0.1), (20, 0.4)]]
    spent = [{"gradients": 3.0 * i, "floats_up": up} for i, up in enumerate((300.0, 400.0, 500.0))]
    ended = [
        Final(seed=i, run="", rounds=20, value=0.5, curve=curve, costs=cost | spent[i], seconds=1)
        for i, curve in enumerate(curves)
    ]
    entry = entered().entries["fedavg"]
    entry = entry.model_copy(
        update={"cells": {"equal": [entry.cells["equal"][0].model_copy(update={"finals": ended})]}}
    )
    (row,) = cost_table(Standing(BOARDS["fashion"], {"fedavg": entry}), target=0.5).rows
    assert row == ["fedavg", "3", "1e+03", "7", "10 (67%)", "200 (67%)"]
    never = cost_table(Standing(BOARDS["fashion"], {"fedavg": entry}), target=0.8)
    assert (never.rows, never.caption) == ([row[:4]], "means over all final runs; none reaches 80 %")
    assert len(never.columns) == 4


def test_the_caption_counts_the_searches_at_each_edge_of_the_space():
    """FedAvg's kept searches with other best settings: two at the lower edge of the rate, one at both upper ones."""
    shown, ends = entered(), [(0.01, 1.0), (0.012, 1.0), (3.0, 2.9)]
    one = shown.entries["fedavg"]
    best = {"equal": []}
    for search, (lr, server_lr) in zip(one.cells["equal"], ends, strict=False):
        samples = list(search.samples)
        chosen = {"local.lr": lr, "server.lr": server_lr}
        samples[search.best] = samples[search.best].model_copy(update={"settings": chosen})
        best["equal"].append(search.model_copy(update={"samples": samples}))
    only = Standing(shown.board, {"fedavg": one.model_copy(update={"cells": best})})
    assert caption(only, "fedavg").endswith("fedavg local.lr lower 2, local.lr upper 1, server.lr upper 1")
    # Where all samples are at an edge, a best one there says nothing.
    there = {"local.lr": 0.01, "server.lr": 1.0}
    alike = [one.model_copy(update={"settings": there}) for one in best["equal"][0].samples]
    best = {"equal": [one.model_copy(update={"samples": alike}) for one in best["equal"]]}
    only = Standing(shown.board, {"fedavg": one.model_copy(update={"cells": best})})
    assert "edge" not in caption(only, "fedavg")


def test_the_facts_on_conditions():
    """Two clients with p = 0.5 and 1 have the weights 0.25 and 0.75 in the mean; 0.5^t is 1/e after 1.44 rounds."""
    chain = {"name": "markov_pi_lambda", "probability": [0.5, 0.5], "correlation": 0.5}
    patterns = {"apart": {"name": "bernoulli", "probability": [0.5, 1.0]}, "chain": chain}
    content = {
        "name": "own", "title": "Own", "about": "", "report": {"metrics": {"test/accuracy": "max"}},
        "trial": {"task": {"name": "quadratic", "targets": [[0.0], [1.0]]}, "rounds": 50},
        "grid": {"seed": [0, 1], "participation": patterns, "algorithm": ["fedavg"]},
        "search": {"space": {"local.lr": "loguniform(0.01,1)"}, "samples": 1, "seeds": [1000], "finals": 2},
    }  # fmt: skip
    made = Experiment.model_validate(content)
    apart, chain = pattern_table(Board(made, made.search)).rows
    assert apart == ["apart", "0.75 (0.50 to 1.00)", "0.25", "0", "0.0%", "0.0%"]
    assert (chain[1], chain[3]) == ("0.50 (0.50 to 0.50)", "1.4")


def test_the_board_as_data():
    """FedAvg has 80 to 84 in five searches; mifa is 5 points above it under `equal`."""
    shown = entered(noise=0.0, equal_mifa=5.0)
    found = as_data(shown)
    rows = {row["method"]: row for row in found["rows"] if row["pattern"] == "equal"}
    half = stats.t.ppf(0.975, 4) * stats.sem(SEARCHES)
    assert (rows["fedavg"]["mean"], rows["fedavg"]["half"]) == pytest.approx((82, half))
    assert rows["mifa"]["values"] == pytest.approx([a + 5 for a in SEARCHES])
    labels = {"pattern": "equal", "algorithm": "mifa"}
    assert (rows["mifa"]["labels"], rows["mifa"]["metric"]) == (labels, "test/accuracy")
    assert (rows["mifa"]["sd"], rows["mifa"]["seeds"]) == (pytest.approx(2.5**0.5), 5)  # squares of -2 to 2, over 4
    assert [*found][:3] == ["rows", "claims", "provenance"]
    origin = next(iter(shown.entries.values())).origin
    assert found["provenance"]["commit"] == [origin["commit"]]
    assert found["provenance"]["version"] == [origin["versions"]["rollcall"]]
    assert [name for name, row in rows.items() if row["best_group"]] == ["mifa"]
    tied = (len(rows) + 1) / 2  # under the other five conditions all are equal
    assert found["ranks"]["mifa"] == pytest.approx(((1 + 5 * tied) / 6, 0))
    assert found["expectations"]["nothing to correct"]["verdict"] == "contradicted"


@pytest.mark.parametrize("missing", [1, 3])
def test_what_is_said_of_all_methods_is_open_while_one_is_missing(missing):
    found = judged(missing=missing)
    assert (found["nothing to correct"], found["no method for all"]) == ("open", "open")
    assert found["knowledge pays"] == "contradicted"
    assert judged(missing=missing, equal_fedavg_known=2.5)["nothing to correct"] == "contradicted"  # stays so
