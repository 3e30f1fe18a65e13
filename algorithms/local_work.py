"""The clients of a round, as an algorithm calls them: gradients, losses and local SGD."""

from collections.abc import Iterator
from typing import Protocol, runtime_checkable

from jaxtyping import Float, Int
from torch import Tensor


@runtime_checkable
class LocalWork(Protocol):
    """The clients of one round, as the engine provides them. No method changes its arguments.

    Within a round, step k of client i always uses the same minibatch, however often it is computed.
    """

    @property
    def steps(self) -> int:
        """K, the number of local steps; the largest K_i if clients take different numbers of steps (epochs)."""
        ...

    def steps_of(self, clients: Int[Tensor, "a"]) -> Int[Tensor, "a"]:
        """K_i [a], the number of local steps of each client."""
        ...

    def gradients(
        self, clients: Int[Tensor, "a"], x: Float[Tensor, "a d"], step: int
    ) -> tuple[Float[Tensor, "a d"], Float[Tensor, "a"]]:
        """Minibatch gradients and losses at x. Gradients are not clipped.

        With the weight decay of SGD, weight_decay * x is added to the gradient but not to the loss, as in torch.

        Args:
            clients: [a], ids.
            x: [a, d], where each client computes its gradient.
            step: local step k, which selects the minibatch.
        """
        ...

    def losses(self, clients: Int[Tensor, "a"], x: Float[Tensor, "a d"], split: str) -> Float[Tensor, "a"]:
        """Mean loss [a] at x over all samples of a split that each client holds; NaN for a client without any.

        A method that uses these losses must assign a loss to such a client: `CAFed` gives it the others' mean.

        Raises:
            ValueError: the split does not exist, or its samples do not belong to clients.
        """
        ...

    def sgd(
        self,
        clients: Int[Tensor, "a"],
        start: Float[Tensor, "a d"],
        *,
        scale: Float[Tensor, "a"] | None = None,
        correct: Float[Tensor, "a d"] | None = None,
    ) -> Float[Tensor, "a d"]:
        """K_i steps of local SGD: y -= eta * scale_i * v with v = momentum * v + g_i(y) + correct_i.

        With another `local.optimizer`, K_i of its steps with g_i(y) + correct_i as gradient and eta * scale_i as
        learning rate. With `local.clip_norm`, g_i(y) is clipped first.

        Args:
            clients: [a], ids.
            start: [a, d], where each client starts.
            scale: [a], factor of each client's learning rate. Default: 1.
            correct: [a, d], added to each client's gradients. Default: 0.

        Returns:
            x_i(K) [a, d].
        """
        ...


def local_steps(
    clients: Int[Tensor, "a"], K: Int[Tensor, "a"]
) -> Iterator[tuple[int, Int[Tensor, "n"], slice | Int[Tensor, "n"]]]:
    """Iterate over the steps k = 0, 1, ... of clients that take K_i steps each.

    Yields:
        k, the ids of the clients that take this step [n], and their positions in `clients`.
    """
    if len(clients) == 0:
        return
    fewest, most = int(K.min()), int(K.max())
    for k in range(most):
        if k < fewest:
            yield k, clients, slice(None)
        else:
            rows = (k < K).nonzero().flatten()
            yield k, clients[rows], rows
