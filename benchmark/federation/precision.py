"""Numeric precision: what each value of `numerics.dtype` means to torch and to Lightning."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Literal

import torch


@dataclass(frozen=True)
class Precision:
    """One value of `numerics.dtype`.

    Attributes:
        dtype: of models, states and samples.
        lightning: the trainer's `precision`.
        products: see `torch.set_float32_matmul_precision`.
    """

    dtype: torch.dtype
    lightning: Literal["32-true", "64-true", "bf16-mixed"]
    products: str = "highest"


PRECISIONS = {
    "float32": Precision(torch.float32, "32-true"),
    "float64": Precision(torch.float64, "64-true"),
    "tf32": Precision(torch.float32, "32-true", products="high"),
    "bf16_mixed": Precision(torch.float32, "bf16-mixed"),
}


@contextmanager
def matrix_products(precision: str) -> Iterator[None]:
    """See `torch.set_float32_matmul_precision`. It applies to the whole process and is restored at the end."""
    before = torch.get_float32_matmul_precision()
    torch.set_float32_matmul_precision(precision)
    try:
        yield
    finally:
        torch.set_float32_matmul_precision(before)
