"""Data directories: locked by the one server that works in it, emptied, made from snapshots."""

from __future__ import annotations

import fcntl
import shutil
from pathlib import Path
from typing import TextIO

from emulator.files import FOLDER_MODE, open_lock, replace_file

REGISTRY = "registry.json"
DATABASES = "databases"
BACKUPS = "backups"
LOCK_FILE = "lock"


class StartError(Exception):
    """The server could not start; the message says why and what to do."""


def lock_directory(data_dir: Path) -> TextIO:
    """One server at a time works in a directory."""
    try:
        data_dir.mkdir(FOLDER_MODE, parents=True, exist_ok=True)
        lock = open_lock(data_dir / LOCK_FILE)
    except OSError as error:
        raise StartError(
            f"cannot use the data directory {data_dir}: {error.strerror}; name another one"
        ) from error
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError as error:
        lock.close()
        raise StartError(
            f"another server uses the data directory {data_dir}: "
            "stop it, or choose another directory"
        ) from error
    return lock


def is_filled(data_dir: Path) -> bool:
    """Whether a server has worked in a directory."""
    return (data_dir / REGISTRY).exists()


def clear_directory(data_dir: Path) -> None:
    """Removes all that a server has kept in a directory, and nothing else that is there.

    Raises StartError while a server works in it.
    """
    with lock_directory(data_dir):
        # First: files of databases that it does not name are removed at the next start, too.
        (data_dir / REGISTRY).unlink(missing_ok=True)
        for folder in (DATABASES, BACKUPS):
            shutil.rmtree(data_dir / folder, ignore_errors=True)


def restore_directory(snapshot: Path, data_dir: Path) -> None:
    """Makes a data directory of a snapshot, which stays.

    Raises StartError for a directory that has databases, for a snapshot that is none, and while a
    server works in either of them.
    """
    if not is_filled(snapshot):
        raise StartError(f"{snapshot} is not a snapshot: it has no {REGISTRY}")
    with lock_directory(data_dir), lock_directory(snapshot):
        if is_filled(data_dir):
            raise StartError(
                f"the data directory {data_dir} has databases: name an empty one, or empty it"
            )
        for folder in (DATABASES, BACKUPS):
            if (snapshot / folder).is_dir():
                shutil.copytree(snapshot / folder, data_dir / folder, dirs_exist_ok=True)
        # Last: without it the directory has no databases.
        replace_file(data_dir / REGISTRY, (snapshot / REGISTRY).read_text())
