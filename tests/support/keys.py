"""Draws of a key, as `rollcall.tasks.streams` documents it, from NumPy and torch alone."""

from zlib import crc32

import numpy as np
import torch
from torch import nn


def keyed(seed, purpose, *key):
    """The generator of a key."""
    return np.random.default_rng([seed, crc32(purpose.encode()), *key])


def initial_layer(seed, inputs, outputs):
    """torch's linear layer, drawn by the key of initial models."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(int(keyed(seed, "init").integers(2**63)))
        return nn.Linear(inputs, outputs)
