"""The binary logs of a run: what was written, what was delivered, which windows there were.

Fixed-width records, appended as they happen, so that a process that dies leaves what it did. Every
time is in microseconds since 1970.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from types import TracebackType

import numpy as np
import numpy.typing as npt

Records = npt.NDArray[np.void]

WRITTEN = np.dtype(
    [
        ("table", "i8"),
        ("key", "i8"),
        ("version", "i8"),
        ("commit", "i8"),
        ("intended", "i8"),
        ("sent", "i8"),
        ("acknowledged", "i8"),
    ]
)
"""A row of an acknowledged commit. ``intended`` is when its commit was due by the schedule."""

DELIVERED = np.dtype(
    [("table", "i8"), ("key", "i8"), ("version", "i8"), ("commit", "i8"), ("at", "i8")]
)
"""A row as a consumer got it."""

WINDOWS = np.dtype([("table", "i8"), ("start", "i8"), ("end", "i8")])
"""The window ``(start, end]`` of a batch, where the system knows windows."""

ATTEMPTS = np.dtype([("commits", "i8"), ("attempts", "i8")])
"""Of a writer, at its end: commits acknowledged, and how often a commit was sent for them."""

CPU = np.dtype([("at", "i8"), ("cpu", "i8")])
"""CPU time of a delivering process: as it begins, once it runs, and as it ends."""


class Appender:
    """Appends records to a file; they are in the file when ``add`` returns."""

    def __init__(self, path: Path, kind: np.dtype[np.void]) -> None:
        self._file = path.open("ab", buffering=0)
        self._kind = kind
        # Behind half a record, which a killed process may leave, no other could be read.
        end = self._file.tell()
        self._file.truncate(end - end % kind.itemsize)

    def add(self, columns: Iterable[object], rows: int) -> None:
        """Adds so many records; a column is an array of values, or one value for all of them."""
        records = np.empty(rows, self._kind)
        for name, values in zip(self._kind.names or (), columns, strict=True):
            records[name] = values
        self._file.write(records.tobytes())

    def __enter__(self) -> Appender:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._file.close()


def read(paths: Iterable[Path], kind: np.dtype[np.void]) -> Records:
    """The records of some files, one file after the other; half a record at an end is left out."""
    parts = []
    for path in sorted(paths):
        content = path.read_bytes()
        whole = len(content) - len(content) % kind.itemsize
        parts.append(np.frombuffer(content[:whole], kind))
    return np.concatenate(parts) if parts else np.empty(0, kind)


def count(paths: Iterable[Path], kind: np.dtype[np.void]) -> int:
    """How many records there are so far, without reading them."""
    return sum(path.stat().st_size // kind.itemsize for path in paths)
