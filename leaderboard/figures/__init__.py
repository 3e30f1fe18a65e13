"""Figures of results as Altair charts, which can be changed before they are saved.

`curves` draws an experiment, `save` writes a chart. Importing this package makes `rollcall` the theme of Altair.
"""

from rollcall.leaderboard.figures.intervals import board_chart as board_chart
from rollcall.leaderboard.figures.intervals import orders_chart as orders_chart
from rollcall.leaderboard.figures.intervals import overall_chart as overall_chart
from rollcall.leaderboard.figures.intervals import printed_chart as printed_chart
from rollcall.leaderboard.figures.others import searched as searched
from rollcall.leaderboard.figures.others import uplinks as uplinks
from rollcall.leaderboard.figures.results import curves as curves
from rollcall.leaderboard.figures.results import paper_curves as paper_curves
from rollcall.leaderboard.figures.results import ranking_curves as ranking_curves
from rollcall.leaderboard.figures.theme import FORMATS as FORMATS
from rollcall.leaderboard.figures.theme import save as save
