"""Files that nobody else reads, and through which nobody else leads this process to another file.

Rows, positions and dead letters are as private as the database. A file that is made here is for its
owner alone; one that is there keeps its owner and mode. Where everybody may make files, as in /tmp,
those of other users, and their links, are refused.
"""

from __future__ import annotations

import errno
import fcntl
import os
import secrets
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from watcher.model.errors import ConfigurationError, FileUnavailableError, FileWriteError
from watcher.process.system_errors import describe_system_error

FILE_MODE, FOLDER_MODE = 0o600, 0o700
FULL = (errno.ENOSPC, errno.EDQUOT)
LINKS_MAX = 8


@contextmanager
def explain(path: Path) -> Iterator[None]:
    """Errors of the system as FileWriteError, with the name of the file; of a full disk as
    FileUnavailableError."""
    try:
        yield
    except OSError as error:
        text = f"cannot write {path}: {describe_system_error(error)}"
        if error.errno in FULL:
            raise FileUnavailableError(text) from error
        raise FileWriteError(text) from error


def make_folder(folder: Path) -> None:
    """Makes a folder, and those that it is in, for this user alone. One that is there stays as it
    is."""
    if folder.is_dir():
        return
    make_folder(folder.parent)
    folder.mkdir(FOLDER_MODE, exist_ok=True)


def open_own(path: Path, flags: int = os.O_RDWR) -> int:
    """A file, made for this user alone if it is not there; nothing in it is removed. Raises
    ConfigurationError for what another user has put there, and for what is not a file."""
    fd = os.open(follow_links(path), flags | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, FILE_MODE)
    try:
        status = os.fstat(fd)
        if not stat.S_ISREG(status.st_mode):
            raise ConfigurationError(f"{path} is not a regular file: name another one")
        check_owner(path, status)
    except BaseException:
        os.close(fd)
        raise
    return fd


def read_own(path: Path) -> str | None:
    """The text of a file; None where there is none. Raises ConfigurationError as ``open_own``."""
    try:
        fd = os.open(follow_links(path), os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
    except FileNotFoundError:
        return None
    with open(fd, encoding="utf-8") as file:
        check_owner(path, os.fstat(fd))
        return file.read()


def follow_links(path: Path) -> Path:
    """Where a link, and those behind it, lead. Raises ConfigurationError for links of other
    users."""
    for _ in range(LINKS_MAX):
        try:
            status = path.lstat()
        except FileNotFoundError:
            return path
        if not stat.S_ISLNK(status.st_mode):
            return path
        check_owner(path, status)
        path = path.parent / path.readlink()
    return path


def check_owner(path: Path, status: os.stat_result) -> None:
    """Raises ConfigurationError for a file, or a link, of another user where everybody may make
    some: the owner could read or choose what is written."""
    folder = path.parent.stat()
    shared = folder.st_mode & stat.S_IWOTH
    if shared and status.st_uid not in (os.geteuid(), folder.st_uid):
        raise ConfigurationError(
            f"{path} belongs to another user, and everybody may write to its folder: name a file in"
            " a folder of your own"
        )


def sync_file(path: Path) -> None:
    """Makes the content of a file, and its name, safe."""
    file = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(file)
    finally:
        os.close(file)
    sync_folder(path)


def sync_folder(path: Path) -> None:
    """Makes the name of a file as safe as its content."""
    folder = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)


def replace_file(path: Path, content: str | bytes, mode: int = FILE_MODE) -> None:
    """Writes a file so that a crash leaves the old one or the new one, whole; the new one has the
    owner and the mode of the old one, else ``mode`` less the umask. Raises FileWriteError, and
    leaves nothing else behind then."""
    with explain(path):
        path = follow_links(path)
        part = path.with_name(f".{path.name}.{secrets.token_hex(8)}.new")
        try:
            write_new(part, content.encode() if isinstance(content, str) else content, path, mode)
            part.replace(path)
            sync_folder(path)
        except BaseException:
            part.unlink(missing_ok=True)
            raise


def write_new(part: Path, content: bytes, like: Path, mode: int = FILE_MODE) -> None:
    """Writes a file that is not there yet, on the disk before this returns, with the owner and the
    mode of another one if that exists."""
    fd = os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, mode)
    with open(fd, "wb") as file:
        if like.exists():
            keep_access(fd, like)
        file.write(content)
        file.flush()
        os.fsync(fd)


def keep_access(fd: int, like: Path) -> None:
    """Gives an open file the owner and the mode of another one."""
    old, new = like.stat(), os.fstat(fd)
    if (old.st_uid, old.st_gid) != (new.st_uid, new.st_gid):
        os.fchown(fd, old.st_uid, old.st_gid)
    os.fchmod(fd, stat.S_IMODE(old.st_mode))


@contextmanager
def locked_beside(path: Path) -> Iterator[None]:
    """Keeps other processes that do the same out, by a lock file beside a file. Raises
    FileWriteError."""
    with explain(path):
        make_folder(path.parent)
        fd = open_own(path.with_name(path.name + ".lock"))
    try:
        fcntl.flock(fd, fcntl.LOCK_EX)
        yield
    finally:
        os.close(fd)
