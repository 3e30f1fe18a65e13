"""The learnt buffers of a task; and metrics of images in pieces, for any number of threads."""

import pytest
import torch
from engine_rigs import Viewing
from torch import nn

from rollcall.benchmark.engines import Evaluator, FlatTask, float32_products, kernels_of_one_thread
from rollcall.tasks.images import Classification


def test_learnt_buffers_are_those_of_batchnorm_not_constants():
    """The mean and the deviation by which pixels are normalised are constants."""
    task = Classification(nn.Sequential(nn.Linear(2, 3), nn.BatchNorm1d(3)), (0.5,), (0.5,))
    names = ["network.1.running_mean", "network.1.running_var", "network.1.num_batches_tracked"]
    assert {"mean", "std"} < dict(task.named_buffers()).keys()
    assert FlatTask(task).buffer_names == names


PIECE_OF_8 = 16 * 64  # images of 8 x 8 instead of 32 x 32
N = 3 * PIECE_OF_8 + 17
PIXELS = torch.randint(0, 256, (N, 3, 8, 8), generator=torch.Generator().manual_seed(0)).to(torch.uint8)
LABELS = torch.arange(N) % 4


@pytest.mark.parametrize("flatten", [nn.Flatten, Viewing])
def test_images_in_pieces_are_measured_like_the_whole(flatten):
    torch.manual_seed(1)
    network = nn.Sequential(
        nn.Conv2d(3, 5, 3), nn.BatchNorm2d(5), nn.ReLU(), nn.MaxPool2d(2), flatten(), nn.Linear(45, 4)
    )
    task = Classification(network, (0.4, 0.5, 0.6), (0.2, 0.2, 0.3)).double().eval()
    with torch.no_grad():
        expected = task.metrics((PIXELS, LABELS))
    found = [Evaluator(task, workers).metrics((PIXELS, LABELS)) for workers in (1, 2, 3)]
    for name, values in expected.items():
        assert torch.allclose(found[0][name], values, rtol=0, atol=1e-12)
        assert all(torch.equal(found[0][name], other[name]) for other in found[1:])
    assert 0.1 < expected["accuracy"].mean() < 0.5


class Whole(Classification):
    """Its metrics are of a batch as a whole, no means over samples."""

    def metrics(self, batch):
        return {"n": torch.tensor(float(len(batch[0]))), "spread": batch[0].double().std()}


def test_metrics_of_a_whole_batch_of_images_are_not_means_over_pieces():
    task = Whole(nn.Sequential(nn.Flatten(), nn.Linear(192, 4)), (0.4, 0.5, 0.6), (0.2, 0.2, 0.3)).double().eval()
    assert Evaluator(task, 2).metrics((PIXELS, LABELS)) == task.metrics((PIXELS, LABELS))


def test_the_number_of_threads_is_restored():
    torch.set_num_threads(2)
    try:
        with kernels_of_one_thread() as allowed:
            assert (allowed, torch.get_num_threads()) == (2, 1)
        with pytest.raises(ZeroDivisionError), kernels_of_one_thread():
            _ = 1 / 0
        assert torch.get_num_threads() == 2
    finally:
        torch.set_num_threads(1)


@pytest.mark.skipif(not hasattr(torch.backends.cuda.matmul, "fp32_precision"), reason="a torch without this name")
def test_the_precision_that_the_caller_has_set_under_its_new_name_is_restored():
    products, plain = torch.backends.cuda.matmul, torch.get_float32_matmul_precision()
    products.fp32_precision = "tf32"
    try:
        with float32_products("highest"):
            assert products.fp32_precision == "ieee"
        assert products.fp32_precision == "tf32"
    finally:
        torch.set_float32_matmul_precision(plain)


def test_the_precision_of_products_is_restored():
    cudnn = torch.backends.cudnn
    before = torch.get_float32_matmul_precision(), cudnn.allow_tf32, cudnn.deterministic
    for precision, tf32 in (("highest", False), ("high", True)):
        with float32_products(precision):
            assert torch.get_float32_matmul_precision() == precision
            assert (cudnn.allow_tf32, cudnn.deterministic) == (tf32, True)
        assert (torch.get_float32_matmul_precision(), cudnn.allow_tf32, cudnn.deterministic) == before
