"""FINDINGS.md: the committed page follows from kept results, and every sentence rests on true verdicts."""

import gzip
import itertools
import json
from pathlib import Path

import numpy as np
import pytest
from scipy import stats

from rollcall import leaderboard
from rollcall.benchmark.config.experiment import names
from rollcall.benchmark.search.board import Board
from rollcall.benchmark.search.entry import ENDING, Entry
from rollcall.leaderboard.frames import history
from rollcall.leaderboard.paper.experiment import PaperExperiment
from rollcall.leaderboard.paper.findings import NAME, boards, findings, gap_on, guided, orders, written
from rollcall.leaderboard.paper.reproduction import Judged
from rollcall.leaderboard.runs import PACKAGE, archive, unarchive
from rollcall.leaderboard.standing import standing

FOLDER = Path(leaderboard.__file__).parent


@pytest.fixture(scope="module")
def all_judged():
    experiments = [PaperExperiment.read(f"findings/{name}") for name in written().findings]
    return [Judged(experiment, unarchive(experiment.home)) for experiment in experiments]


def test_the_committed_page_is_that_of_the_committed_results(all_judged):
    page = findings(all_judged)
    assert (FOLDER / NAME).read_text(encoding="utf-8") == page
    assert "| MNIST, softmax regression, 20 clients, 5 seeds ‡; the boards | mnist 1 |" in page
    assert len(all_judged) == len(names("findings"))


def test_a_gap_on_a_board_is_that_of_its_entries():
    """Of the files, by another library: the interval of SciPy's paired t test."""
    means = []
    for method in ("mifa", "scaffold"):
        content = json.loads(gzip.decompress((PACKAGE / "standard" / "fashion" / f"{method}{ENDING}").read_bytes()))
        searches = content["cells"]["absences"]
        means.append([100 * np.mean([run["value"] for run in one["finals"]]) for one in searches])
    low, high = stats.ttest_rel(*means).confidence_interval()
    told = gap_on("standard/fashion absences mifa scaffold", boards())
    assert told == f"+{(low + high) / 2:.1f} ± {(high - low) / 2:.1f}"
    assert any(told in row.says for row in guided(boards()).guide)


TYPED = {
    "which is {0:.1f} points below it ({1:.1f} to {2:.1f})": (
        ("mnist", {"place": "in turn", "algorithm": "fedavg"}, 800, 1000),
        ("mnist", {"place": "in turn", "algorithm": "fedpbc"}, 800, 1000),
    ),
    "with independent visits it is {0:.1f} below ({1:.1f} to {2:.1f})": (
        ("mnist", {"place": "independent", "algorithm": "fedavg"}, 800, 1000),
        ("mnist", {"place": "independent", "algorithm": "fedpbc"}, 800, 1000),
    ),
    "its round 150 and MIFA's round 300, no difference is shown ({0:.1f}, {1:.1f} to {2:.1f})": (
        ("phones", {"panel": "mnist", "participation": "phones", "algorithm": "scaffold"}, 149, 150),
        ("phones", {"panel": "mnist", "participation": "phones", "algorithm": "mifa"}, 299, 300),
    ),
    "FedAvg is {0:.1f} below SCAFFOLD at equal rounds ({1:.1f} to {2:.1f})": (
        ("phones", {"panel": "mnist", "participation": "phones", "algorithm": "scaffold"}, 240, 300),
        ("phones", {"panel": "mnist", "participation": "phones", "algorithm": "fedavg"}, 240, 300),
    ),
}
"""Differences that the guide has in words: the two sides, each an experiment, a cell and a window of rounds."""


def values(experiment, cell, after, until):
    """By seed the mean accuracy in percent over the evaluations of a window of rounds."""
    frame = history([], f"findings/{experiment}")
    frame = frame[(frame.metric == "test/accuracy") & frame["round"].gt(after) & frame["round"].le(until)]
    for axis, label in cell.items():
        frame = frame[frame[axis] == label]
    return 100 * frame.groupby("seed")["value"].mean()


@pytest.mark.parametrize("text", TYPED)
def test_a_difference_in_words_is_that_of_the_kept_runs(text):
    of, minus = (values(*side) for side in TYPED[text])
    assert list(of.index) == list(minus.index)
    told = text.format((of - minus).mean(), *stats.ttest_rel(of, minus).confidence_interval())
    assert any(told in row.says for row in written().guide)


def test_one_cell_at_the_rates_of_two_searches():
    means = [values(*cell, 800, 1000).mean() for cell in (
        ("correlation", {"correlation_time": "30", "algorithm": "mifa"}), ("model", {"participation": "markov", "algorithm": "mifa"}),
    )]  # fmt: skip
    told = "the same cell of MIFA has {:.1f} % in `correlation` and {:.1f} % in `model`".format(*means)
    assert any(told in row.says for row in written().limits)


def test_fedpbcs_largest_loss_on_the_boards_is_that_of_the_kept_entries():
    def losses(board):
        for name, entry in standing(Board.read(board)).entries.items():
            of = {
                key: np.array([100 * np.mean([run.value for run in one.finals]) for one in own])
                for key, own in entry.cells.items()
            }
            lost = max((of["equal"] - own for own in of.values()), key=np.mean)
            yield name, lost.mean(), stats.t.ppf(0.975, len(lost) - 1) * stats.sem(lost)

    (row,) = (one for one in written().guide if one.clients == "able to train while they are cut off")
    for board, told in (
        (
            "standard/fashion",
            "its largest loss from `equal` is {:.1f} ± {:.1f} points, those of the others are {:.1f} to {:.1f};",
        ),
        ("standard/digits", "its loss is {:.1f} ± {:.1f}, and those of the others are {:.1f} to {:.1f}."),
    ):
        ((mean, half),) = (of[1:] for of in losses(board) if of[0] == "fedpbc")
        others = [of[1] for of in losses(board) if of[0] != "fedpbc"]
        assert told.format(mean, half, min(others), max(others)) in row.says


def test_every_sentence_rests_on_the_verdicts_of_the_kept_results(all_judged):
    told = written()
    verdicts = {one.experiment.name.partition("/")[2]: [claim.verdict for claim in one.claims] for one in all_judged}
    for one in (*told.findings.values(), *told.checks, *told.guide, *told.limits):
        found = {name: {number: verdicts[name][number - 1] for number in ns} for name, ns in one.rests.items()}
        assert found == one.rests, one.says
    assert all(one.rests or one.basis.startswith("theory") for one in told.guide)
    assert all(one.rests for one in told.checks)
    assert all(name in told.findings for one in (*told.guide, *told.checks, *told.limits) for name in one.rests)


def sets(p):
    """All sets of available clients as masks, with their probabilities, under independent availability."""
    for active in itertools.product((False, True), repeat=len(p)):
        mask = np.array(active)
        yield mask, np.prod(np.where(mask, p, 1 - p))


def test_the_bias_of_fedpbc_and_fedavg_is_that_of_their_expected_round(all_judged):
    """Quadratics: K steps of client i are y_i = u_i + a_i (x_i - u_i), a_i = (1 - lr h_i)^K, so the expected round is linear."""
    one = next(one for one in all_judged if one.experiment.name == "findings/prediction")
    trial = one.experiment.trial
    u, h = (np.array(trial["task"][name]) for name in ("targets", "curvature"))
    p, a = np.array(one.experiment.grid["participation"]["bernoulli"]["probability"]), (1 - 0.05 * h) ** 3
    mixing, weights = np.zeros((10, 10)), np.zeros(10)
    for mask, probability in sets(p):
        rows = np.eye(10)
        if mask.any():
            rows[mask] = weight = mask / mask.sum()
            weights += probability * weight
        mixing += probability * rows
    optimum = h @ u / h.sum()
    clients = np.linalg.solve(np.eye(10) - mixing * a, mixing @ ((1 - a) * u))
    expected = {"fedpbc": clients.mean() - optimum, "fedavg": weights @ ((1 - a) * u) / (weights @ (1 - a)) - optimum}
    assert expected["fedpbc"] == pytest.approx(-0.01106, abs=1e-5)
    for method, bias in expected.items():
        labels = {"participation": "bernoulli", "algorithm": method}
        cell = next(cell for cell in one.cells if labels.items() <= cell.labels.items())
        measured = cell.finals(one.experiment.report.metrics[0], 1500)
        assert measured.mean() == pytest.approx(bias, rel=0.05)


def test_the_distance_after_meetings_is_that_of_the_expected_round(all_judged):
    """In the mean x = E[W] (u + a (x - u)), a_i = (1 - lr h_i)^K; W averages a pair, fixed or drawn among all."""
    one = next(one for one in all_judged if one.experiment.name == "findings/meetings")
    trial = one.experiment.panels["quadratics"].trial
    u, h = (np.array(trial["task"][name], dtype=float) for name in ("targets", "curvature"))
    pairs = {"fixed": [(i, i + 1) for i in range(0, 20, 2)], "random": [*itertools.combinations(range(20), 2)]}
    # W = I - d d' / 2 with d = e_i - e_j
    differences = {name: np.array([np.eye(20)[i] - np.eye(20)[j] for i, j in of]) for name, of in pairs.items()}
    W = {name: np.eye(20) - d.T @ d / 2 / len(d) for name, d in differences.items()}
    for panel, lr in (("quadratics", 0.005), ("slower", 0.0005)):
        for gap, mixing in zip(("0", "0.00158", "0.00526", "0.0158", "0.0526"), (0, 0.03, 0.1, 0.3, 1), strict=True):
            mean, a = (1 - mixing) * W["fixed"] + mixing * W["random"], (1 - lr * h) ** 2
            assert 1 - np.linalg.eigvalsh(mean)[-2] == pytest.approx(float(gap), rel=0.01, abs=1e-12)
            x = np.linalg.solve(np.eye(20) - mean * a, mean @ ((1 - a) * u))
            cell = next(cell for cell in one.cells if {"panel": panel, "gap": gap}.items() <= cell.labels.items())
            measured = cell.finals(one.experiment.report.metrics[0], 200).mean()
            assert measured == pytest.approx(abs(x.mean() - h @ u / h.sum()), rel=0.12 if lr < 0.001 else 0.04)


def test_a_published_order_is_the_paired_difference_of_kept_runs():
    """The README's measure by hand: the mean of all evaluations of CA-Fed less that of Unbiased, seed by seed."""
    order, _, (first, rates, other, _) = next(one for one in orders() if one[0].experiment == "ca_fed/released")
    means = {}
    for run in unarchive("ca_fed/released"):
        key = run.settings["algorithm"], run.settings["local.lr"], int(run.tags["seed"])
        means[key] = run.history["test/accuracy"].mean()
    own, own_at_same_rates, unbiased, at_same_rates = (
        np.array([means[name, rate, seed] for seed in range(40)])
        for name, rate in (("ca_fed", "0.01"), ("ca_fed", "0.03"), ("unbiased", "0.03"), ("unbiased", "0.01"))
    )
    assert first.gap.mean == pytest.approx((own - unbiased).mean())
    assert first.gap.interval() == pytest.approx(tuple(stats.ttest_rel(own, unbiased).confidence_interval()))
    assert rates.step.mean == pytest.approx((unbiased - at_same_rates).mean())
    assert other.gap.mean == pytest.approx((own_at_same_rates - unbiased).mean())
    assert first.printed == order.printed == 0.0089


def test_orders_and_the_data_of_a_paper_follow_from_the_archives_of_the_report(tmp_path, monkeypatch):
    """Without runs of `ca_fed/fig2`, no data of `ca_fed/fig1d` miss its printed number."""
    name, told = "ca_fed/released", written()
    archive([run for run in unarchive(name) if run.tags["seed"] in {"0", "1", "2"}], name, ["test/accuracy"], tmp_path)
    told.orders = [next(one for one in told.orders if one.experiment == name)]
    monkeypatch.setattr("rollcall.leaderboard.paper.findings.written", lambda: told)
    ((_, _, gaps),) = orders(tmp_path)
    assert gaps[0].size.startswith("3 seeds, ")
    weights = PaperExperiment.read("ca_fed/fig1d")
    for archives, misses in (((), True), ((tmp_path,), False)):
        judged = Judged(weights, unarchive(weights.home), archives)
        assert {bool(claim.misses) for claim in judged.claims if claim.claim.data} == {misses}
    name = Path("standard", "digits", f"mifa{ENDING}")
    Entry.read(PACKAGE / name).model_copy(update={"method": "own"}).write(tmp_path / name.parent)
    assert {*boards(tmp_path)["standard/digits"].entries} - {*boards()["standard/digits"].entries} == {"own"}
