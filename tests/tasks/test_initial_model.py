"""The initial model is torch's, drawn by the key of the seed."""

import pytest
import torch
from keys import initial_layer
from torch import nn

from rollcall.tasks import digits, leaf_synthetic, supervised, synthetic_clustered, table
from rollcall.tasks.models import linear

ROWS = "site,x,y\n" + "".join(f"{'ab'[i % 2]},{i},{i % 3 % 2}\n" for i in range(40))
TASKS = {  # a function of the seed and a file, and the sizes of the layer
    "digits": (lambda seed, file: digits(seed, clients=2, model=linear), 64, 10),
    "leaf_synthetic": (lambda seed, file: leaf_synthetic(seed, clients=2), 60, 10),
    "synthetic_clustered": (lambda seed, file: synthetic_clustered(seed, clients=2), 10, 1),
    "supervised": (
        lambda seed, file: supervised((torch.eye(20), torch.ones(20)), None, lambda seed: nn.Linear(20, 1))(seed),
        *(20, 1),
    ),
    "table": (lambda seed, file: table(seed, file=file, label="y", client="site"), 1, 2),
}


@pytest.mark.parametrize("name", TASKS)
def test_the_initial_model_follows_the_seed_s_key(name, tmp_path):
    (tmp_path / "own.csv").write_text(ROWS)
    make, inputs, outputs = TASKS[name]
    for seed in (0, 5):
        layer = initial_layer(seed, inputs, outputs)
        made = list(make(seed, str(tmp_path / "own.csv"))[0].parameters())
        assert torch.equal(made[0], layer.weight)
        assert torch.equal(made[1], layer.bias)
