"""Files of lines that are appended to: whole lines, by one process at a time, safe on the disk.

Everything that the product appends to goes through here. A line is one JSON object, so that a part
of one is never taken for a whole one.
"""

from __future__ import annotations

import fcntl
import json
import logging
import os
import stat
import time
from collections.abc import Iterable
from pathlib import Path

from watcher.model.errors import (
    ConfigurationError,
    FileInUseError,
    FileUnavailableError,
    FileWriteError,
)
from watcher.model.log_events.delivery import LINE_NOT_REMOVED, LINE_REMOVED
from watcher.process.failpoints import failpoint
from watcher.process.private_files import explain, make_folder, open_own, replace_file, sync_folder
from watcher.process.system_errors import describe_system_error
from watcher.process.text_files import read_text_file

LOG = logging.getLogger("watcher")
BLOCK_BYTES = 65_536
BUFFER_BYTES = 1_048_576
LOCK_SECONDS_MAX = 2.0
"""How long a file may still be held by an instance that is about to end."""
APPEND_SECONDS_MAX = 60.0
"""How long a file may be held by others that add single lines to it, too."""
LOCK_SECONDS = 0.05
NEWLINE = b"\n"


class LineFile:
    """A file of lines. Nobody else appends to it while it is open: it is locked.

    A failed write leaves whole lines behind. What ``sync`` has returned for is on the disk, in the
    file that had the name then.
    """

    def __init__(self, path: Path) -> None:
        """Opens nothing yet."""
        self.path = path
        self._fd: int | None = None
        self._buffer = bytearray()
        self._synced = 0
        """Up to where the file is on the disk."""
        self._dirty = False
        """Lines were appended since."""

    def open(self, wait_seconds: float = LOCK_SECONDS_MAX) -> None:
        """Locks the file, and removes the part of a line that a crash has left at its end; nothing
        if it is open. Raises FileInUseError while another process has it, and FileWriteError."""
        if self._fd is not None:
            return
        with explain(self.path):
            make_folder(self.path.parent)
            self._fd = open_locked(self.path, time.monotonic() + wait_seconds)
            try:
                self._synced = end_last_line(self._fd, self.path)
            except BaseException:
                self.close()
                raise

    def append(self, lines: Iterable[str]) -> None:
        """Takes lines, which have no newline. Raises FileWriteError, after which some of the lines
        since the last ``sync`` are in the file, whole: append all of them again."""
        self._begin()
        for line in lines:
            self._buffer += line.encode() + NEWLINE
            if len(self._buffer) >= BUFFER_BYTES:
                self._write()

    def append_text(self, text: bytes) -> None:
        """As ``append``, of lines that end in a newline each."""
        self._begin()
        self._buffer += text
        if len(self._buffer) >= BUFFER_BYTES:
            self._write()

    def _begin(self) -> None:
        if self._fd is not None and not self._dirty and not has_name(self._fd, self.path):
            self.close()  # moved or removed since the last sync, with what it had
        self.open()
        self._dirty = True

    def sync(self) -> int:
        """The size of the file, when everything is on the disk. Raises FileWriteError, also when
        the file was moved or removed meanwhile: append the lines since the last ``sync`` again."""
        if self._fd is None or not self._dirty:
            return self._synced
        self._write()
        try:
            with explain(self.path):
                os.fsync(self._fd)
        except FileWriteError:
            self._cut(self._synced)  # the system may have forgotten what it could not write
            raise
        if not has_name(self._fd, self.path):
            self.close()
            raise FileUnavailableError(
                f"{self.path} was moved or removed while a window was written to it: the window is"
                " delivered again, to a new file"
            )
        self._synced, self._dirty = os.fstat(self._fd).st_size, False
        return self._synced

    def discard(self) -> None:
        """Drops what is not in the file yet. What is in it stays there."""
        self._buffer.clear()
        self._dirty = False

    def rotate(self) -> None:
        """Gives the file, which is synced, another name: its own and the time. Who waits for its
        lock does so until the next one is locked."""
        with explain(self.path):
            self.path.rename(self.path.with_name(f"{self.path.name}.{time.time_ns()}"))
            sync_folder(self.path)
        before, self._fd = self._fd, None
        try:
            self.open()
        finally:
            if before is not None:
                os.close(before)

    def close(self) -> None:
        """Ends the lock; what is not synced may be lost."""
        self.discard()
        self._synced = 0
        if self._fd is not None:
            fd, self._fd = self._fd, None
            os.close(fd)

    def _write(self) -> None:
        assert self._fd is not None
        end = os.fstat(self._fd).st_size
        part = memoryview(bytes(self._buffer))
        self._buffer.clear()
        try:
            with explain(self.path):
                while part:
                    part = part[os.write(self._fd, part) :]
        except FileWriteError:
            self._cut(end)
            raise

    def _cut(self, end: int) -> None:
        """Removes what follows the end of a line; where that fails, the next ``open`` does it."""
        assert self._fd is not None
        self.discard()
        try:
            os.ftruncate(self._fd, end)
        except OSError as error:
            LINE_NOT_REMOVED.log(LOG, path=self.path, error=error)
            self.close()


def open_locked(path: Path, until: float) -> int:
    """A file, made if it is not there, that nobody else has. Raises FileInUseError."""
    while True:
        is_new = not path.exists()
        fd = open_own(path, os.O_RDWR | os.O_APPEND)
        try:
            lock(fd, path, until)
            if has_name(fd, path):
                if is_new:
                    sync_folder(path)
                return fd
        except BaseException:
            os.close(fd)
            raise
        os.close(fd)  # renamed or replaced while this process waited for it


def lock(fd: int, path: Path, until: float) -> None:
    """Takes the lock of an open file. Raises FileInUseError."""
    while True:
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            if time.monotonic() >= until:
                raise FileInUseError(
                    f"another process is writing to {path}: stop it, or name another file; each"
                    " watcher, and each instance of a shared consumer, needs a file of its own"
                ) from error
            time.sleep(LOCK_SECONDS)
        else:
            return


def has_name(fd: int, path: Path) -> bool:
    """Whether an open file is the one that has the name now."""
    try:
        return os.path.samestat(os.fstat(fd), path.stat())
    except FileNotFoundError:
        return False


def end_last_line(fd: int, path: Path) -> int:
    """Removes the part of a line at the end of a file: what it belongs to was not acknowledged, and
    comes again. A whole one that lacks its newline gets it. The end of the file. Raises
    ConfigurationError for a file whose end nobody has written who writes such lines."""
    size = os.fstat(fd).st_size
    begin = find_last_line(fd, size)
    if begin == size:
        return size
    if is_whole(os.pread(fd, size - begin, begin)):
        os.write(fd, NEWLINE)
        return size + 1
    if not may_be_cut(fd, begin, size):
        raise ConfigurationError(
            f"{path} is not a file of changes: its last line has no end, and is no part of a JSON"
            " object; name another file"
        )
    LINE_REMOVED.log(LOG, path=path, bytes=size - begin)
    os.ftruncate(fd, begin)
    return begin


def may_be_cut(fd: int, begin: int, size: int) -> bool:
    """Whether the part of a line behind ``begin`` was written here: after a line that was, or as
    the first one; a crash may leave zeros."""
    if begin:
        before = find_last_line(fd, begin - 1)
        return is_whole(os.pread(fd, begin - before, before))
    first = os.pread(fd, min(size, BLOCK_BYTES), 0).strip(b"\0")
    return first[:1] in (b"", b"{")


def find_last_line(fd: int, size: int) -> int:
    """Where the line begins that has no newline; the end of the file where all have one."""
    end = size
    while end > 0:
        first = max(0, end - BLOCK_BYTES)
        newline = os.pread(fd, end - first, first).rfind(NEWLINE)
        if newline >= 0:
            return first + newline + 1
        end = first
    return 0


def is_whole(line: bytes) -> bool:
    """Whether a line is a JSON object."""
    try:
        return isinstance(json.loads(line), dict)
    except ValueError:
        return False


def append_line(path: Path, line: str) -> None:
    """Adds a line, on the disk before this returns; waits for other processes that do the same.
    Raises FileWriteError."""
    file = LineFile(path)
    try:
        file.open(APPEND_SECONDS_MAX)
        file.append([line])
        file.sync()
    finally:
        file.close()


def replace_lines(path: Path, before: str, lines: Iterable[str]) -> None:
    """Puts lines in the place of those that a file began with when it was read; what was appended
    since stays. Raises FileInUseError where the file does not begin so any more."""
    file = LineFile(path)
    file.open(APPEND_SECONDS_MAX)
    try:
        known = before if before.endswith("\n") or not before else before + "\n"
        text = read_text_file(path)
        if not text.startswith(known):
            raise FileInUseError(
                f"another process has changed {path} meanwhile: the file was left as it is"
            )
        failpoint("before-lines-are-replaced")
        replace_file(path, "".join(f"{line}\n" for line in lines) + text[len(known) :])
        failpoint("after-lines-are-replaced")
    finally:
        file.close()


def count_lines(path: Path) -> int:
    """How many lines a file has, of any size, read block by block. Raises ConfigurationError where
    it cannot be read."""
    count, last = 0, NEWLINE
    try:
        with path.open("rb") as file:
            while block := file.read(BLOCK_BYTES):
                count += block.count(NEWLINE)
                last = block[-1:]
    except OSError as error:
        raise ConfigurationError(f"cannot read {path}: {describe_system_error(error)}") from error
    return count + (last != NEWLINE)


def begin_line(fd: int) -> None:
    """Ends a line, of a file that an open one continues, of which a crash or a full disk has left
    a part: what follows would be glued to it. Not while another instance appends to the file, nor
    where a file that is open for writing cannot be read by its number, as Linux does."""
    opened = Path(f"/proc/self/fd/{fd}")
    if not stat.S_ISREG(os.fstat(fd).st_mode) or not opened.exists():
        return
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return
    size = os.fstat(fd).st_size
    with opened.open("rb") as file:
        torn = size > 0 and os.pread(file.fileno(), 1, size - 1) != NEWLINE
    if torn:
        os.write(fd, NEWLINE)
    fcntl.flock(fd, fcntl.LOCK_SH)
