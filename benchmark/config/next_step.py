"""Commands in messages, to be copied to a shell."""

import os
import shlex
from pathlib import Path
from typing import Any


def command(*words: Any, store: Path | None = None) -> str:
    """`rollcall WORD ...`, quoted for a shell.

    Args:
        words: the command, its arguments and options.
        store: the store that the command needs; `--store` is left out for the one that it takes without the option.
    """
    parts = ["rollcall", *map(str, words)]
    if store is not None and store != Path(os.environ.get("ROLLCALL_STORE", "runs")):
        parts += ["--store", str(store)]
    return shlex.join(parts)


def repeated(option: str, values: list[str] | None) -> list[str]:
    """An option of a command with each of its values, as words: `--set a=1 --set b=2`."""
    return [word for value in values or [] for word in (option, value)]
