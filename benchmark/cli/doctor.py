"""`rollcall doctor`."""

import json
from pathlib import Path
from typing import Annotated

import typer

from rollcall.benchmark.cli.shared import STORE, Json, out
from rollcall.benchmark.config.errors import SettingError
from rollcall.benchmark.config.text import command, counted


def doctor(
    store: Annotated[Path, typer.Argument(envvar="ROLLCALL_STORE", help="The store, or one run folder.")] = STORE,
    fix: Annotated[bool, typer.Option("--fix", help="Rename damaged files and folders to NAME.damaged.")] = False,
    as_json: Json = False,
) -> None:
    """Find damaged files in run folders, and a damaged mlflow.db, and set them aside with --fix.

    The exit code is 1 if damaged files are left. Nothing is deleted. Trials that run now are left alone.
    """
    from rollcall.benchmark.federation.doctor import Finding, examine
    from rollcall.benchmark.federation.run_folder import run_folders, set_aside
    from rollcall.benchmark.sweep.mlflow_client import address, fault_of_database, file_of

    def say(line: str) -> None:
        if not as_json:
            out.print(line, markup=False, highlight=False, soft_wrap=True)

    if not store.is_dir():
        raise SettingError(f"store: {str(store)!r} is not allowed; must be a folder")
    folders = run_folders(store, begun=False)
    findings = [finding for folder in folders for finding in examine(folder)]
    database = file_of(address(store))
    fault = fault_of_database(database, whole=True) if database is not None and database.exists() else ""
    if database is not None and fault:
        findings.append(Finding(database, fault, "rollcall sync makes it again from the run folders"))
    damaged = [finding for finding in findings if finding.aside]
    if as_json:
        print(json.dumps([vars(finding) | {"path": str(finding.path)} for finding in findings], indent=1))
    for finding in findings:
        say(f"{finding.path}: {finding.problem}; {finding.advice}")
    for finding in damaged if fix else ():
        say(f"set aside: {set_aside(finding.path)}")
    say(f"{counted(len(folders), 'run folder')}, {len(damaged)} damaged")
    if damaged and not fix:
        say(f"To set them aside: {command('doctor', store, '--fix')}")
    raise typer.Exit(1 if damaged and not fix else 0)
