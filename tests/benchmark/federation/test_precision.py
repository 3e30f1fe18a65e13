"""`numerics.dtype`: each against float64, at the distance that its number of bits makes."""

import numpy as np
import pytest
import torch
from lightning.pytorch import Callback

from rollcall import SettingError, simulate

TRIAL = {
    "task": {"name": "digits", "clients": 4, "model": "mlp"},
    "algorithm": "fedavg",
    "local": {"steps": 3, "lr": 0.1, "batch_size": 16},
    "rounds": 3,
    "evaluation": {"every": 3},
}


class Products(Callback):
    """How precise products of matrices are during a trial."""

    def on_train_batch_end(self, *_):
        self.precision = torch.get_float32_matmul_precision()


def run(dtype, engine="sequential"):
    seen = Products()
    result = simulate(TRIAL | {"numerics": {"dtype": dtype, "engine": engine, "device": "cpu"}}, callbacks=[seen])
    return result.server, seen.precision


@pytest.mark.parametrize("engine", ["sequential", "vectorised"])
def test_rounding_is_that_of_the_bits(engine):
    exact, _ = run("float64", engine)
    singles, _ = run("float32", engine)
    halves, _ = run("bf16_mixed", engine)
    assert singles.dtype == halves.dtype == np.float32
    assert 1e-9 < np.linalg.norm(singles - exact) / np.linalg.norm(exact) < 1e-6
    assert 1e-6 < np.linalg.norm(halves - exact) / np.linalg.norm(exact) < 1e-2  # bfloat16 has eight bits


def test_tf32_holds_for_the_trial_only():
    before = torch.get_float32_matmul_precision()
    assert [run(dtype)[1] for dtype in ("tf32", "float32")] == ["high", "highest"]
    assert torch.get_float32_matmul_precision() == before


def test_other_names_are_refused():
    with pytest.raises(SettingError, match=r"numerics.dtype: 'float16' is not allowed; must be .*'bf16_mixed'"):
        run("float16")
