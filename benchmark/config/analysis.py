"""An analysis: a computation without any training, such as the distribution of the active clients."""

from functools import partial
from typing import Annotated, Any

from pydantic import Field, PlainValidator

from benchmark.config.base import validated
from benchmark.config.digest import Spec
from benchmark.config.registry import Choice, read


class Analysis(Spec):
    """An analysis of `benchmark.config.analyses` with its options, and a seed."""

    analysis: Annotated[Choice, PlainValidator(partial(read, "analysis"))] = Field(
        description="the analysis, as its name or as a mapping of `name` and options"
    )
    seed: int = Field(0, ge=0, description="seed of all random draws")

    @property
    def label(self) -> str:
        return self.analysis.label

    @property
    def rounds(self) -> int:
        """1: an analysis has no rounds and is computed in one step."""
        return 1

    @classmethod
    def read(cls, spec: dict[str, Any]) -> "Analysis":
        """Validate an analysis.

        Raises:
            SettingError: names the field, the value and what is allowed.
        """
        return validated(cls, spec)
