"""An analysis: what an experiment computes where nothing is learnt, such as the law of a roll call."""

from functools import partial
from typing import Annotated, Any

from pydantic import Field, PlainValidator

from benchmark.config.base import validated
from benchmark.config.digest import Spec
from benchmark.config.registry import Choice, read


class Analysis(Spec):
    """A function of `benchmark.config.analyses` with its options, and a seed."""

    analysis: Annotated[Choice, PlainValidator(partial(read, "analysis"))]
    seed: int = Field(0, ge=0)

    @property
    def label(self) -> str:
        return self.analysis.label

    @property
    def rounds(self) -> int:
        """An analysis is made in one go."""
        return 1

    @classmethod
    def read(cls, given: dict[str, Any]) -> "Analysis":
        """Validate an analysis.

        Raises:
            SettingError: naming the field, the value and what is allowed.
        """
        return validated(cls, given)
