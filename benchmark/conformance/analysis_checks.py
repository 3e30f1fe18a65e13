"""Checks of analyses.

Each check takes the choice and returns a remark or nothing, or raises `CheckFailed`. Its docstring is its title.
"""

import numpy as np
import pandas as pd

from benchmark.config.registry import Choice
from benchmark.conformance.failure import CheckFailed
from benchmark.conformance.randomness import twice

SEED = 3


def numbers_by_round(choice: Choice) -> str:
    """a table of numbers with a column `round` of different whole numbers"""
    table: pd.DataFrame = choice.build(SEED)
    if "round" not in table.columns:
        raise CheckFailed("a column `round`: what the analysis runs over", f"columns {_names(table)}")
    if len(table) == 0 or len(table.columns) < 2:
        raise CheckFailed("a row, and a column besides `round`", f"{len(table)} rows of {_names(table)}")
    text = [str(name) for name in table.columns if table[name].dtype.kind not in "iufb"]
    if text:
        raise CheckFailed("numbers in all columns", f"other values in {', '.join(text)}")
    rounds = table["round"].to_numpy()
    if not np.array_equal(rounds, np.round(rounds)) or len(np.unique(rounds)) < len(rounds):
        raise CheckFailed("different whole numbers in `round`", str(rounds[:8].tolist()))
    return f"{len(table)} rows of {_names(table)}"


def same_table(choice: Choice) -> None:
    """the same seed gives the same table, without global random generators"""
    source = "stream(seed, PURPOSE) of tasks.streams"
    one, other = twice(lambda: choice.build(SEED), source)
    if not one.equals(other):
        raise CheckFailed(f"random numbers from {source}", "two tables of one seed differ")


def _names(table: pd.DataFrame) -> str:
    return ", ".join(map(str, table.columns))
