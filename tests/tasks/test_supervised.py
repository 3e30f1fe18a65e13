"""Tasks from plain parts, against losses and fits written out in NumPy, and the messages for parts that do not fit."""

import warnings

import numpy as np
import pytest
import torch
import torchmetrics
from keys import keyed
from lightning.pytorch import LightningModule, Trainer
from runs import TRAINER
from torch import nn
from torch.nn import functional as F
from torch.utils.data import Dataset

from rollcall import SettingError, simulate
from rollcall.benchmark.config.choice import Choice, _model
from rollcall.tasks import supervised
from rollcall.tasks.partitions import iid

RNG = np.random.default_rng(5)
X, Z = RNG.normal(size=(60, 3)), RNG.normal(size=(11, 3))
SLOPE = np.array([1.0, -2.0, 0.5])
NUMBERS = X @ SLOPE + 0.1 * RNG.normal(size=60), Z @ SLOPE
LABELS = (X @ SLOPE > 0).astype(int) + (X[:, 0] > 1), (Z @ SLOPE > 0).astype(int)
HOLED = X.copy()
HOLED[[0, 40, 59], [0, 1, 1]] = np.nan, np.inf, np.nan
REGRESSION = (X, NUMBERS[0]), (Z, NUMBERS[1])
CLASSIFICATION = (X, LABELS[0]), (Z, LABELS[1])


def line(outputs=1):
    torch.manual_seed(0)
    return nn.Linear(3, outputs)


class Pairs(Dataset):
    def __len__(self):
        return len(X)

    def __getitem__(self, row):
        return torch.from_numpy(X[row]), int(LABELS[0][row])


class Plain(LightningModule):
    """As a user of Lightning writes it."""

    def __init__(self):
        super().__init__()
        self.layer = line(3)

    def forward(self, inputs):
        return self.layer(inputs)

    def training_step(self, batch, batch_idx):
        inputs, labels = batch
        loss = F.cross_entropy(self(inputs), labels)
        self.log("loss", loss)
        return loss


def one_round(parts, **trial):
    task = {"task": Choice("own", {}, parts), "algorithm": "fedavg", "rounds": 1, "local": {"lr": 0.1}}
    return simulate(task | trial)


def test_regression_by_federated_gradient_descent():
    """One client with all samples: gradient descent from the initial model, in NumPy."""
    task = supervised(*REGRESSION, line().double(), metrics={"worst": lambda p, y: (p - y).abs()}, clients=1)
    settings = {"numerics": {"dtype": "float64"}, "evaluation": {"metrics": ["torchmetrics:R2Score"]}}
    result = one_round(task, rounds=4, local={"steps": 1, "lr": 0.1}, **settings)
    w, b = (parameter.detach().double().numpy() for parameter in line().parameters())
    w, b = w[0], b[0]
    for _ in range(4):
        error = X @ w + b - NUMBERS[0]
        w, b = w - 0.1 * 2 * X.T @ error / 60, b - 0.1 * 2 * error.mean()
    assert result.model == pytest.approx([*w, b], abs=1e-10)
    error = Z @ w + b - NUMBERS[1]
    row = result.history.iloc[-1]
    assert row["test/loss"] == pytest.approx((error**2).mean(), abs=1e-10)
    assert row["test/worst"] == pytest.approx(np.abs(error).mean(), abs=1e-10)
    assert row["test/R2Score"] == pytest.approx(1 - (error**2).sum() / ((NUMBERS[1] - NUMBERS[1].mean()) ** 2).sum())
    assert "test/accuracy" not in row


TRAIN = [CLASSIFICATION[0], Pairs(), [torch.from_numpy(column) for column in CLASSIFICATION[0]]]


@pytest.mark.parametrize("train", TRAIN)
def test_classification_from_arrays_tensors_and_data_sets(train):
    partition = {"name": "dirichlet", "alpha": 1.0}
    task, data = supervised(train, CLASSIFICATION[1], line(3), clients=4, partition=partition)(7)
    inputs, labels = data.splits["train"]
    assert torch.equal(inputs, torch.from_numpy(X).float())
    assert labels.tolist() == LABELS[0].tolist()
    logits = X @ task.network.weight.detach().numpy().T + task.network.bias.detach().numpy()
    losses = np.log(np.exp(logits).sum(axis=1)) - logits[np.arange(60), LABELS[0]]
    measured = task.metrics((inputs, labels))
    assert measured["loss"].detach().numpy() == pytest.approx(losses, rel=1e-5)
    assert task.loss((inputs, labels)).item() == pytest.approx(losses.mean(), rel=1e-5)
    assert measured["accuracy"].tolist() == (logits.argmax(axis=1) == LABELS[0]).tolist()
    assert task.outputs((inputs, labels))[0].sum(dim=1).tolist() == pytest.approx([1.0] * 60)
    assert data.histogram.sum(axis=0).tolist() == np.bincount(LABELS[0]).tolist()
    assert data.classes.shape == (4, 3)


def test_options_of_a_call_replace_those_of_the_parts():
    parts = supervised(*REGRESSION, lambda seed: line(), clients=4)
    model = _model(parts, 1)  # what an experiment file may set
    assert set(model.model_fields) == {"clients", "partition", "validation", "test_share", "empty_clients"}
    options = dict(model.model_validate({"clients": 5, "partition": "iid", "validation": 0.3}))
    _, data = Choice("own", options, parts).build(2)
    rows = iid(np.zeros(60, dtype=int), 5, 2).rows
    sizes = np.array([len(mine) for mine in rows])
    held_out = np.bincount(data.owner("validation"), minlength=5)
    assert held_out.tolist() == [min(round(0.3 * n), n - 1) for n in sizes]
    assert data.parts.sizes.tolist() == (sizes - held_out).tolist()
    for client, mine in enumerate(rows):  # each client holds out its own samples
        own = data.splits["validation"][1][data.owner("validation") == client].tolist()
        own += data.splits["train"][1][data.parts[client]].tolist()
        assert sorted(own) == pytest.approx(sorted(NUMBERS[0][mine]), rel=1e-6)
    assert parts(2)[1].clients == 4


def test_a_plain_lightning_module():
    with warnings.catch_warnings():
        warnings.simplefilter("error", UserWarning)
        kappa = torchmetrics.CohenKappa("multiclass", num_classes=3)
        parts = supervised(*CLASSIFICATION, Plain(), metrics=["auroc", kappa])
    history = one_round(parts).history
    assert history["train/loss"].iloc[1] < history["train/loss"].iloc[0]
    task, data = parts(0)
    kappa = torchmetrics.functional.cohen_kappa(*task.outputs(data.splits["test"]), "multiclass", num_classes=3)
    assert history["test/MulticlassCohenKappa"].iloc[0] == pytest.approx(kappa.item(), abs=1e-6)
    Trainer(max_epochs=1, **TRAINER).fit(task, data)


class Flat(Plain):
    forward = LightningModule.forward


class OfImages(Plain):
    """The network of an image task: it takes the shape of an image and the number of classes."""

    def __init__(self, shape, classes):
        super().__init__()
        self.layer = nn.Sequential(nn.Flatten(), nn.Linear(int(np.prod(shape)), classes))


def test_a_lightning_module_as_the_network_of_an_image_task():
    torch.manual_seed(0)
    task = {"name": "digits", "clients": 2, "model": OfImages}
    history = simulate({"task": task, "algorithm": "fedavg", "rounds": 1}).history
    assert history["train/loss"].iloc[1] < history["train/loss"].iloc[0]


class Two(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = line(3)

    def forward(self, x):
        return (self.layer(x), 0) if self.training else self.layer(x)


R, C = REGRESSION, CLASSIFICATION
WRONG = [  # arguments, options, and the message
    ((*C, Flat()), {}, "network: cannot be computed for inputs .*: .*missing the required .forward"),
    ((*R, nn.Linear), {}, "network: <class .*Linear.> is not allowed; must be a torch module"),
    ((*C, line(2)), {}, r"network: gives a tensor \[3, 2\] .*must give \[3, 3\], a logit"),
    ((*R, line(2)), {}, r"network: gives a tensor \[2, 2\] for 2 samples; must give \[2\]"),
    ((*R, nn.Linear(4, 1)), {}, r"network: cannot be computed for inputs of shape \[\[2, 3\]\]"),
    ((*C, Two()), {}, r"network: gives a tuple for 3 samples in training; must give \[3, 3\], a logit"),
    ((*C, lambda: line(3)), {}, "network: cannot be made from a seed: TypeError: .*takes 0 positional arguments"),
    ((*R, line()), {"loss": nn.MSELoss(reduction="sum")}, "loss: gives .* for samples whose own losses are .*must be their mean"),
    ((*R, line()), {"loss": nn.MSELoss(reduction="none")}, r"loss: gives a tensor \[2\]; must give one"),
    ((*C, line(3)), {"loss": nn.CrossEntropyLoss(weight=torch.tensor([1.0, 1.0, 9.0]))}, "loss: gives .*without sums or class weights"),
    (((X, NUMBERS[1]), None, line()), {}, r"train: columns of lengths \[60, 11\] are not allowed"),
    (((X, LABELS[0] - 1), None, line(2)), {}, r"train: labels of shape \[60\] from -1"),
    (((X, LABELS[0] * 0), None, line(1)), {}, "train: labels that are all 0 are not allowed"),
    ((C[0], (Z, LABELS[1] + 2), line(3)), {}, "test: labels are not allowed that train"),
    ((R[0], (Z[:, :2], NUMBERS[1]), line()), {}, "test: columns .*must be as those of train"),
    ((*R, line()), {"metrics": ["rr"]}, "metrics: 'rr' is not allowed; must be a name such as auroc"),
    ((*R, line()), {"metrics": ["r2", "r2"]}, r"metrics: two of one name are not allowed \(r2, r2\)"),
    ((*C, line(3)), {"metrics": {"accuracy": "f1"}}, "metrics: accuracy is not allowed; the task measures it"),
    (((np.ma.masked_array(X), R[0][1]), None, line()), {}, "train: masked arrays: must be a tuple"),
    ((*R, line()), {"partition": "x"}, "partition: 'x' is not allowed; must be a function or one"),
    ((*R, line()), {"partition": lambda y, m, seed: {i: [i] for i in range(m)}}, r"partition: a dict is not allowed; must be Parts, or a list .*test_supervised.py:\d+\)$"),
    ((*R, line()), {"partition": lambda y, m, seed: [[0, 1], [1]], "clients": 2}, "partition: sample 1 of clients 0, 1 is not allowed; must"),
    ((*R, line()), {"partition": lambda y, m, seed: [[0], [60]], "clients": 2}, "partition: sample 60 of client 1 is not allowed; must be in 0 to 59"),
    ((*R, line()), {"partition": lambda y, m, seed: [[0], []], "clients": 2}, "data: client 1 without training samples is not"),
    ((*R, line()), {"partition": lambda y, m, seed: y["a"]}, r"partition: IndexError: .*test_supervised.py:\d+\)$"),
    ((*R, line()), {"partition": lambda y, m, seed: np.arange(60) % m}, r"partition: a part of shape \(\) is not"),
    ((*R, line()), {"partition": {"name": "dirichlet", "alpha": 1.0}}, "partition: dirichlet is not allowed; it divides"),
    ((*R, line()), {"owners": {"train": [None] * 60}}, "owners: 60 missing ones for train are not allowed"),
    ((*R, line()), {"owners": {"train": [0] * 60}, "clients": 3}, "owners: are not allowed beside clients"),
    ((*R, line()), {"owners": {"train": [0, 1]}}, r"owners: shape \(2,\) for train is not allowed; must be \[60\]"),
    ((*R, line()), {"owners": {"test": ["a"] * 11}}, "owners: names or fractions for test are not allowed without owners for train; must be whole"),
    ((*R, line()), {"owners": {"test": [0.5] * 11}}, "owners: names or fractions for test are not allowed without owners for train; must be whole"),
    ((*R, line()), {"validation": 0.001}, "validation: 0.001 is not allowed; no client would hold out a sample"),
]  # fmt: skip


class Zeros(nn.Module):
    def forward(self, x):
        return x.nan_to_num(posinf=0)


def test_values_that_are_not_finite_are_an_error_of_the_data_unless_the_network_replaces_them():
    message = "^task.data: NaN or infinite values in 3 of 60 samples of train; the first is sample 0, of client [01]; r"
    with pytest.raises(SettingError, match=message):
        one_round(supervised((HOLED, NUMBERS[0]), None, line(), clients=2))
    network = nn.Sequential(Zeros(), line().double())
    assert one_round(supervised((HOLED, NUMBERS[0]), None, network, clients=2)).diverged is None


def test_clients_with_names_and_own_test_samples():
    """The accuracy of each client on its own test samples, by hand; a client that has none in training."""
    owners = {"train": np.repeat(["EU", "NA"], [20, 40]), "test": np.repeat(["NA", "EU"], [4, 7])}
    parts = supervised(*CLASSIFICATION, line(3), owners=owners)
    result = one_round(parts, evaluation={"by": ["client"]})
    w, b = result.model[:9].reshape(3, 3), result.model[9:]
    hits = (Z @ w.T + b).argmax(axis=1) == LABELS[1]
    row = result.history.iloc[-1]
    assert row["test/accuracy/client0"] == pytest.approx(hits[4:].mean())
    assert row["test/accuracy/client1"] == pytest.approx(hits[:4].mean())
    data = parts(0)[1]
    assert (data.names, data.parts.sizes.tolist()) == (("EU", "NA"), [20, 40])
    owners["test"][0] = "SA"
    message = r"client 2 \(SA\) without training samples is not allowed; must have one; `empty"
    with pytest.raises(ValueError, match=message):
        supervised(*CLASSIFICATION, line(3), owners=owners)(0)
    kept = supervised(*CLASSIFICATION, line(3), owners=owners, empty_clients="keep")
    assert kept(0)[1].parts.sizes.tolist() == [20, 40, 0]
    # The empty client is available and never trains: the model is that of the two others.
    for algorithm in ("fedavg", "fedavg_all", "fedvarp"):  # the last two divide by m
        how = {"algorithm": algorithm, "numerics": {"dtype": "float64"}}
        assert one_round(kept, **how).model == pytest.approx(one_round(parts, **how).model)
    with pytest.raises(
        SettingError, match="'fedawe' is not allowed with clients without samples; it counts them among"
    ):
        one_round(kept, algorithm="fedawe")
    told = {"name": "fedsgd_iw", "oracle": True}
    with pytest.raises(SettingError, match="it is told shares of the active clients, in which they count"):
        one_round(kept, algorithm=told, local={"steps": 1, "lr": 0.1, "batch_size": "full"})
    whole = np.arange(60) % 2.0  # pandas makes floats of whole numbers
    assert supervised(*CLASSIFICATION, line(3), owners={"train": whole})(0)[1].names == ("0", "1")
    assert supervised(*C, line(3), owners={"test": whole[:11]})(0)[1].owner("test").tolist() == [0, 1] * 5 + [0]
    held = supervised(C[0], None, line(3), clients=3, test_share=0.3)(1)[1]
    assert np.bincount(held.owner("test")).tolist() == [6, 6, 6]


def test_shares_held_out_are_of_all_training_samples():
    """Two clients with 30 samples each: half for validation, 12 for test, and 3 stay; by the client's keys."""
    data = supervised(C[0], None, line(3), clients=2, validation=0.5, test_share=0.4)(1)[1]
    for client, mine in enumerate(iid(LABELS[0], 2, 1).rows):
        mine = keyed(1, "validation", client).permutation(mine)
        rest = keyed(1, "test", client).permutation(np.sort(mine[15:]))
        for split, rows in (("validation", mine[:15]), ("test", rest[:12]), ("train", rest[12:])):
            inputs = data.splits[split][0][data.owner(split) == client]
            assert torch.equal(inputs, torch.from_numpy(X[np.sort(rows)]).float())
        assert data.histogram[client].tolist() == [(LABELS[0][rest[12:]] == c).sum() for c in range(3)]
    assert [np.bincount(data.owner(split)).tolist() for split in ("train", "test")] == [[3, 3], [12, 12]]


def test_a_trial_divides_no_samples_that_have_owners():
    parts = supervised(*CLASSIFICATION, line(3), owners={"train": np.repeat(["a", "b"], [20, 40])})
    for options in ({"partition": "iid"}, {"clients": 2}):
        task = {"name": parts} | options
        with pytest.raises(
            SettingError, match=r"^task\.owners: are not allowed beside clients or partition, which would"
        ):
            simulate({"task": task, "algorithm": "fedavg", "rounds": 1})
    assert parts(0, validation=0.5)[1].parts.sizes.tolist() == [10, 20]


def test_batch_norm_and_a_minibatch_of_one_sample():
    network = nn.Sequential(nn.Linear(3, 4), nn.BatchNorm1d(4), nn.Linear(4, 3))
    parts = supervised(*CLASSIFICATION, network, clients=4)  # 15 samples each
    message = "^task.model: cannot be trained on a minibatch of 1 samples, the smallest of client 0: .*Expected more"
    with pytest.raises(SettingError, match=message):
        one_round(parts, local={"epochs": 1, "batch_size": 7})
    assert one_round(parts, local={"epochs": 1, "batch_size": 7, "last_batch": "drop"}).diverged is None


@pytest.mark.parametrize(("arguments", "options", "message"), WRONG)
def test_parts_that_do_not_fit_are_refused(arguments, options, message):
    with pytest.raises(ValueError, match=f"^{message}"):
        supervised(*arguments, **options)(0)


def test_a_client_trains_on_a_sample_at_least():
    columns = torch.randn(5, 3), torch.tensor([0, 1, 1, 2, 0])
    parts = supervised(columns, None, line(3), owners={"train": np.array([0, 1, 1, 1, 1])}, validation=0.9)
    data = parts(0)[1]
    assert data.parts.sizes.tolist() == [1, 1]
    assert np.bincount(data.owner("validation"), minlength=2).tolist() == [0, 3]
