"""Checks of analyses.

Each check takes the choice and returns a remark or nothing, or raises `CheckFailed`. Its docstring is its title.
"""

import pandas as pd

from benchmark.config.analysis import fault_of_table
from benchmark.config.choice import Choice
from benchmark.conformance.failure import CheckFailed
from benchmark.conformance.randomness import twice

SEED = 3


def numbers_by_round(choice: Choice) -> str:
    """a table of numbers with a column `round` of different whole numbers"""
    table: pd.DataFrame = choice.build(SEED)
    fault = fault_of_table(table)
    if fault is not None:
        raise CheckFailed(*fault)
    return f"{len(table)} rows of {', '.join(map(str, table.columns))}"


def same_table(choice: Choice) -> None:
    """the same seed gives the same table, without global random generators"""
    source = "stream(seed, PURPOSE) of tasks.streams"
    one, other = twice(lambda: choice.build(SEED), source)
    if not one.equals(other):
        raise CheckFailed(f"random numbers from {source}", "two tables of one seed differ")
