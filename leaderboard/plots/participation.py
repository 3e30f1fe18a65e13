"""Pictures of a roll call: who was on when, how probabilities are spread, what a minimum separation does to them."""

from collections.abc import Mapping

import numpy as np
from jaxtyping import Bool, Float
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from leaderboard.plots.curves import COLOURS


def uplinks(mask: Bool[np.ndarray, "T m"], probability: Float[np.ndarray, "T m"] | None, shown: int = 4) -> Figure:
    """Probabilities above, coloured blocks where uplinks are on below ([PBC] Fig. 6).

    Args:
        mask: whose uplink is on in which round.
        probability: p_i^t, if the model knows it.
        shown: clients, spread from the seldom to the often available.
    """
    T, m = mask.shape
    often = mask.mean(axis=0) if probability is None else probability.mean(axis=0)
    clients = np.argsort(often, kind="stable")[np.unique(np.linspace(0, m - 1, min(shown, m)).round().astype(int))]
    figure = Figure(figsize=(9, 1.2 + 1.1 * len(clients)), layout="constrained")
    rows = figure.subplots(len(clients), 1, sharex=True, squeeze=False)[:, 0]
    for index, (axes, client) in enumerate(zip(rows, clients, strict=True)):
        colour = COLOURS[index % len(COLOURS)]
        starts, lengths = _runs(mask[:, client])
        axes.broken_barh(list(zip(starts, lengths, strict=True)), (-0.45, 0.35), color=colour)
        if probability is not None:
            axes.step(
                np.arange(T + 1), np.append(probability[:, client], probability[-1, client]), where="post", color=colour
            )
        axes.set_ylim(-0.5, 1.05)
        axes.set_yticks([0, 1])
        axes.axhline(0, color="0.7", linewidth=0.6)
        axes.set_ylabel(f"client {client}", rotation=0, ha="right", va="center")
        axes.spines[["top", "right"]].set_visible(False)
    rows[-1].set_xlabel("round")
    rows[-1].set_xlim(0, T)
    rows[0].set_title(
        "probability (line) and uplink (blocks)" if probability is not None else "uplink (blocks)", fontsize=10
    )
    return figure


def probabilities(p: Float[np.ndarray, "m"]) -> Figure:
    """How the clients' probabilities are spread ([PBC] Fig. 4): a histogram, and the sorted values."""
    figure = Figure(figsize=(9, 3.4), layout="constrained")
    left, right = figure.subplots(1, 2)
    left.hist(p, bins=np.linspace(0, 1, 21), color=COLOURS[0], edgecolor="white")
    _label(left, "probability", "clients")
    right.step(np.arange(len(p)), np.sort(p), color=COLOURS[1], where="mid")
    right.set_ylim(0, 1.02)
    _label(right, "clients, by probability", "probability")
    return figure


def separation(distance: Mapping[int, float], mixing: Mapping[int, Float[np.ndarray, "T"]]) -> Figure:
    """What a minimum separation R does: how far its law is from uniform, and how fast it gets there ([Sun] Fig. 1, 5).

    Args:
        distance: ||pi_R - 1/M||_1 by R.
        mixing: TV(eta_R(t), pi_R) for t = 0, 1, ... by R.
    """
    figure = Figure(figsize=(9, 3.6), layout="constrained")
    left, right = figure.subplots(1, 2)
    left.plot(list(distance), list(distance.values()), color=COLOURS[0], marker="o", markersize=3)
    _label(left, "minimum separation R", "L1 distance of $\\pi_R$ to uniform")
    left.set_ylim(bottom=0)
    for index, (R, curve) in enumerate(mixing.items()):
        right.plot(curve, color=COLOURS[index % len(COLOURS)], label=f"R = {R}")
    _label(right, "round", "TV($\\eta_R(t)$, $\\pi_R$)")
    right.legend(frameon=False)
    return figure


def _runs(on: Bool[np.ndarray, "T"]) -> tuple[np.ndarray, np.ndarray]:
    """First rounds and lengths of the stretches in which a client is on."""
    edges = np.flatnonzero(np.diff(np.concatenate([[False], on, [False]]).astype(np.int8)))
    return edges[::2], edges[1::2] - edges[::2]


def _label(axes: Axes, x: str, y: str) -> None:
    axes.xaxis.set_major_locator(MaxNLocator(integer=x != "probability"))
    axes.set_xlabel(x)
    axes.set_ylabel(y)
    axes.spines[["top", "right"]].set_visible(False)
