"""Types of hyper-parameters, with the values that an experiment file may give them."""

from typing import Annotated, TypeAlias

from annotated_types import Ge, Gt, Le

Count: TypeAlias = Annotated[int, Ge(1)]
Rounds: TypeAlias = Annotated[int, Ge(0)]
Positive: TypeAlias = Annotated[float, Gt(0)]
NonNegative: TypeAlias = Annotated[float, Ge(0)]
Fraction: TypeAlias = Annotated[float, Gt(0), Le(1)]
