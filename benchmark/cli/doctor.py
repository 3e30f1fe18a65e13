"""`rollcall doctor`."""

from pathlib import Path
from typing import Annotated

import typer

from benchmark.cli.shared import STORE, Json, out
from benchmark.config.counted import counted
from benchmark.config.errors import SettingError
from benchmark.config.next_step import command


def doctor(
    store: Annotated[Path, typer.Argument(envvar="ROLLCALL_STORE", help="The store, or one run folder.")] = STORE,
    fix: Annotated[bool, typer.Option("--fix", help="Rename damaged files and folders to NAME.damaged.")] = False,
    as_json: Json = False,
) -> None:
    """Find damaged files in run folders, and a damaged mlflow.db, and set them aside with --fix.

    The exit code is 1 if damaged files are left. Nothing is deleted. Trials that run now are left alone.
    """
    from benchmark.federation import doctor as examination
    from benchmark.federation.run_files import run_folders
    from benchmark.sweep.mlflow_client import address
    from benchmark.sweep.mlflow_database import fault_of_database, file_of

    if not store.is_dir():
        raise SettingError(f"store: {str(store)!r} is not allowed; must be a folder")
    folders = run_folders(store, begun=False)
    findings = [finding for folder in folders for finding in examination.examine(folder)]
    database = file_of(address(store))
    fault = fault_of_database(database, whole=True) if database is not None and database.exists() else ""
    if database is not None and fault:
        findings.append(examination.Finding(database, fault, "rollcall sync makes it again from the run folders"))
    damaged = [finding for finding in findings if finding.aside]
    if as_json:
        print(examination.as_json(findings))
    for finding in () if as_json else findings:
        out.print(f"{finding.path}: {finding.problem}; {finding.advice}", markup=False, highlight=False, soft_wrap=True)
    for finding in damaged if fix else ():
        aside = examination.treat(finding)
        if not as_json:
            out.print(f"set aside: {aside}", markup=False, highlight=False, soft_wrap=True)
    if not as_json:
        out.print(f"{counted(len(folders), 'run folder')}, {len(damaged)} damaged", highlight=False)
        if damaged and not fix:
            line = f"To set them aside: {command('doctor', store, '--fix')}"
            out.print(line, highlight=False, markup=False, soft_wrap=True)
    raise typer.Exit(1 if damaged and not fix else 0)
