"""Download of data sets: resumable, checked, and unpacked atomically."""

import os
import shutil
import tarfile
from http.client import HTTPException
from pathlib import Path
from urllib.error import HTTPError
from urllib.request import Request, urlopen

from filelock import FileLock
from rich.progress import DownloadColumn, TransferSpeedColumn

from rollcall.tasks.datasets.source import Archive, Source, bars, digest

TIMEOUT = 30  # seconds without a byte
CHUNK = 1 << 18


def fetch(source: Source, root: Path) -> bool:
    """Download and unpack the missing files of a data set. A second process waits for the first.

    An existing archive is only downloaded again if it is damaged. A damaged unpacked file does not count as missing.

    Returns:
        Whether anything was missing.

    Raises:
        ValueError: the download failed.
    """
    if not source.missing(root):
        return False
    existed = root.exists()
    lock = root / f".{source.name}.lock"
    try:
        root.mkdir(parents=True, exist_ok=True)
        with FileLock(lock):
            try:
                for archive in source.archives():
                    if set(archive.gives) & set(source.missing(root)):
                        _bring(source, archive, root)
            finally:
                lock.unlink(missing_ok=True)  # inside the lock: a waiting process notices and makes a new one
        if missing := source.missing(root):
            raise OSError(f"its archives are without {missing[0]}")
    except (OSError, HTTPException, RuntimeError, tarfile.TarError) as error:
        _remove_empty(source, root, itself=not existed)
        reason = " ".join(str(error).split())
        first, *_, last = source.files(root)
        raise ValueError(
            f"name: {source.name} is not in {root.resolve()} and could not be downloaded ({reason}); set ROLLCALL_DATA "
            f"to a folder that holds {first} ... {last}"
        ) from error
    return True


def download(urls: tuple[str, ...], target: Path, md5: str) -> None:
    """Download a file with this checksum from the first working address. A partial `target.part` is resumed.

    Raises:
        OSError: no address worked; with the reason for each.
    """
    target.parent.mkdir(parents=True, exist_ok=True)
    part = target.with_name(f"{target.name}.part")
    reasons = []
    for url in urls:
        try:
            _receive(url, part)
        except (OSError, HTTPException) as error:
            reasons.append(f"{url}: {error or type(error).__name__}")
            continue
        if (received := digest(part)) == md5:
            part.replace(target)
            return
        part.unlink()
        reasons.append(f"{url}: its md5 is {received}, must be {md5}; removed")
    raise OSError("; ".join(reasons))


def _receive(url: str, part: Path) -> None:
    """Append the missing rest of a file; OSError if the response is missing or cut off."""
    have = part.stat().st_size if part.exists() else 0
    request = Request(url, headers={"User-Agent": "rollcall"} | ({"Range": f"bytes={have}-"} if have else {}))
    try:
        response = urlopen(request, timeout=TIMEOUT)
    except HTTPError as error:
        if error.code == 416 and have:
            return  # there is nothing beyond what we have; the checksum is tested later
        raise
    with response, bars(DownloadColumn(), TransferSpeedColumn()) as bar:
        if response.status != 206:
            have = 0  # the server ignored the range and sends the whole file
        length = response.headers["Content-Length"]
        total = None if length is None else have + int(length)
        shown = bar.add_task(part.stem, total=total, completed=have)
        with part.open("ab" if have else "wb") as file:
            while chunk := response.read(CHUNK):
                file.write(chunk)
                bar.advance(shown, len(chunk))
    # http.client does not report a body that was cut off.
    if total is not None and (now := part.stat().st_size) < total:
        raise OSError(f"cut off after {now:,} of {total:,} bytes, which are kept; the same again goes on from there")


def _bring(source: Source, archive: Archive, root: Path) -> None:
    """Download and unpack an archive."""
    file = root / archive.path
    there = file.is_file()
    if not there or digest(file) != archive.md5:
        try:
            download(archive.urls, file, archive.md5)
        except OSError as error:
            raise OSError(f"the {archive.path} there is damaged; {error}" if there else error) from error
    if archive.path not in archive.gives:
        _unpack(source, file)


def _unpack(source: Source, archive: Path) -> None:
    """Unpack next to the archive. A new folder appears complete or not at all."""
    from torchvision.datasets.utils import extract_archive

    scratch = archive.with_name(f".{archive.name}.unpacking")
    shutil.rmtree(scratch, ignore_errors=True)  # left by a killed process
    scratch.mkdir()
    try:
        extract_archive(str(archive), str(scratch))
        source.arrange(scratch)
        for thing in scratch.iterdir():
            _move(thing, archive.parent / thing.name)
    finally:
        shutil.rmtree(scratch)


def _move(thing: Path, to: Path) -> None:
    """Move a file or folder; into an existing folder, file by file."""
    if thing.is_dir() and to.is_dir():
        for inner in thing.iterdir():
            _move(inner, to / inner.name)
    else:
        os.replace(thing, to)


def _remove_empty(source: Source, root: Path, itself: bool) -> None:
    """Remove the empty folders that a failed download has left."""
    folders = {folder for archive in source.archives() for folder in (root / archive.path).parents}
    for folder in sorted(folders, key=lambda path: len(path.parts), reverse=True):
        ours = folder.is_relative_to(root) and (itself or folder != root)
        if ours and folder.is_dir() and not any(folder.iterdir()):
            folder.rmdir()
