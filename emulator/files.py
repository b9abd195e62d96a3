"""Files that are replaced as a whole, and the lock of a folder: of this user alone, and never
through a link."""

from __future__ import annotations

import os
import secrets
from pathlib import Path
from typing import TextIO

FILE_MODE, FOLDER_MODE = 0o600, 0o700


def replace_file(path: Path, text: str) -> None:
    """Writes a file so that a crash leaves the old one or the new one, on the disk."""
    part = path.with_name(f".{path.name}.{secrets.token_hex(8)}.new")
    fd = os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, FILE_MODE)
    with open(fd, "w") as stream:
        stream.write(text)
        stream.flush()
        os.fsync(fd)
    part.replace(path)


def open_lock(path: Path) -> TextIO:
    """A file to lock, made if it is not there. Raises OSError for a link."""
    flags = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC
    return open(os.open(path, flags, FILE_MODE), "r+")
