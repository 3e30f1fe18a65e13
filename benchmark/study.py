"""A study: what an experiment computes where nothing is learnt, such as the law of a roll call."""

from functools import partial
from pathlib import Path
from typing import Annotated, Any

import torch
from pydantic import Field, PlainValidator

from benchmark.choices import Choice, read
from benchmark.folder import RunFolder
from benchmark.settings import validated
from benchmark.spec import Spec


class Study(Spec):
    """A function of `benchmark.studies` with its options, and a seed."""

    study: Annotated[Choice, PlainValidator(partial(read, "study"))]
    seed: int = Field(0, ge=0)

    @property
    def label(self) -> str:
        return self.study.label

    @property
    def rounds(self) -> int:
        """A study is made in one go."""
        return 1

    @classmethod
    def read(cls, given: dict[str, Any]) -> "Study":
        """Validate a study.

        Raises:
            SettingError: naming the field, the value and what is allowed.
        """
        return validated(cls, given)

    def conduct(self, folder: Path) -> None:
        """Compute it and write its run folder; `round` in its history is what the study runs over."""
        run = RunFolder(folder)
        if run.finished:
            return
        with run.running(self, device="cpu", threads=torch.get_num_threads()):
            (folder / "metrics.jsonl").unlink(missing_ok=True)  # of one that was stopped
            for row in self.study.build(self.seed).to_dict("records"):
                run.append({str(name): value for name, value in row.items()})
