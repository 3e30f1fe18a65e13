"""`tune --write`: the answer of a search as overrides in the experiment's file."""

from collections.abc import Sequence
from pathlib import Path
from shutil import copymode
from tempfile import TemporaryDirectory

from benchmark.config.base import validated
from benchmark.config.errors import SettingError
from benchmark.config.experiment import Experiment, Override, file_of
from benchmark.config.text import dumped, parsed
from benchmark.federation.run_folder import replacing
from benchmark.search.answer import Tuned

BEGIN = "  # Chosen by `rollcall tune`; replaced by `rollcall tune --write`."
END = "  # End of what `rollcall tune` chose."


def write_overrides(name: str, tuned: Tuned) -> Path:
    """Add the overrides of a search to the file of an experiment, after the others, so that they have the last word.

    Overrides that an earlier search wrote are replaced where this one has an answer. All other text stays as it is.

    Args:
        name: of an experiment of the suite, or the path of a YAML file.
        tuned: the answer.

    Returns:
        the file.

    Raises:
        SettingError: the search was of a variant; or the file has no place for overrides, or is not valid with them. It
            is left as it was.
    """
    refuse_variant(tuned.variant)
    file = file_of(name)
    before = file.read_text(encoding="utf-8")
    content = parsed(before)
    if "base" in content and "overrides" not in content:
        raise SettingError(f"{file}: takes its overrides from {content['base']}; run tune --write on that experiment")
    try:
        overrides = tuned.overrides(Experiment.read(name))
        after = with_overrides(before, overrides)
        with TemporaryDirectory() as folder:
            candidate = Path(folder) / file.name
            candidate.write_text(after, encoding="utf-8")
            if Experiment.read(str(candidate)).overrides[-len(overrides) :] != overrides:
                raise SettingError("its overrides are not a plain list")
    except SettingError as error:
        raise SettingError(f"{file}: overrides cannot be added ({error}); copy them from tuned.yaml") from None
    with replacing(file.resolve()) as scratch:
        scratch.write_text(after, encoding="utf-8")
        copymode(file, scratch)
    return file


def refuse_variant(variant: str) -> None:
    """Refuse to write the answer for a variant: overrides of the file would also change the experiment itself.

    Raises:
        SettingError: there is a variant.
    """
    if variant:
        raise SettingError(
            f"--write is not allowed with --variant; use `rollcall run --variant {variant} --tuned FILE`, or copy the "
            f"settings from tuned.yaml to variants.{variant}.overrides"
        )


def with_overrides(text: str, overrides: Sequence[Override]) -> str:
    """The text of an experiment file with the overrides of a search at the end of its `overrides`.

    Raises:
        SettingError: the overrides of the file are written in one line.
    """
    lines = text.splitlines()
    marks = [row for row, line in enumerate(lines) if line.strip() in (BEGIN.strip(), END.strip())]
    earlier: list[Override] = []
    if len(marks) == 2:
        written = parsed("\n".join(lines[marks[0] : marks[1] + 1]))
        earlier = [validated(Override, one) for one in written]
        del lines[marks[0] : marks[1] + 1]
    kept = [one for one in earlier if not any(_covers(other, one) for other in overrides)]
    entries = [one.model_dump(mode="json") for one in (*kept, *overrides)]
    rows = dumped(entries, allow_unicode=True, width=120).splitlines()
    block = [BEGIN, *(f"  {row}" for row in rows), END]
    starts = [row for row, line in enumerate(lines) if line.split("#")[0].rstrip() in ("overrides:", "overrides: []")]
    if not starts and any(line.startswith("overrides:") for line in lines):
        raise SettingError("they must be a list with an entry a line")
    if not starts:
        return "\n".join([*lines, "overrides:", *block]) + "\n"
    lines[starts[0]] = "overrides:"
    end = starts[0] + 1
    while end < len(lines) and (not lines[end].strip() or lines[end].startswith((" ", "-", "#"))):
        end += 1
    while not lines[end - 1].strip() or lines[end - 1].startswith("#"):
        end -= 1
    if any(line.startswith("- ") for line in lines[starts[0] + 1 : end]):  # the list is not indented
        block = [line[2:] if line.startswith("  ") else line for line in block]
    return "\n".join(lines[:end] + block + lines[end:]) + "\n"


def _covers(one: Override, other: Override) -> bool:
    """Whether an override applies wherever another one does."""
    return all(axis in other.when and set(other.when[axis]) <= set(names) for axis, names in one.when.items())
