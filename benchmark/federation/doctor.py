"""What is wrong with run folders, and setting damaged files aside."""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from yaml import YAMLError

from benchmark.config.base import validated
from benchmark.config.text import parsed
from benchmark.config.trial import Evaluation
from benchmark.federation.run_files import Damaged, fault_of_archive, read_rows, read_status, set_aside
from benchmark.federation.run_lock import is_running


@dataclass(frozen=True)
class Finding:
    """Something that is wrong with a run folder.

    Attributes:
        path: the file or folder.
        problem: what is wrong.
        advice: what happens next.
        aside: whether the path must be set aside; otherwise nothing needs to be done to it.
    """

    path: Path
    problem: str
    advice: str
    aside: bool = True


def examine(folder: Path) -> list[Finding]:
    """The findings of a run folder. A folder whose trial is running now has none."""
    if is_running(folder):
        return []
    try:
        rows = [int(row["round"]) for row in read_rows(folder / "metrics.jsonl")]
    except Damaged as damage:
        return [
            Finding(folder, f"metrics.jsonl: {damage.reason}", "lost evaluations; the trial runs again from round 0")
        ]
    findings = list(_files(folder))
    if any(finding.path.name == "status.json" for finding in findings):
        return findings
    status = read_status(folder / "status.json")
    finished = int(status.get("finished", 0))
    if finished and max(rows, default=0) < finished and not _is_analysis(folder):
        missing = f"evaluations end at round {max(rows, default=0)} of {finished}"
        return [Finding(folder, f"metrics.jsonl: {missing}", "lost evaluations; the trial runs again from round 0")]
    lost = [] if _is_analysis(folder) else _lost(folder, rows)
    if lost:
        missing = f"the evaluation after round {lost[0]} is missing" + (
            f", and {len(lost) - 1} more" if lost[1:] else ""
        )
        return [Finding(folder, f"metrics.jsonl: {missing}", "lost evaluations; the trial runs again from round 0")]
    model = folder / "model.npz"
    fault = fault_of_archive(model) if model.exists() else "missing"
    if finished and fault and not _is_analysis(folder):
        advice = "the next run continues from the checkpoint and writes both files again"
        findings.append(Finding(folder / "status.json", f"it says finished, but model.npz is {fault}", advice))
    if status.get("state") == "running":
        findings.append(Finding(folder, "its process died", "the next run resumes it", aside=False))
    return findings


def treat(finding: Finding) -> Path:
    """Set a damaged file or folder aside.

    Returns:
        its new path.
    """
    return set_aside(finding.path)


def _files(folder: Path) -> Iterator[Finding]:
    """Files that cannot be read, apart from metrics.jsonl."""
    try:
        read_status(folder / "status.json")
    except Damaged as damage:
        yield Finding(damage.file, damage.reason, "the next run writes it again")
    settings = folder / "trial.yaml"
    if settings.exists() and not _is_mapping(settings):
        yield Finding(settings, "not a YAML mapping", "the next run writes it again")
    for name, advice in (
        ("last.ckpt", "the next run resumes from previous.ckpt, or from round 0 without one"),
        ("previous.ckpt", "the next run resumes from last.ckpt, or from round 0 without one"),
    ):
        file = folder / name
        fault = fault_of_archive(file) if file.exists() else ""
        if fault:
            yield Finding(file, fault, advice)


def _is_mapping(file: Path) -> bool:
    try:
        return isinstance(parsed(file.read_text()), dict)
    except (YAMLError, ValueError):  # not YAML, a key twice, or not UTF-8
        return False


def _is_analysis(folder: Path) -> bool:
    """Whether the folder holds an analysis, which has no rounds, checkpoints and models."""
    settings = folder / "trial.yaml"
    return settings.exists() and _is_mapping(settings) and "analysis" in parsed(settings.read_text())


def _lost(folder: Path, rows: list[int]) -> list[int]:
    """The rounds before the last row that have no row and should; none if the settings cannot be read."""
    try:
        settings = parsed((folder / "trial.yaml").read_text())
        evaluation, rounds = validated(Evaluation, settings["evaluation"]), int(settings["rounds"])
    except (OSError, ValueError, KeyError, TypeError, YAMLError):  # damaged, or of an earlier version
        return []
    return sorted({t for t in range(max(rows, default=0)) if evaluation.due(t, rounds)} - set(rows))


def as_json(findings: list[Finding]) -> str:
    """The findings as a JSON list."""
    return json.dumps([vars(finding) | {"path": str(finding.path)} for finding in findings], indent=1)
