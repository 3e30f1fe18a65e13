"""Run folders on a storage that all machines of a cluster reach, for clusters whose machines share no disk.

A machine fetches the run folder of its trial to its own disk and runs it there. It puts the folder back at every
checkpoint and at the end. The driver fetches it into its store when the trial has ended.

Files are replaced one by one: first the evaluations, then the checkpoint, last the status. So if a process is killed
while it copies, the last good checkpoint is there with all evaluations before it.
"""

from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pyarrow
from pyarrow.fs import FileSelector, FileSystem, FileType, LocalFileSystem, copy_files

from benchmark.config.analysis import Analysis
from benchmark.config.errors import SettingError
from benchmark.config.trial import Trial
from benchmark.federation.run_folder import RunFolder
from benchmark.sweep.jobs import Job, Outcome, carry_out

STAYS = ("lock", "previous.ckpt")
"""Files that are not copied. The storage needs no earlier checkpoint, because the last one is replaced as a whole."""

FIRST = ("metrics.jsonl", "last.ckpt")
LAST = "status.json"

Stamp = tuple[int, int]


@dataclass(frozen=True)
class Folder:
    """A folder of a file system.

    Attributes:
        system: the file system.
        path: in it.
    """

    system: FileSystem
    path: str

    @classmethod
    def local(cls, path: Path) -> "Folder":
        return cls(LocalFileSystem(), str(path))

    def files(self) -> dict[str, Stamp]:
        """The files to copy, in subfolders too, each with its time of change and size; none if there is no folder."""
        infos = self.system.get_file_info(FileSelector(self.path, allow_not_found=True, recursive=True))
        prefix = f"{self.path.rstrip('/')}/"
        files = {info.path.removeprefix(prefix): info for info in infos if info.type == FileType.File}
        return {
            name: (info.mtime_ns or 0, info.size)
            for name, info in files.items()
            if name not in STAYS and not name.endswith(".new")
        }

    def take(self, name: str, source: "Folder") -> None:
        """Replace a file by that of another folder, as a whole."""
        file = f"{self.path}/{name}"
        self.system.create_dir(file.rpartition("/")[0])
        copy_files(f"{source.path}/{name}", f"{file}.new", source.system, self.system, use_threads=False)
        self.system.move(f"{file}.new", file)


@dataclass
class Copier:
    """Makes a folder a copy of another one. A further call copies what has changed since the last.

    Attributes:
        source, target: the folders.
        copied: the files that were copied.
    """

    source: Folder
    target: Folder
    copied: dict[str, Stamp] = field(default_factory=dict)

    def __call__(self) -> None:
        while (files := self.source.files()) != self.copied:  # until nothing has changed during the copy
            for name in sorted(files, key=_order):
                if self.copied.get(name) != files[name]:
                    self.target.take(name, self.source)
            self.copied = files
        for name in self.target.files().keys() - self.copied.keys():
            self.target.system.delete_file(f"{self.target.path}/{name}")


def _order(name: str) -> tuple[int, str]:
    return FIRST.index(name) if name in FIRST else 3 if name == LAST else 2, name


@dataclass(frozen=True)
class Storage:
    """The run folders of a store, at a place that all machines reach.

    Args:
        url: a path, or a URL such as s3://bucket/runs; what pyarrow's file systems know.
        store: the driver's store. A run folder has the same place below `url` as in the store.
    """

    url: str
    store: Path

    @classmethod
    def of(cls, text: str, store: Path) -> "Storage":
        """From the text of a user. A relative path counts from the working directory.

        Raises:
            SettingError: it is no URL that pyarrow knows, or nothing can be written there.
        """
        storage = cls(text if "://" in text else str(Path(text).resolve()), store.resolve())
        try:
            root = storage._folder(storage.store)
            root.system.create_dir(root.path)
            with root.system.open_output_stream(f"{root.path}/.writable") as file:
                file.write(b"")
            root.system.delete_file(f"{root.path}/.writable")
        except (OSError, pyarrow.ArrowInvalid, NotImplementedError) as error:
            reason = str(error).splitlines()[0]
            raise SettingError(
                f"storage: {text!r} is not allowed ({reason}); must be a folder or URL that can be written, such as "
                "/nfs/runs, s3://bucket/runs or gs://bucket/runs"
            ) from None
        return storage

    def exchange(self, jobs: Iterable[Job]) -> None:
        """Before a sweep: of each run folder here and there, the one with more rounds replaces the other.

        Run folders of trials that have ended here stay as they are.
        """
        for job in jobs:
            if job.ended:
                continue
            path = job.folder.path.resolve()
            here, there = _progress(job.folder.status), _progress(self._status(path))
            if there > here:
                self.fetch(path)
            elif here > there:
                Copier(Folder.local(path), self._folder(path))()

    def fetch(self, path: Path) -> None:
        """Replace a run folder of the store by that of the storage, if there is one."""
        source = self._folder(path.resolve())
        if source.files():
            Copier(source, Folder.local(path))()

    def remove(self, path: Path) -> None:
        """Remove a run folder from the storage."""
        folder = self._folder(path.resolve())
        if folder.system.get_file_info(folder.path).type == FileType.Directory:
            folder.system.delete_dir(folder.path)

    def carry_out(
        self,
        trial: Trial | Analysis,
        folder: Path,
        tell: Callable[[int], None],
        stop: Callable[[], bool],
        checkpoint_every: timedelta,
    ) -> Outcome:
        """Run a trial on this machine's disk, from and to the storage. See `jobs.carry_out`.

        Args:
            trial, tell, stop, checkpoint_every: as there.
            folder: the run folder in the driver's store. This machine need not have it.
        """
        there = self._folder(folder)
        try:
            with TemporaryDirectory(prefix="rollcall-") as disk:
                run = RunFolder(Path(disk) / folder.name)
                run.path.mkdir()
                Copier(there, Folder.local(run.path))()
                put = Copier(Folder.local(run.path), there)
                follow = _PutCheckpoints(run, put, tell)
                outcome = carry_out(trial, run.path, follow, stop, checkpoint_every)
                put()
                return outcome
        except OSError as error:
            return Outcome("failed", f"storage: {self.url} cannot be used ({error}). Rerun the command to resume")

    def _folder(self, path: Path) -> Folder:
        system, base = FileSystem.from_uri(self.url)
        return Folder(system, "/".join([base.rstrip("/"), *path.relative_to(self.store).parts]))

    def _status(self, path: Path) -> dict[str, Any]:
        folder = self._folder(path)
        if LAST not in folder.files():
            return {}
        with TemporaryDirectory() as disk:
            Folder.local(Path(disk)).take(LAST, folder)
            return RunFolder(Path(disk)).status


class _PutCheckpoints:
    """Puts the run folder when it has a new checkpoint, and passes on the number of finished rounds."""

    def __init__(self, run: RunFolder, put: Callable[[], None], tell: Callable[[int], None]) -> None:
        self.run = run
        self.put = put
        self.tell = tell
        self.seen = self._changed()

    def _changed(self) -> int:
        return self.run.checkpoint.stat().st_mtime_ns if self.run.checkpoint.exists() else 0

    def __call__(self, rounds: int) -> None:
        if self._changed() != self.seen:
            self.seen = self._changed()
            with suppress(OSError):  # the next checkpoint is put instead; at the end the error counts
                self.put()
        self.tell(rounds)


def _progress(status: dict[str, Any]) -> tuple[int, bool]:
    """How far a run is: its rounds, and whether it has ended."""
    return status.get("round", -1), status.get("state") in ("finished", "diverged")
