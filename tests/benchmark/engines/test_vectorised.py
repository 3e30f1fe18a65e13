"""The vectorised engine against the sequential one, which has tests of its own."""

import numpy as np
import pytest
import torch
from engine_rigs import CROP, STEPS, WRAPS, Normalising, Peeking, Standardising, rigs
from torch.utils._python_dispatch import TorchDispatchMode

from rollcall import SettingError, simulate
from rollcall.algorithms import ALGORITHMS, LocalWork


@pytest.mark.parametrize("wrap", WRAPS)
@pytest.mark.parametrize("batch_size", [16, "full"])
@pytest.mark.parametrize(("scaled", "corrected"), [(False, False), (True, False), (False, True), (True, True)])
def test_sgd(wrap, batch_size, scaled, corrected):
    sequential, vectorised, x = rigs(batch_size, wrap=WRAPS[wrap])
    assert isinstance(vectorised, LocalWork)
    clients = torch.tensor([4, 0, 1, 5, 3])
    draw = torch.Generator().manual_seed(1)
    start = x + 0.1 * torch.randn(5, len(x), generator=draw, dtype=torch.float64)
    options = {}
    if scaled:
        options["scale"] = torch.tensor([0.5, 3.0, 1.5, 0.0, -1.0], dtype=torch.float64)
    if corrected:
        options["correct"] = 0.01 * torch.randn(start.shape, generator=draw, dtype=torch.float64)
    given = start.clone()
    ends, expected = (work.sgd(clients, start, **options) for work in (vectorised, sequential))
    assert torch.equal(start, given)
    assert (ends - expected).abs().max() < 1e-10
    assert (ends - start)[:3].abs().amax(dim=1).min() > 1e-2
    for one, other in zip(vectorised.buffers(clients[:3]), sequential.buffers(clients[:3]), strict=True):
        assert torch.allclose(one, other, rtol=0, atol=1e-10)


@pytest.mark.parametrize("wrap", WRAPS)
@pytest.mark.parametrize("batch_size", [16, 3, "full"])
def test_gradients_and_losses(wrap, batch_size):
    sequential, vectorised, x = rigs(batch_size, wrap=WRAPS[wrap])
    clients = torch.tensor([1, 4, 5])
    at = x + torch.tensor([[0.0], [0.1], [-0.1]], dtype=torch.float64)
    for step in (2, 0):
        gradients, losses = vectorised.gradients(clients, at, step)
        expected, expected_losses = sequential.gradients(clients, at, step)
        assert (gradients - expected).abs().max() < 1e-10
        assert (losses - expected_losses).abs().max() < 1e-10
        assert expected.abs().amax(dim=1).min() > 1e-2


@pytest.mark.parametrize("wrap", WRAPS)
def test_memory_decides_only_how_many_are_computed_at_once(wrap):
    _, roomy, x = rigs(wrap=WRAPS[wrap])
    engine = roomy.engine
    each = engine.chunk_size.bytes_per_client + 16 * (
        engine.chunk_size.bytes_per_sample + STEPS * engine.chunk_size.bytes_per_step_sample
    )
    clients, draw = torch.arange(6), torch.Generator().manual_seed(2)
    start, correct = x + 0.1 * torch.randn(2, 6, len(x), generator=draw, dtype=torch.float64)
    options = {"scale": torch.linspace(0.5, 2.0, 6, dtype=torch.float64), "correct": correct - x}
    whole = roomy.sgd(clients, start, **options)
    assert len(list(roomy._chunks(clients, STEPS))) == 1
    for fitting, parts in ((2, 3), (4, 2), (0, 6)):
        _, tight, _ = rigs(wrap=WRAPS[wrap], memory=fitting * each)
        assert len(list(tight._chunks(clients, STEPS))) == parts
        assert (tight.sgd(clients, start, **options) - whole).abs().max() < 1e-12
        gradients, losses = tight.gradients(clients, start, 1)
        expected, expected_losses = roomy.gradients(clients, start, 1)
        assert (gradients - expected).abs().max() < 1e-12
        assert (losses - expected_losses).abs().max() < 1e-12


def test_nobody_is_a_valid_set_of_clients():
    for wrap in WRAPS.values():
        _, work, x = rigs(wrap=wrap)
        nobody = torch.empty(0, dtype=torch.int64)
        assert work.sgd(nobody, x.expand(0, -1)).shape == (0, len(x))
        gradients, losses = work.gradients(nobody, x.expand(0, -1), 0)
        assert gradients.shape == (0, len(x))
        assert losses.shape == (0,)
        assert not work.buffers(nobody)


def test_a_loss_whose_samples_depend_on_each_other_is_not_padded():
    sequential, vectorised, x = rigs(wrap=Standardising, batch_size=16)
    clients = torch.tensor([1, 2, 4])
    ends, expected = (work.sgd(clients, x.expand(3, -1)) for work in (vectorised, sequential))
    assert (ends - expected).abs().max() < 1e-10


def test_what_cannot_be_vectorised_is_refused_in_time():
    for wrap in (lambda task: Normalising(task, dropout=0.5), Peeking):
        with pytest.raises(SettingError, match=r"numerics.engine: 'vectorised' is not allowed .*; must be sequential"):
            rigs(wrap=wrap)


class Waits(TorchDispatchMode):
    """Counts what makes a host wait for a GPU: values that Python reads, and shapes that depend on values."""

    WAITING = ("_local_scalar_dense", "nonzero", "masked_select", "unique", "equal", "is_nonzero")

    def __init__(self):
        super().__init__()
        self.count = 0

    def __torch_dispatch__(self, operator, types, arguments=(), options=None):
        self.count += operator.__name__.partition(".")[0].lstrip("_") in {name.lstrip("_") for name in self.WAITING}
        return operator(*arguments, **(options or {}))


@pytest.mark.parametrize("wrap", WRAPS)
def test_the_host_reads_nothing_but_who_is_asked(wrap, monkeypatch):
    _, work, x = rigs(wrap=WRAPS[wrap])
    clients, read = torch.arange(6), []
    tolist = torch.Tensor.tolist
    monkeypatch.setattr(torch.Tensor, "tolist", lambda tensor: read.append(tensor) or tolist(tensor))
    with Waits() as waits:
        work.sgd(clients, x.expand(6, -1), scale=torch.ones(6, dtype=torch.float64))
        for step in range(STEPS):
            work.gradients(clients, x.expand(6, -1), step)
        work.buffers(clients)
        assert waits.count == 0
        clients[0].item()
        assert waits.count == 1  # it would have been seen
    assert len(read) == 1
    assert read[0] is clients


MASK = np.array([[1, 0, 1, 1, 0, 1], [0, 0, 0, 0, 0, 0], [0, 1, 1, 0, 0, 1], [1, 1, 1, 1, 1, 1]])
TRIAL = {
    "task": {
        "name": "digits",
        "clients": 6,
        "partition": {"name": "dirichlet", "alpha": 0.3},
        "augmentation": CROP,
        "model": {"name": "mlp", "hidden": [8]},
    },
    "participation": {
        "name": "trace",
        "mask": MASK,
        "probability": np.linspace(0.3, 0.9, 6),
        "stationary": np.linspace(0.3, 0.9, 6),
        "correlation": np.linspace(0.1, 0.5, 6),
    },
    "local": {"steps": 5, "lr": 0.05, "batch_size": 32},
    "rounds": 4,
    "evaluation": {"every": 1},
}


@pytest.mark.parametrize("name", ALGORITHMS)
def test_engines_are_equal_for_every_method(name):
    one_step = name in ("fedsgd", "fedsgd_iw")
    trial = TRIAL | {"algorithm": name, "local": TRIAL["local"] | ({"steps": 1} if one_step else {})}
    sequential, vectorised = (
        simulate(trial | {"numerics": {"dtype": "float64", "engine": engine}})
        for engine in ("sequential", "vectorised")
    )
    moved = np.abs(sequential.server - simulate(trial | {"rounds": 1, "local": trial["local"] | {"lr": 1e-12}}).server)
    assert moved.max() > 1e-3
    assert np.abs(vectorised.model - sequential.model).max() < 1e-10
    assert np.abs(vectorised.server - sequential.server).max() < 1e-10
    assert np.allclose(vectorised.history, sequential.history, rtol=0, atol=1e-10)
    assert vectorised.history.columns.equals(sequential.history.columns)


def test_engines_learn_the_same_in_float32():
    trial = TRIAL | {
        "task": {"name": "digits", "clients": 6, "partition": TRIAL["task"]["partition"], "augmentation": CROP},
        "participation": {"name": "bernoulli", "probability": 0.5},
        "algorithm": "fedavg",
        "local": {"steps": 5, "lr": 0.1, "batch_size": 16},
        "rounds": 50,
        "evaluation": {"every": 5, "splits": ["test"]},
    }
    sequential, vectorised = (
        simulate(trial | {"numerics": {"engine": engine}}).history["test/accuracy"]
        for engine in ("sequential", "vectorised")
    )
    assert sequential.max() > 0.5
    assert np.abs(vectorised - sequential).max() <= 0.01
