"""The data set that is shipped with scikit-learn."""

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch

from tasks.datasets.source import Archive, Source, Split


@dataclass(frozen=True)
class Digits(Source):
    """scikit-learn's digits, with a fixed fifth as the test split."""

    def files(self, root: Path) -> dict[str, str | None]:
        return {}

    def archives(self) -> tuple[Archive, ...]:
        return ()

    def read(self, root: Path) -> dict[str, Split]:
        from sklearn.datasets import load_digits
        from sklearn.model_selection import train_test_split

        bunch = load_digits()
        # The pixels are 0..16. As bytes they have the same scale as those of the other data sets.
        pixels = torch.from_numpy((bunch.images * (255 / 16)).round().astype(np.uint8)[:, None])
        labels = torch.from_numpy(bunch.target.astype(np.int64))
        train, test = train_test_split(np.arange(len(labels)), test_size=0.2, stratify=bunch.target, random_state=0)
        return {"train": (pixels[train], labels[train]), "test": (pixels[test], labels[test])}
