"""The manifest: whose the replica is, its cuts, a file each, in the folder ``_cuts``, which copies
were verified since others wrote them, in ``_verified``, and what copies show of their tables, in
``_views``."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import PurePosixPath

from watcher.model.errors import ConfigurationError, ReplicaError
from watcher.replica.cuts.cut import Cut
from watcher.replica.cuts.owner import Owner, OwnerFile
from watcher.replica.cuts.stored import (
    FORMAT,
    FORMAT_OF_VIEWS,
    UNPROVED,
    read_stored,
)
from watcher.replica.cuts.views import View
from watcher.replica.stores.stored_files import (
    LOAD_ADVICE,
    list_names,
    open_file_system,
    write_whole,
)
from watcher.spanner.timestamps import format_timestamp, to_micros

FOLDER, VERIFIED, VIEWS = "_cuts", "_verified", "_views"
DIGITS = 20
SUFFIX = ".json"
LOADED_ANEW = f", or remove it and {LOAD_ADVICE}"


class Manifest:
    """Reads and writes cuts; those of an earlier owner of the folder are not used. ``folder`` is
    the replica's: a path, or the address of an object store that Arrow reads (``gs://``,
    ``s3://``)."""

    def __init__(self, folder: str) -> None:
        self.owner = OwnerFile(folder)
        self._files, base = open_file_system(folder)
        self._base = PurePosixPath(base) / FOLDER
        self._verified = PurePosixPath(base) / VERIFIED
        self._views = PurePosixPath(base) / VIEWS
        self._names: list[str] | None = None

    def refresh(self) -> None:
        """Looks anew which cuts there are."""
        self._names = None

    def read_last(self) -> Cut | None:
        """The cut that was written last, exact or not; None for a new replica."""
        return next(self._iterate(), None)

    def read_first(self) -> Cut | None:
        """The oldest cut that is kept, exact or not."""
        owner = self.owner.read()
        for name in self._list_names():
            cut = self._read(name)
            if owner is None or Owner.of_cut(cut) == owner:
                return cut
        return None

    def has_before(self, at: int) -> bool:
        """Whether there is a cut before a timestamp."""
        return any(name < name_of(at) for name in self._list_names()[:1])

    def find_owner(self) -> Owner | None:
        """Whose the folder is; None for a new one. Of a folder of an earlier release its cuts say
        it."""
        if (owner := self.owner.read()) is not None:
            return owner
        last = self.read_last()
        return Owner.of_cut(last) if last is not None else None

    def claim(self, owner: Owner, take_over: bool = False) -> bool:
        """Makes the folder the owner's, before anything else is written there. Raises
        ConfigurationError where it belongs to another one, unless it is to be taken over: then the
        other one's cuts are removed. Returns whether it was."""
        taken = self.check_claim(owner, take_over)
        if taken:
            self.owner.take(owner)
            self._remove_all()
        else:
            self.owner.claim(owner)
        return taken

    def check_claim(self, owner: Owner, take_over: bool = False) -> bool:
        """What ``claim`` would return and raise; changes nothing."""
        there = self.find_owner()
        if there in (None, owner):
            return False
        if there is not None and not take_over:
            raise self.owner.refuse(there, owner)
        return True

    def _remove_all(self) -> None:
        for folder in (self._base, self._verified, self._views):
            self._files.delete_dir_contents(str(folder), missing_dir_ok=True)
        self._names = None

    def find_comparable(self, at: int | None = None) -> Cut:
        """The latest cut at or before a timestamp that ``verify`` can judge, exact or not. Raises
        ReplicaError."""
        for cut in self._iterate(at):
            if cut.comparable:
                return cut
        return self.find_exact() if at is None else self.find_at_or_before(at)

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
        return (cut for cut in self._iterate(at) if cut.exact)

    def _iterate(self, at: int | None = None) -> Iterator[Cut]:
        """The owner's cuts at or before a timestamp, the latest first."""
        limit, owner = name_of(at) if at is not None else None, self.owner.read()
        for name in reversed(self._list_names()):
            if limit is None or name <= limit:
                cut = self._read(name)
                if owner is None or Owner.of_cut(cut) == owner:
                    yield cut

    def write(self, cut: Cut) -> None:
        """Writes a cut, whole or not at all; one of the same end is replaced."""
        name = name_of(cut.end)
        write_whole(self._files, self._base, name, cut.to_text().encode())
        if self._names is not None and name not in self._names:
            self._names = sorted([*self._names, name])

    def note_verified(self, cut: Cut, table: str) -> None:
        """A comparison at a cut has found a copy equal: what others had written does not matter."""
        text = json.dumps(
            {"format": FORMAT, "end": cut.end, "timestamp": format_timestamp(cut.end)}
        )
        write_whole(self._files, self._verified, f"{table}{SUFFIX}", text.encode())

    def read_verified(self, table: str) -> int:
        """The end of the cut at which a copy was noted as equal; 0 for none."""
        path = str(self._verified / f"{table}{SUFFIX}")
        try:
            return read_stored(self._files, path, lambda stored: int(stored["end"]), UNPROVED)
        except FileNotFoundError:
            return 0

    def note_view(self, table: str, view: View) -> None:
        """What a copy is to show of its table, before the load that writes it."""
        text = json.dumps({"format": FORMAT_OF_VIEWS, **view.to_stored()})
        write_whole(self._files, self._views, f"{table}{SUFFIX}", text.encode())

    def read_view(self, table: str) -> View | None:
        """What ``note_view`` was given last; None where it never was."""
        path = str(self._views / f"{table}{SUFFIX}")
        try:
            return read_stored(self._files, path, View.from_stored, LOADED_ANEW)
        except FileNotFoundError:
            return None

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
        return read_stored(self._files, path, Cut.from_stored, UNPROVED)


def name_of(end: int) -> str:
    """The file of a cut: names are in the order of time."""
    return f"{end:0{DIGITS}d}{SUFFIX}"


def parse_timestamp(timestamp: datetime | str) -> int:
    """A time in microseconds since 1970; text without a zone is UTC. Raises ConfigurationError."""
    try:
        moment = timestamp if isinstance(timestamp, datetime) else datetime.fromisoformat(timestamp)
    except ValueError as error:
        raise ConfigurationError(
            f"invalid timestamp '{timestamp}': use one such as 2026-01-31T12:00:00Z"
        ) from error
    return to_micros(moment if moment.tzinfo else moment.replace(tzinfo=UTC))
