"""The quadratic problem of FedPBC ([PBC] Fig. 3), whose targets increase with the client number."""

import numpy as np

from tasks.base import ClientData
from tasks.quadratic import Quadratic, quadratic
from tasks.streams import stream


def fedpbc_quadratic(
    seed: int, *, clients: int = 100, dimension: int = 100, slope: float = 0.001, spread: float = 0.1
) -> tuple[Quadratic, ClientData]:
    """FedPBC's quadratics F_i = 0.5 ||x - u_i||^2 with u_i ~ N(slope i 1, spread^2 I), i from 1 ([PBC] Fig. 3).

    Args:
        seed: of the draw.
        clients: m, the number of clients.
        dimension: d, the number of parameters.
        slope: difference between the means of consecutive clients; 1/1000 in the paper.
        spread: standard deviation of a coordinate; its square is 0.01 in the paper.

    Raises:
        ValueError: an option out of range.
    """
    for name, count in (("clients", clients), ("dimension", dimension)):
        if count < 1:
            raise ValueError(f"{name}: {count} is not allowed; must be at least 1")
    if not 0 <= spread < np.inf:
        raise ValueError(f"spread: {spread} is not allowed; must be at least 0")
    i = np.arange(1, clients + 1)[:, None]
    draw = stream(seed, "fedpbc quadratic").standard_normal((clients, dimension))
    return quadratic(seed, targets=slope * i + spread * draw)
