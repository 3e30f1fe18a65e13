"""The faults of a run folder."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from yaml import YAMLError

from rollcall.benchmark.config.text import parsed
from rollcall.benchmark.federation.run_folder import Damaged, RunFolder, fault_of_archive, fault_of_checkpoint


@dataclass(frozen=True)
class Finding:
    """A fault of a file or folder, the next step, and whether the path must be set aside."""

    path: Path
    problem: str
    advice: str
    aside: bool = True


def examine(folder: Path) -> list[Finding]:
    """The findings of a run folder. A folder whose trial is running now has none."""
    run = RunFolder(folder)
    if run.in_use:
        return []

    def lost(reason: str) -> list[Finding]:
        return [Finding(folder, f"metrics.jsonl: {reason}", "lost evaluations; the trial runs again from round 0")]

    try:
        last = max((int(row["round"]) for row in run.rows()), default=0)
    except Damaged as damage:
        return lost(damage.reason)
    findings, settings, status = [], _settings(folder), None
    try:
        status = run.status
    except Damaged as damage:
        findings.append(Finding(damage.file, damage.reason, "the next run writes it again"))
    if settings is None:
        findings.append(Finding(folder / "trial.yaml", "not a YAML mapping", "the next run writes it again"))
    for file, other in ((run.checkpoint, run.previous_checkpoint), (run.previous_checkpoint, run.checkpoint)):
        fault = fault_of_checkpoint(file) if file.exists() else ""
        if fault:
            advice = f"the next run resumes from {other.name}, or from round 0 without one"
            findings.append(Finding(file, fault, advice))
    lock = folder / "lock"
    if lock.is_dir():
        findings.append(Finding(lock, "a folder in the place of a file", "the next run writes it again"))
    if status is None:
        return findings
    altered = run.altered()
    if run.metrics in altered:
        return lost(altered[run.metrics])
    if settings is not None and run.settings in altered:
        is_there = run.settings.exists()
        findings.append(Finding(run.settings, altered[run.settings], "the next run writes it again", aside=is_there))
    finished = int(status.get("finished", 0))
    if "analysis" not in (settings or {}):  # an analysis has no rounds, checkpoints and models
        if last < finished:
            return lost(f"evaluations end at round {last} of {finished}")
        model = folder / "model.npz"
        fault = fault_of_archive(model) if model.exists() else "missing"
        if finished and fault:
            advice = "the next run continues from the checkpoint and writes both files again"
            findings.append(Finding(folder / "status.json", f"it says finished, but model.npz is {fault}", advice))
    if status.get("state") == "running":
        findings.append(Finding(folder, "its process died", "the next run resumes it", aside=False))
    return findings


def _settings(folder: Path) -> dict[str, Any] | None:
    """The content of trial.yaml; empty without such a file, None if it has no mapping."""
    file = folder / "trial.yaml"
    try:
        settings = parsed(file.read_text()) if file.exists() else {}
    except (YAMLError, ValueError):  # not YAML, a key twice, or not UTF-8
        return None
    return settings if isinstance(settings, dict) else None
