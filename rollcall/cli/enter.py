"""`rollcall enter`: a method onto a board; `rollcall verify`: kept runs once more."""

from typing import Annotated

import typer

from rollcall.benchmark.config.experiment import label_of
from rollcall.benchmark.config.text import parse_part
from rollcall.cli import options as opt
from rollcall.cli.options import STORE, err, ray_options, say

DEFAULT = "standard/digits"


def enter(
    methods: Annotated[
        list[str], typer.Argument(metavar="FILE.py:CLASS...", help="Your method, or methods of the board.")
    ],
    board: Annotated[str, typer.Option(help="A board.")] = DEFAULT,
    space: Annotated[str, typer.Option(metavar="OPTION=DOMAIN", help="Option to search. Default: the class's.")] = "",
    executor: opt.Execution = None,
    store: opt.Store = STORE,
) -> None:
    """Tune and run a method as all others of a board, and print its rank; rerun to resume."""
    from rollcall.benchmark.search.board import Board
    from rollcall.benchmark.search.entry import Method, enter
    from rollcall.benchmark.sweep.pool import Pool

    chosen = Board.read(board)
    entrants = []
    for text in methods:
        algorithm = chosen.methods[text] if text in chosen.methods else parse_part("method", text)
        label = text if text in chosen.methods else label_of(algorithm)
        entrants.append(Method(label, algorithm, chosen.space(label, algorithm, space)))
    with Pool.of(executor, ray_options("0", 1, "2m", "", ""), err, mlflow=False) as pool:
        entries = enter(chosen, entrants, store, pool)
    for entry in entries:
        say(f"In {entry.write(store / chosen.name)}")
