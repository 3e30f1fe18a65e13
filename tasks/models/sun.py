"""The networks of Debiased FedAvg ([Sun] section 6). Initialisation is PyTorch's default."""

from torch import Tensor, nn
from torch.nn.functional import batch_norm

from tasks.models.base import Shape, need_shape


class BatchNorm(nn.BatchNorm1d):
    """BatchNorm that accepts a minibatch of one sample.

    Such a minibatch has no variance. It is normalised with the running statistics, which do not change. PyTorch refuses
    it, but a client's epoch may end with one.
    """

    def forward(self, x: Tensor) -> Tensor:
        if self.training and len(x) == 1:
            return batch_norm(x, self.running_mean, self.running_var, self.weight, self.bias, eps=self.eps)
        return super().forward(x)


def sun_mnist(shape: Shape, classes: int) -> nn.Module:
    """Debiased FedAvg's MNIST network, three fully connected layers: 784-1568-392-classes (from the authors' code),
    BatchNorm and ReLU between; 1,853,778 parameters for ten classes.

    Raises:
        ValueError: inputs that are not [1, 28, 28].
    """
    need_shape("sun_mnist", shape, 1, 28, 28)
    return nn.Sequential(
        nn.Flatten(),
        nn.Linear(784, 1568),
        BatchNorm(1568),
        nn.ReLU(),
        nn.Linear(1568, 392),
        BatchNorm(392),
        nn.ReLU(),
        nn.Linear(392, classes),
    )


def sun_cifar10(shape: Shape, classes: int) -> nn.Module:
    """Debiased FedAvg's CIFAR-10 network, a "CNN with three convolution layers" in the paper.

    The paper says no more; the rest is our choice: 3x3 convolutions of 32, 64 and 64 channels with padding 1, each with
    ReLU and 2x2 pooling, then 1024-64-classes; 122,570 parameters for 3x32x32 inputs and ten classes.

    Raises:
        ValueError: inputs that are not [channels, 32, 32].
    """
    need_shape("sun_cifar10", shape, None, 32, 32)
    layers: list[nn.Module] = []
    for before, after in ((shape[0], 32), (32, 64), (64, 64)):
        layers += [nn.Conv2d(before, after, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2)]
    return nn.Sequential(*layers, nn.Flatten(), nn.Linear(1024, 64), nn.ReLU(), nn.Linear(64, classes))
