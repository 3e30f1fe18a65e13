"""Which clients CA-Fed leaves out, in every round ([CAF] Fig. 5 a to c)."""

from typing import Any, Literal

import numpy as np
import pandas as pd
from jaxtyping import Bool, Num
from lightning.pytorch import Callback

from rollcall.benchmark.federation.simulation import simulate
from rollcall.tasks.partitions import Parts, dirichlet_by_class
from rollcall.tasks.streams import stream

CLUSTERS = 10
"""c = 0 to 4 are often available, with lambda = 0; c = 5 to 9 rarely, with lambda = c/10."""


def decisions(
    seed: int,
    *,
    distributions: Literal["alike", "clusters", "clients"],
    algorithm: dict[str, Any],
    rounds: int = 100,
    task: str = "mnist",
) -> pd.DataFrame:
    """Share of the pixels of Fig. 5 in which CA-Fed leaves out the client, active or not; an analysis.

    A pixel is a client in a round. Columns: `left_out/often`, over clusters 0 to 4; `left_out/5` to `left_out/9`;
    `least_of_6_to_9`, the smallest share of these clusters; `rare`, the part of clusters 5 to 9 in all pixels in which
    a client is left out (1 if there is none).

    Args:
        seed: of all draws.
        distributions: of the clients' data: all `alike`; different between `clusters`, alike within; or different
            between `clients`, within clusters, too. Different ones are Dirichlet 0.5 for each class.
        algorithm: options of CA-Fed.
        rounds: T.
        task: a data set of images.
    """
    partitions: dict[str, Any] = {"alike": "iid", "clusters": by_cluster}
    trial = {
        "task": {
            "name": task,
            "clients": 100,
            "model": "linear",
            "ridge": 0.01,
            "validation": 0.2,
            "partition": partitions.get(distributions, {"name": "dirichlet_by_class", "alpha": 0.5}),
        },
        "participation": "clustered_markov",
        "target": "samples",
        "algorithm": {"name": "ca_fed"} | algorithm,
        "local": {"steps": 5, "batch_size": 64, "lr": 0.1},
        "rounds": rounds,
        "seed": seed,
        "evaluation": {"every": rounds, "splits": ["test"]},
    }
    recorded = Decisions()
    simulate(trial, callbacks=[recorded])
    return summary(np.array(recorded.left_out))


class Decisions(Callback):
    """Records after each round whether each client is left out."""

    def __init__(self) -> None:
        self.left_out: list[np.ndarray] = []

    def on_train_batch_end(self, trainer: Any, federation: Any, *_: Any) -> None:
        self.left_out.append(federation.state.get().q.numpy(force=True) == 0)


def summary(left_out: Bool[np.ndarray, "t m"]) -> pd.DataFrame:
    """The table of `decisions`. Clusters are contiguous."""
    share = left_out.mean(axis=0).reshape(CLUSTERS, -1).mean(axis=1)
    row = {"left_out/often": share[:5].mean()} | {f"left_out/{c}": share[c] for c in range(5, CLUSTERS)}
    row["least_of_6_to_9"] = share[6:].min()
    row["rare"] = share[5:].sum() / share.sum() if share.any() else 1.0
    return pd.DataFrame({"round": [0]} | {name: [value] for name, value in row.items()})


def by_cluster(labels: Num[np.ndarray, "n"], clients: int, seed: int) -> Parts:
    """Each class is divided among the clusters by Dirichlet(0.5), and each cluster's samples among its clients."""
    clusters = dirichlet_by_class(labels, CLUSTERS, seed, alpha=0.5)
    draw, each = stream(seed, "partition", 1), clients // CLUSTERS
    rows = [part for mine in clusters.rows for part in np.array_split(draw.permutation(mine), each)]
    return Parts(rows, clusters.classes.repeat(each, axis=0))
