"""An analysis: a computation without any training, such as the distribution of the active clients."""

from functools import partial
from typing import TYPE_CHECKING, Annotated

import numpy as np
from pydantic import Field, PlainValidator

from rollcall.benchmark.config.choice import Choice, read
from rollcall.benchmark.config.digest import Spec
from rollcall.benchmark.config.errors import SourceError
from rollcall.benchmark.config.source import definition

if TYPE_CHECKING:  # pandas takes long to import
    import pandas as pd


class Analysis(Spec):
    """An analysis with its options, and a seed."""

    analysis: Annotated[Choice, PlainValidator(partial(read, "analysis"))] = Field(
        description="the analysis, as its name or as a mapping of `name` and options"
    )
    seed: int = Field(0, ge=0, description="seed of all random draws")

    @property
    def rounds(self) -> int:
        """1: an analysis has no rounds and is computed in one step."""
        return 1

    def table(self) -> "pd.DataFrame":
        """Compute it: numbers by `round`, which is what it runs over.

        Raises:
            SourceError: the table is not that, of an analysis that is not the suite's.
        """
        table: pd.DataFrame = self.analysis.build(self.seed)
        if fault := fault_of_table(table):
            expected, seen = fault
            place = definition(self.analysis.factory) or self.label
            raise SourceError(f"{place}: the table of an analysis must have {expected}; it has {seen}")
        return table


def fault_of_table(table: "pd.DataFrame") -> tuple[str, str] | None:
    """The rule that a table breaks, and its content; None for a table of numbers by different whole numbers `round`."""
    names = ", ".join(map(str, table.columns))
    if "round" not in table.columns or len(table) == 0 or len(set(table.columns)) < max(2, len(table.columns)):
        return "a row, a column `round` and others of different names", f"{len(table)} rows of {names}"
    text = [str(name) for name, dtype in table.dtypes.items() if dtype.kind not in "iufb"]
    if text:
        return "numbers in all columns", f"other values in {', '.join(text)}"
    rounds = table["round"].to_numpy()
    if not np.array_equal(rounds, np.round(rounds)) or len(np.unique(rounds)) < len(rounds):
        return "different whole numbers in `round`", str(rounds[:8].tolist())
    return None
