"""Epochs, momentum, weight decay and last batches: both engines against torch.optim.SGD, uneven clients, empty rounds."""

import copy

import numpy as np
import pytest
import torch
from torch import nn

from rollcall import SettingError, simulate
from rollcall.algorithms import ALGORITHMS, Rows
from rollcall.benchmark.config.trial import Evaluation, Trial
from rollcall.benchmark.engines import Feed, FlatTask, LocalTraining, Sequential, Vectorised
from rollcall.benchmark.federation.build import build
from rollcall.tasks import Minibatches, digits, leaf_synthetic
from rollcall.tasks.partitions import Parts

SIZES = [5, 33, 16, 70, 48, 20]


def partition(labels, m, seed):
    """Clients with few and many samples; what is left over is nobody's."""
    return Parts(np.split(np.arange(sum(SIZES)), np.cumsum(SIZES)[:-1]), np.full((m, 10), 0.1))


MASK = np.array([[1, 1, 0, 1, 0, 1], [0, 0, 0, 0, 0, 0], [0, 1, 1, 0, 1, 0], [1, 1, 0, 1, 1, 0], [0, 1, 0, 0, 0, 1]])
DIGITS = {
    "task": {"name": "digits", "clients": 6, "partition": "iid", "model": "linear"},
    "participation": {"name": "trace", "mask": MASK},
    "rounds": 5,
    "numerics": {"dtype": "float64"},
}


def rigs(local, last="keep", momentum=None):
    """Works of round 3 by both engines, and what they are made of."""
    task, data = digits(0, clients=6, partition=partition)
    task, minibatches = task.double(), Minibatches(data.parts, 16, seed=0, last=last)
    if local.get("epochs"):
        local = local | {"steps": local["epochs"] * minibatches.per_epoch}
    training = LocalTraining(**{key: value for key, value in local.items() if key != "epochs"})
    feed = Feed(task, data.splits["train"], minibatches)
    works = [engine(FlatTask(task), feed, training).round(3, 0.1, momentum) for engine in (Sequential, Vectorised)]
    return works, task, data, minibatches, training


def by_torch(task, data, minibatches, steps, start, client, correction=None, **options):
    """The client's steps of round 3 by torch's own optimizer."""
    model = copy.deepcopy(task)
    nn.utils.vector_to_parameters(start.clone(), model.parameters())
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, **options)
    for step in range(3 * steps, 4 * steps):
        rows = minibatches.rows(client, step)
        optimizer.zero_grad()
        loss = model.loss(tuple(column[rows] for column in data.splits["train"]))
        if correction is not None:
            loss = loss + correction @ nn.utils.parameters_to_vector(model.parameters())
        loss.backward()
        optimizer.step()
    return nn.utils.parameters_to_vector(model.parameters()).detach()


@pytest.mark.parametrize("last", ["keep", "drop"])
@pytest.mark.parametrize("momentum", [0.0, 0.9])
@pytest.mark.parametrize("decay", [0.0, 0.3])
@pytest.mark.parametrize("corrected", [False, True])
def test_sgd_with_epochs(last, momentum, decay, corrected):
    local = {"epochs": 2, "momentum": momentum, "weight_decay": decay}
    works, task, data, minibatches, _ = rigs(local, last)
    expected_steps = {"keep": [2, 6, 2, 10, 6, 4], "drop": [2, 4, 2, 8, 6, 2]}[last]
    clients = torch.tensor([3, 0, 4, 1, 5])
    x = FlatTask(task).vector()
    draw = torch.Generator().manual_seed(1)
    start = x + 0.1 * torch.randn(5, len(x), generator=draw, dtype=torch.float64)
    correct = 0.05 * torch.randn(start.shape, generator=draw, dtype=torch.float64) if corrected else None
    for work in works:
        assert work.steps == max(expected_steps)
        assert work.steps_of(clients).tolist() == [expected_steps[i] for i in clients.tolist()]
        ends = work.sgd(clients, start, correct=correct)
        for row, client in enumerate(clients.tolist()):
            correction = None if correct is None else correct[row]
            steps, options = expected_steps[client], {"momentum": momentum, "weight_decay": decay}
            found = by_torch(task, data, minibatches, steps, start[row], client, correction, **options)
            assert (ends[row] - found).abs().max() < 1e-10
    plain = rigs({"steps": 2})[0][0].sgd(clients, start)
    assert (ends - plain).abs().max() > 1e-3


def test_many_steps_are_dealt_in_pieces():
    works, task, *_ = rigs({"steps": 150})
    x = FlatTask(task).vector().expand(3, -1)
    one, other = (work.sgd(torch.tensor([5, 1, 0]), x) for work in works)
    assert (one - other).abs().max() < 1e-10


def test_a_gradient_has_the_decay_and_a_loss_has_not():
    plain, decayed = rigs({"steps": 2})[0], rigs({"steps": 2, "weight_decay": 0.3})[0]
    x = FlatTask(rigs({"steps": 2})[1]).vector() + torch.tensor([[0.0], [0.2]], dtype=torch.float64)
    for one, other in zip(plain, decayed, strict=True):
        (g, loss), (g_decayed, same) = (work.gradients(torch.tensor([1, 4]), x, 1) for work in (one, other))
        assert (g_decayed - (g + 0.3 * x)).abs().max() < 1e-12
        assert torch.equal(loss, same)


def test_momentum_that_is_kept_begins_where_it_was():
    task = rigs({"steps": 2})[1]
    d = len(FlatTask(task).vector())
    before = Rows.begin(torch.zeros(d, dtype=torch.float64), 6).put(torch.tensor([4]), torch.ones(1, d).double())
    works, task, *_ = rigs({"steps": 2, "momentum": 0.5, "keep_momentum": True}, momentum=before)
    x = FlatTask(task).vector().expand(2, -1)
    for work in works:
        ends = [work.sgd(torch.tensor([4, 1]), x) for _ in range(2)]
        assert torch.equal(*ends)  # asked twice in a round, a client begins where the round began
        g, _ = work.gradients(torch.tensor([4, 1]), x, 0)
        v = 0.5 * before[torch.tensor([4, 1])] + g
        y = x - 0.1 * v
        v = 0.5 * v + work.gradients(torch.tensor([4, 1]), y, 1)[0]
        assert (ends[0] - (y - 0.1 * v)).abs().max() < 1e-10
        assert (work.momentum[torch.tensor([4, 1])] - v).abs().max() < 1e-10
        assert not work.momentum[torch.tensor([0, 2, 3, 5])].any()


@pytest.mark.parametrize("keep", [False, True])
@pytest.mark.parametrize("engine", ["sequential", "vectorised"])
def test_fedavg_with_an_optimizer_of_each_client(keep, engine, tmp_path):
    """Rounds of FedAvg by hand; with `keep` every client has one torch optimizer for the whole run."""
    local = {"epochs": 1, "batch_size": 64, "lr": 0.05, "momentum": 0.9, "weight_decay": 0.01, "keep_momentum": keep}
    trial = DIGITS | {"algorithm": "fedavg", "local": local, "numerics": {"dtype": "float64", "engine": engine}}
    federation = build(Trial.read(trial))
    data, minibatches, task = federation.data, federation.minibatches, federation.model.task
    steps = minibatches.per_epoch
    assert len(set(minibatches.parts.sizes.tolist())) > 1
    x = federation.server.detach().clone()
    models = [copy.deepcopy(task) for _ in range(6)]
    make = lambda model: torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9, weight_decay=0.01)  # noqa: E731
    optimizers = [make(model) for model in models]
    for t, active in enumerate(MASK):
        ends = []
        for i in np.flatnonzero(active).tolist():
            nn.utils.vector_to_parameters(x.clone(), models[i].parameters())
            optimizer = optimizers[i] if keep else make(models[i])
            for step in range(t * int(steps[i]), (t + 1) * int(steps[i])):
                optimizer.zero_grad()
                models[i].loss(tuple(c[minibatches.rows(i, step)] for c in data.splits["train"])).backward()
                optimizer.step()
            ends.append(nn.utils.parameters_to_vector(models[i].parameters()).detach())
        if ends:
            x = torch.stack(ends).mean(dim=0)
    assert np.abs(simulate(trial).server - x.numpy()).max() < 1e-10
    # Stopped in the middle, the clients' momentum goes through the checkpoint.
    simulate(trial | {"rounds": 3}, folder=tmp_path)
    assert np.abs(simulate(trial, folder=tmp_path).server - x.numpy()).max() < 1e-10


def test_the_server_decays_the_model():
    quadratic = {"task": {"name": "quadratic", "targets": [[1.0], [3.0]]}, "algorithm": "fedavg", "rounds": 2}
    local = {"steps": 1, "lr": 0.5}
    trial = quadratic | {"local": local, "server": {"lr": 0.5, "weight_decay": 0.1, "momentum": 0.5}}
    # Update 0.5 (2 - x). v = 0.1 x - update: -1 at x = 0, so x = 0.5; then 0.5 (-1) + 0.05 - 0.75 = -1.2, x = 1.1.
    assert simulate(trial | {"numerics": {"dtype": "float64"}}).server == pytest.approx([1.1])


@pytest.mark.parametrize("name", [name for name in ALGORITHMS if name not in ("fedsgd", "fedsgd_iw")])
def test_engines_agree_for_every_method(name):
    """Epochs, uneven clients, weight decay, and momentum for those that take it; to 1e-10."""
    partition = {"name": "dirichlet", "alpha": 0.3}
    local = {"epochs": 2, "batch_size": 64, "lr": 0.02, "weight_decay": 0.1}
    if name not in ("fedprox", "scaffold", "scaffnew", "focus", "feddyn", "fednova"):
        local |= {"momentum": 0.8, "keep_momentum": True}
    model = {"name": "markov_pi_lambda", "correlation": 0.2}
    trial = DIGITS | {"algorithm": name, "local": local, "participation": model}
    trial["task"] = DIGITS["task"] | {"partition": partition}
    ends = [simulate(trial | {"numerics": {"dtype": "float64", "engine": e}}) for e in ("sequential", "vectorised")]
    assert np.abs(ends[0].server).max() > 1e-3
    assert np.abs(ends[0].server - ends[1].server).max() < 1e-10 * max(1, np.abs(ends[0].server).max())
    epochs = simulate(trial | {"local": local | {"epochs": None, "steps": 2}})
    assert np.abs(epochs.server - ends[0].server).max() > 1e-4


def test_costs_count_the_steps_that_are_taken():
    local = {"epochs": 2, "batch_size": 64}
    result = simulate(DIGITS | {"algorithm": "fedavg", "local": local})
    federation = build(Trial.read(DIGITS | {"algorithm": "fedavg", "local": local}))
    expected = (MASK * 2 * federation.minibatches.per_epoch).sum()
    assert result.history["cost/gradients"].iloc[-1] == expected


@pytest.mark.parametrize(
    ("local", "algorithm", "complaint"),
    [
        (
            {"steps": 2, "epochs": 1},
            "fedavg",
            r"local.epochs: 1 is not allowed together with steps; set only one of the two",
        ),
        ({"steps": None}, "fedavg", "local.steps: null is not allowed without epochs"),
        ({"keep_momentum": True}, "fedavg", "local.keep_momentum: true is not allowed without momentum"),
        ({"momentum": 1.0}, "fedavg", "local.momentum: 1.0 is not allowed; must be less than 1"),
        ({"momentum": 0.9}, "focus", "local.momentum: 0.9 is not allowed with focus, which changes the direction"),
        ({"epochs": 1, "batch_size": 8}, "fedsgd", "local.epochs is not allowed with fedsgd, which uses one gradient"),
    ],
)
def test_what_makes_no_sense_is_refused(local, algorithm, complaint):
    with pytest.raises(SettingError, match=complaint):
        Trial.read(DIGITS | {"algorithm": algorithm, "local": local})


def test_one_epoch_of_full_batches_is_one_step():
    trial = DIGITS | {"algorithm": "fedsgd", "local": {"epochs": 1}}
    assert np.array_equal(simulate(trial).server, simulate(trial | {"local": {"steps": 1}}).server)


def test_dropped_batches():
    parts = [np.arange(7), np.array([20]), np.arange(10, 14)]
    batches = Minibatches(parts, 3, seed=1, last="drop")
    assert batches.per_epoch.tolist() == [2, 1, 1]
    for epoch in range(3):
        seen = [batches.rows(0, 2 * epoch + step) for step in range(2)]
        assert [len(rows) for rows in seen] == [3, 3]
        assert len(set(np.concatenate(seen))) == 6
    assert batches.rows(1, 5).tolist() == [20]  # less than a batch is kept
    whole = Minibatches(parts, 3, seed=1)
    assert batches.rows(0, 1).tolist() == whole.rows(0, 1).tolist()
    assert batches.rows(0, 2).tolist() == whole.rows(0, 3).tolist()  # the next epoch begins a step earlier


def test_the_least_loss_of_a_client_against_plain_descent():
    task, data = leaf_synthetic(3, clients=3)
    found = task.least_losses(data)
    for rows, value in zip(data.parts, found, strict=True):
        x, y = (column[rows] for column in data.splits["train"])
        x, classes = x.double(), torch.unique(y)
        if len(classes) == 1:
            assert value == 0
            continue
        y = torch.searchsorted(classes, y)
        W = torch.zeros(len(classes), 60, dtype=torch.float64, requires_grad=True)
        b = torch.zeros(len(classes), dtype=torch.float64, requires_grad=True)
        optimizer = torch.optim.LBFGS([W, b], max_iter=2000, tolerance_grad=1e-9, line_search_fn="strong_wolfe")

        def objective(x=x, y=y, W=W, b=b):
            W.grad = b.grad = None
            total = nn.functional.cross_entropy(x @ W.T + b, y, reduction="sum") + 0.5 * W.square().sum()
            total.backward()
            return total

        optimizer.step(objective)
        with torch.no_grad():
            assert value == pytest.approx(
                nn.functional.cross_entropy(x @ W.T + b, y).item(), rel=1e-2
            )  # scikit-learn stops at a tolerance of 1e-4


def test_evaluations_are_where_the_table_looks():
    for every, last, at, rounds in (
        (20, (30, 4), (), 107),
        (7, None, (), 50),
        (200, (100, 10), (), 300),
        (5, (500, 3), (), 31),
        (9, (9, 9), (), 9),
        (10, None, (3, 20, 3, 34, 60), 50),
        (20, (30, 4), (7, 80, 81, 107, 200), 107),
    ):
        given = {"every": every, "last": last and {"rounds": last[0], "every": last[1]}, "at": at}
        evaluation = Evaluation.model_validate(given)
        expected = {0, rounds, *range(0, rounds, every), *(t for t in at if t < rounds)}
        if last:
            expected |= {t for t in range(rounds) if t > rounds - last[0] and t % last[1] == 0}
        assert {t for t in range(rounds + 1) if evaluation.due(t, rounds)} == expected
        among = {t for t in expected if last and t > max(0, rounds - last[0])}
        assert evaluation.counts(rounds) == (len(expected - among), len(among))


def test_a_run_is_evaluated_where_it_is_due_and_nowhere_else():
    evaluation = {"every": 8, "last": {"rounds": 6, "every": 2}}
    often = simulate(DIGITS | {"algorithm": "fedpbc", "rounds": 21, "evaluation": {"every": 1}})
    seldom = simulate(DIGITS | {"algorithm": "fedpbc", "rounds": 21, "evaluation": evaluation})
    assert seldom.history["round"].tolist() == [0, 8, 16, 18, 20, 21]
    same = often.history[often.history["round"].isin(seldom.history["round"])].reset_index(drop=True)
    assert same.equals(seldom.history)
    assert np.array_equal(often.model, seldom.model)


def test_the_last_rounds_may_have_splits_of_their_own():
    last = {"rounds": 6, "every": 2, "splits": ["test", "train"]}
    both = simulate(DIGITS | {"algorithm": "fedpbc", "rounds": 10, "evaluation": {"every": 1}}).history
    evaluation = {"every": 3, "splits": ["test"], "last": last}
    found = simulate(DIGITS | {"algorithm": "fedpbc", "rounds": 10, "evaluation": evaluation}).history
    assert found["round"].tolist() == [0, 3, 6, 8, 9, 10]
    assert found.columns[:3].tolist() == ["round", "test/loss", "test/accuracy"]
    wanted = both[both["round"].isin(found["round"])].reset_index(drop=True)
    assert found["test/loss"].tolist() == wanted["test/loss"].tolist()
    assert found["train/loss"].isna().tolist() == [True, True, False, False, False, False]
    assert found["train/loss"].dropna().tolist() == wanted["train/loss"][2:].tolist()
    with pytest.raises(SettingError, match=r"evaluation\.splits: 'validation' is not allowed with digits"):
        simulate(DIGITS | {"algorithm": "fedpbc", "evaluation": {"last": last | {"splits": ["validation"]}}})
