"""FINDINGS.md: the committed page and its figures follow from kept results, and every sentence rests on true verdicts."""

import itertools
import re
from pathlib import Path

import numpy as np
import pytest

from rollcall import leaderboard
from rollcall.benchmark.config.base import validated
from rollcall.benchmark.config.choice import read
from rollcall.benchmark.config.experiment import names
from rollcall.benchmark.config.trial import Trial
from rollcall.benchmark.federation.build import build
from rollcall.leaderboard.paper.experiment import PaperExperiment
from rollcall.leaderboard.paper.findings import NAME, Findings, Sentence, page
from rollcall.leaderboard.paper.reproduction import Judged
from rollcall.leaderboard.plots.curves import paper_figure
from rollcall.leaderboard.runs import unarchive
from rollcall.participation import Population

FOLDER = Path(leaderboard.__file__).parent


@pytest.fixture(scope="module")
def all_judged():
    experiments = [PaperExperiment.read(f"findings/{name}") for name in Findings.read().findings]
    return [Judged(experiment, unarchive(experiment.home)) for experiment in experiments]


def test_the_committed_page_is_that_of_the_committed_results(all_judged):
    assert (FOLDER / NAME).read_text(encoding="utf-8") == page(all_judged)
    assert len(all_judged) == len(names("findings"))


def test_the_committed_pictures_are_those_of_the_committed_results(all_judged):
    drawn = 0
    for one in all_judged:
        measured = [cell for cell in one.cells if cell.runs]
        if measured:
            file = FOLDER / "figures" / f"{one.experiment.name}.svg"
            again = paper_figure(one.experiment, measured).svg
            same = [re.sub(r"(clip|gradient)_?\d+", "", text) for text in (file.read_text(encoding="utf-8"), again)]
            assert same[0] == same[1], file  # but for numbers that the process counts
            drawn += 1
    assert drawn > 0


def test_every_sentence_rests_on_the_verdicts_of_the_kept_results(all_judged):
    told = Findings.read()
    verdicts = {one.experiment.name.partition("/")[2]: [claim.verdict for claim in one.claims] for one in all_judged}
    for one in (*told.findings.values(), *told.checks, *told.guide, *told.limits):
        found = {name: {number: verdicts[name][number - 1] for number in ns} for name, ns in one.rests.items()}
        assert found == one.rests, one.says
    assert all(one.rests for one in (*told.guide, *told.checks))
    assert all(name in told.findings for one in (*told.guide, *told.checks, *told.limits) for name in one.rests)


def test_a_sentence_links_to_the_claims_that_it_rests_on():
    one = validated(Sentence, {"says": "yes", "rests": {"coupling": {1: "holds"}}})
    assert one.links() == "[coupling 1](reproduction/findings/coupling.md#1)"


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
        cell = next(
            c for c in one.cells if c.labels["participation"] == "bernoulli" and c.labels["algorithm"] == method
        )
        measured = cell.finals(one.experiment.report.metrics[0], 1500)
        assert measured.mean() == pytest.approx(bias, rel=0.05)


def test_long_training_removes_the_bias_of_weights_from_the_accuracy_on_digits():
    """Gradient descent in NumPy with FedAvg's exact long-run weights under full coupling, and with equal weights."""
    participation = {
        "name": "bernoulli",
        "probability": {"name": "coupling", "strength": 1.0, "mean": 0.15, "delta": 0.02},
    }
    task = {"name": "digits", "clients": 20, "model": "linear", "partition": {"name": "dirichlet", "alpha": 0.1}}
    made = build(
        Trial.model_validate({"task": task, "participation": participation, "algorithm": "fedavg", "rounds": 1})
    )
    p = made.participation.probability(0)
    at, width = np.polynomial.legendre.leggauss(30)  # E[1/(1 + S)] is the integral of E[s^S] over [0, 1]
    others = [np.prod([1 - q + q * (at + 1) / 2 for j, q in enumerate(p) if j != i], axis=0) for i in range(20)]
    fedavg = p * (np.array(others) @ width / 2)
    (x, y), (x_test, y_test) = (
        [column.numpy().reshape(len(column), -1).squeeze() for column in made.data.splits[split]]
        for split in ("train", "test")
    )
    x, x_test = ((part - x.mean()) / x.std() for part in (x.astype(float), x_test.astype(float)))

    def accuracies(weights, steps=(30, 5000), rate=0.1):
        of_sample, found = np.zeros(len(x)), []
        for weight, rows in zip(weights / weights.sum(), made.data.parts, strict=True):
            of_sample[rows] = weight / len(rows)
        w, b = np.zeros((x.shape[1], 10)), np.zeros(10)
        for step in range(1, steps[-1] + 1):
            z = np.exp(x @ w + b - (x @ w + b).max(1, keepdims=True))
            gradient = (z / z.sum(1, keepdims=True) - np.eye(10)[y]) * of_sample[:, None]
            w, b = w - rate * x.T @ gradient, b - rate * gradient.sum(0)
            if step in steps:
                found.append(((x_test @ w + b).argmax(1) == y_test).mean())
        return np.array(found)

    early, late = accuracies(np.ones(20)) - accuracies(fedavg)
    assert early > 0.2
    assert late < 0.03


def test_clients_in_turn_come_in_the_same_pairs_for_ever():
    turns = PaperExperiment.read("findings/rare").panels["regularity"].grid["participation"]["in turn"]
    model = read("participation", turns).build(Population(20, 0, None))
    rounds = [tuple(model.active(t)) for t in range(100)]
    assert rounds[10:] == rounds[:-10]
    assert sorted(itertools.chain(*rounds[:10])) == list(range(20))  # ten pairs that share no client
