"""The manifest: the cuts of a replica, a file each, in the folder ``_cuts``."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import PurePosixPath

from watcher.errors import ReplicaError
from watcher.replica.cuts import Cut
from watcher.replica.stored_files import list_names, open_file_system, write_whole
from watcher.spanner.timestamps import format_timestamp, to_micros

FOLDER = "_cuts"
DIGITS = 20
SUFFIX = ".json"


class Manifest:
    """Reads and writes cuts. ``folder`` is the replica's: a path, or the address of an object store
    that Arrow reads (``gs://``, ``s3://``)."""

    def __init__(self, folder: str) -> None:
        self._files, base = open_file_system(folder)
        self._base = PurePosixPath(base) / FOLDER
        self._names: list[str] | None = None

    def read_last(self) -> Cut | None:
        """The cut that was written last, exact or not; None for a new replica."""
        return next((self._read(name) for name in reversed(self._list_names())), None)

    def find_exact(self, at: int | None = None) -> Cut:
        """The last exact cut, or the one that ends exactly ``at``. Raises ReplicaError."""
        if at is None:
            for cut in self.iterate_exact():
                return cut
            raise ReplicaError(
                f"{self._base} has no exact cut yet: let 'replicate' finish a window"
            )
        cut = self.find_at_or_before(at)
        if cut.end != at:
            raise ReplicaError(
                f"{self._base} has no exact cut at {format_timestamp(at)}: the one before it is at"
                f" {format_timestamp(cut.end)}"
            )
        return cut

    def find_at_or_before(self, at: int) -> Cut:
        """The latest exact cut at or before a timestamp. Raises ReplicaError."""
        for cut in self.iterate_exact(at):
            return cut
        raise ReplicaError(f"{self._base} has no exact cut at or before {format_timestamp(at)}")

    def find_as_of(self, timestamp: datetime | str | None) -> Cut:
        """The latest exact cut at or before a timestamp (None: the latest). Text without a zone is
        UTC. Raises ReplicaError."""
        if timestamp is None:
            return self.find_exact()
        return self.find_at_or_before(parse_timestamp(timestamp))

    def iterate_exact(self, at: int | None = None) -> Iterator[Cut]:
        """The exact cuts at or before a timestamp, the latest first."""
        limit = name_of(at) if at is not None else None
        for name in reversed(self._list_names()):
            if (limit is None or name <= limit) and (cut := self._read(name)).exact:
                yield cut

    def write(self, cut: Cut) -> None:
        """Writes a cut, whole or not at all; one of the same end is replaced."""
        name = name_of(cut.end)
        write_whole(self._files, self._base, name, cut.to_text().encode())
        if self._names is not None and name not in self._names:
            self._names = sorted([*self._names, name])

    def remove_before(self, at: int) -> int:
        """Removes the cuts before a timestamp, except the last exact one. Returns the timestamp
        from which versions of copies are still needed."""
        kept = next(self.iterate_exact(), None)
        for name in [name for name in self._list_names() if name < name_of(at)]:
            if kept is None or name != name_of(kept.end):
                self._files.delete_file(str(self._base / name))
        self._names = None
        return at if kept is None else min(at, kept.end)

    def _list_names(self) -> list[str]:
        if self._names is None:
            self._names = list_names(self._files, self._base, SUFFIX)
        return self._names

    def _read(self, name: str) -> Cut:
        path = str(self._base / name)
        with self._files.open_input_stream(path) as stream:
            return Cut.from_text(stream.read().decode(), path)


def name_of(end: int) -> str:
    """The file of a cut: names are in the order of time."""
    return f"{end:0{DIGITS}d}{SUFFIX}"


def parse_timestamp(timestamp: datetime | str) -> int:
    """A time in microseconds since 1970; text without a zone is UTC. Raises ReplicaError."""
    try:
        moment = timestamp if isinstance(timestamp, datetime) else datetime.fromisoformat(timestamp)
    except ValueError as error:
        raise ReplicaError(
            f"invalid timestamp '{timestamp}': use one such as 2026-01-31T12:00:00Z"
        ) from error
    return to_micros(moment if moment.tzinfo else moment.replace(tzinfo=UTC))
