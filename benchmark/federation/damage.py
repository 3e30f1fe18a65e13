"""Damaged run folders: what is damaged in one, and setting it aside, for `rollcall doctor`."""

from contextlib import suppress
from itertools import count
from pathlib import Path
from typing import NamedTuple

from yaml import YAMLError

from rollcall.benchmark.config.text import parsed
from rollcall.benchmark.federation.faults import fault_of_checkpoint, fault_of_models
from rollcall.benchmark.federation.run_folder import ASIDE, Damaged, InUse, RunFolder


class Finding(NamedTuple):
    """A damaged file or folder, which must be set aside, and what happens then."""

    path: Path
    problem: str
    advice: str


def examine(folder: Path) -> list[Finding]:
    """What is damaged in a run folder; nothing in the folder of a trial that runs now."""
    return [] if RunFolder(folder).in_use else _findings(folder)


def set_aside(folder: Path) -> list[Path]:
    """Rename what is damaged in a run folder; returns the new paths. Nothing in the folder of a trial that runs now."""
    with suppress(InUse), RunFolder(folder).locked():  # a run may have begun or repaired it since it was examined
        return [renamed(finding.path) for finding in _findings(folder)]
    return []


def _findings(folder: Path) -> list[Finding]:
    """What is damaged in a run folder that no other process writes to."""
    run = RunFolder(folder)

    def lost(reason: str) -> list[Finding]:
        return [Finding(folder, f"metrics.jsonl: {reason}", "lost evaluations; the trial runs again from round 0")]

    findings, again = [], "the next run writes it again"
    for file in (run.status_file, run.metrics, run.settings, run.checkpoint, folder / "model.npz"):
        if file.is_dir():
            return [Finding(file, "a folder", "run the trial again")]
    try:
        run.rows()
    except Damaged as damage:
        return lost(damage.reason)
    try:
        is_mapping = not run.settings.exists() or isinstance(parsed(run.settings.read_text()), dict)
    except (YAMLError, ValueError):  # not YAML, a key twice, or not UTF-8
        is_mapping = False
    if not is_mapping:
        findings.append(Finding(run.settings, "not a YAML mapping", again))
    try:
        status = run.status
    except Damaged as damage:
        return [*findings, Finding(damage.file, damage.reason, again)]
    if is_mapping and run.settings.exists() and (fault := run.altered_settings()):
        findings.append(Finding(run.settings, fault, again))
    copies, model = folder / "source", folder / "model.npz"
    if is_mapping and run.settings.exists() and copies.exists() and (fault := run.altered_copies()):
        findings.append(Finding(copies, fault, again))
    if run.checkpoint.exists() and (fault := fault_of_checkpoint(run.checkpoint, status.get("digest", ""))):
        findings.append(Finding(run.checkpoint, fault, "the next run starts from round 0"))
    if fault := run.altered():
        return lost(fault)
    if "analysis" not in status.get("settings", {}):
        missing = "missing" if status.get("finished") else ""
        if fault := fault_of_models(model, status) if model.exists() else missing:
            said = "finished" if status.get("finished") else status.get("state")
            advice = "the next run continues from the checkpoint and writes both files again"
            findings.append(Finding(run.status_file, f"it says {said}, but model.npz is {fault}", advice))
    return findings


def renamed(path: Path) -> Path:
    """Rename a file or folder to NAME.damaged, with a number if there is one already; returns the new path."""
    names = (path.with_name(f"{path.name}{ASIDE}{number or ''}") for number in count())
    return path.rename(next(aside for aside in names if not aside.exists()))
