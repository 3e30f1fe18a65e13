"""Figures of results as Altair charts, which can be changed before they are saved.

`curves` draws an experiment, `save` writes a chart. Importing this package makes `rollcall` the theme of Altair.
"""

from rollcall.leaderboard.figures.board import board_chart
from rollcall.leaderboard.figures.numbers import orders_chart, printed_chart
from rollcall.leaderboard.figures.overall import overall_chart
from rollcall.leaderboard.figures.participation import autocorrelation, coupling, uplinks
from rollcall.leaderboard.figures.results import curves, paper_curves, ranking_curves
from rollcall.leaderboard.figures.search import best_so_far, sensitivity
from rollcall.leaderboard.figures.theme import FORMATS, save

__all__ = [
    "FORMATS",
    "autocorrelation",
    "best_so_far",
    "board_chart",
    "coupling",
    "curves",
    "orders_chart",
    "overall_chart",
    "paper_curves",
    "printed_chart",
    "ranking_curves",
    "save",
    "sensitivity",
    "uplinks",
]
