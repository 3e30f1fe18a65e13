"""What the table of an analysis must be."""

import numpy as np
import pandas as pd


def fault_of_table(table: pd.DataFrame) -> tuple[str, str] | None:
    """What a table must be, and what it is instead; None if it has numbers by different whole numbers in `round`."""
    names = ", ".join(map(str, table.columns))
    if "round" not in table.columns:
        return "a column `round`: what the analysis runs over", f"columns {names}"
    if len(table) == 0 or len(table.columns) < 2:
        return "a row, and a column besides `round`", f"{len(table)} rows of {names}"
    if not table.columns.is_unique:
        return "a name of its own for each column", f"columns {names}"
    text = [str(name) for name, dtype in table.dtypes.items() if dtype.kind not in "iufb"]
    if text:
        return "numbers in all columns", f"other values in {', '.join(text)}"
    rounds = table["round"].to_numpy()
    if not np.array_equal(rounds, np.round(rounds)) or len(np.unique(rounds)) < len(rounds):
        return "different whole numbers in `round`", str(rounds[:8].tolist())
    return None
