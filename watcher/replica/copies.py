"""What a replica asks of the format of its copies."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, Protocol, runtime_checkable

from watcher.model.errors import CopyConflictError, ReplicaError
from watcher.replica.cuts.modes import VALID_FROM
from watcher.spanner.timestamps import format_timestamp

if TYPE_CHECKING:
    import pyarrow as pa

    from watcher.replica.keys.sets import KeySet
    from watcher.replica.loads import Chunk, LoadProgress

STAMP_COLUMN = "_spanner_commit_timestamp"
"""When the row of a copy was written. No column of Spanner begins with an underscore, and no format
or engine reserves the name: docs/decisions/0009-column-of-copies.md."""
STAMP_COLUMNS = (STAMP_COLUMN, "_commit_timestamp")
"""Also how version 1.0.0 called it, which Delta reserves for its change data feed. A copy keeps the
name that it has until it is loaded again."""
DROPPED = "spanner-watcher.dropped"
"""Metadata of a column in Delta's schema."""
PRIMARY_KEY = "spanner-watcher.primary-key"
"""The property of a copy that has the names of its key's columns, in order, as a JSON array."""
DELETED_COLUMN = "$deleted"
"""In rows that are merged: true for a row that is to be removed. No column of Spanner has such a
name."""


Merging = Literal["merge-on-read", "copy-on-write"]
"""How rows are merged into a copy: the old ones are marked as removed, and readers leave them out;
or every file that has one of them is written anew."""
MERGE_ON_READ: Merging = "merge-on-read"
COPY_ON_WRITE: Merging = "copy-on-write"


def describe_key(key: Sequence[str]) -> dict[str, str]:
    """The properties of a copy that tell its primary key; none where there is no key."""
    return {PRIMARY_KEY: json.dumps(list(key))} if key else {}


def find_stamp(columns: Iterable[str]) -> str:
    """How a copy, or rows for it, call ``STAMP_COLUMN``."""
    names = set(columns)
    return next((name for name in STAMP_COLUMNS if name in names), STAMP_COLUMN)


def find_order(columns: Iterable[str]) -> str:
    """The column by which the rows of one key are older and newer."""
    names = set(columns)
    return VALID_FROM if VALID_FROM in names else find_stamp(names)


@dataclass(frozen=True, slots=True)
class OutsideCommit:
    """A commit by somebody else that has changed rows or columns. ``detail``: what it was."""

    version: int
    detail: str


@dataclass(frozen=True, slots=True)
class CopyState:
    """A copy as it is: its ``version``, the window ``end`` of its newest commit by this consumer
    (0: none), and its columns. ``progress``: how far its load is; None: it is loaded."""

    version: int
    end: int
    schema: pa.Schema
    progress: LoadProgress | None = None


@dataclass(frozen=True, slots=True)
class Needed:
    """What cuts need of a copy: the versions in effect at a timestamp or after it, and those from
    ``version`` on, which is the lowest one that a cut names (0: all)."""

    since: int
    version: int = 0


class StoredCopy(Protocol):
    """One table of a replica, as it is stored. Every write is one commit that carries the window's
    end, and raises CopyConflictError when another instance has written since ``read_state``, or
    since the last write."""

    def read_state(self) -> CopyState | None:
        """The copy as it is now; None where there is none."""
        ...

    def list_outside(self, after: int | None, upto: int) -> Sequence[OutsideCommit]:
        """What others have changed after one version, up to another, the latest first; without what
        a load by this consumer has replaced since. ``after`` None: since that load."""
        ...

    def find_end(self, version: int) -> int:
        """The window end of the newest commit by this consumer up to a version; 0: not known."""
        ...

    def read_schema(self, version: int) -> pa.Schema:
        """The columns of a version. Raises ReplicaError where it cannot be read."""
        ...

    def scan(self, version: int, columns: Sequence[str] | None = None) -> Iterator[pa.RecordBatch]:
        """The rows of a version, in batches. Raises ReplicaError where it cannot be read."""
        ...

    def remove_before(self, needed: Needed) -> None:
        """Removes what only versions have that cuts do not need; where the format has its own
        clean-up, that is the owner's, and nothing is done here."""
        ...


@dataclass(frozen=True, slots=True)
class CompactionRun:
    """What a run of compaction has done. ``read`` and ``written`` are bytes of data files.
    ``replaced``: how many files a commit has replaced, whose ``version`` it is. ``abandoned``: what
    was written is given up, because somebody else has changed the files. ``more``: the next run has
    something to do. ``files`` and ``deleted``: the data files of the copy now, and how many rows of
    them vectors remove."""

    read: int = 0
    written: int = 0
    replaced: int = 0
    version: int | None = None
    abandoned: bool = False
    more: bool = False
    files: int = 0
    deleted: int = 0


class CompactedCopy(StoredCopy, Protocol):
    """A copy whose writer compacts it."""

    def compact(self, key: Sequence[str], whole: bool = False) -> CompactionRun:
        """Prepares the next merge, and goes on compacting if the copy is to be compacted, within
        the budget of a run, or with ``whole`` until the files that are chosen next are written.
        Raises CopyConflictError where another instance has written."""
        ...


class TableCopy(CompactedCopy, Protocol):
    """A copy that this process writes, from Arrow."""

    def load(self, schema: pa.Schema, batches: Iterable[pa.RecordBatch], end: int) -> CopyState:
        """Puts the rows in the place of all that was there; nothing is changed if the batches
        raise, and what they raised is raised."""
        ...

    def load_chunk(self, schema: pa.Schema, chunk: Chunk, end: int) -> CopyState:
        """As ``load``, for rows that may not be all: the state says how far the load is then."""
        ...

    def merge(self, rows: pa.Table, key: Sequence[str], end: int) -> CopyState:
        """Puts each row in the place of that of its key, if it is newer; removes those that are
        ``DELETED_COLUMN``."""
        ...


@dataclass(frozen=True, slots=True)
class Replacement:
    """Rows that are to be replaced in a ``version`` of a copy: all rows of some ``keys`` go, and
    ``rows``, in the columns of the copy, come. ``kind``: what the commit says that it is."""

    version: int
    keys: KeySet
    rows: pa.Table
    kind: str


@runtime_checkable
class ReplacingCopy(StoredCopy, Protocol):
    """A copy in which this process can replace rows, whatever has written it."""

    def explain_fixed(self) -> str:
        """Why rows cannot be replaced, a clause for people; empty where they can."""
        ...

    def replace_rows(self, replacement: Replacement, end: int) -> CopyState:
        """Replaces rows in one commit that carries the window's end. Raises CopyConflictError where
        the version is not the newest one any more."""
        ...


@runtime_checkable
class RemovingCopy(StoredCopy, Protocol):
    """A copy of which Spark removes rows."""

    def remove_keys(self, keys: pa.Table, end: int) -> CopyState:
        """Removes the rows of some keys, in the types of the copy, in a commit of its own that
        carries the window's end. A copy that keeps more marks them as deleted then."""
        ...


class NewValues(Protocol):
    """Values of new columns in the rows of a copy."""

    def fill(self, rows: pa.RecordBatch) -> pa.RecordBatch:
        """Rows of the copy with the values in these columns, which they have already."""
        ...


Dropped = Literal["load", "keep", "drop"]
"""What becomes of a column that the table has lost: the copy is loaded again; or the column stays,
and is NULL in new rows; or the copy loses it without a load."""


@dataclass(frozen=True, slots=True)
class NewColumns:
    """The columns that a copy is to have in a window that ends at ``end``, in the order of
    ``schema``. ``merged``: rows of the window are merged next. ``values``: those of new columns in
    the rows that it has (None: NULL). ``keep_dropped``: columns that ``schema`` does not have stay,
    and are NULL in new rows; else they are gone."""

    schema: pa.Schema
    end: int
    merged: bool
    values: NewValues | None = None
    keep_dropped: bool = False


@runtime_checkable
class EvolvingCopy(StoredCopy, Protocol):
    """A copy whose columns may change without a load."""

    def takes_columns(
        self, added: Sequence[str], gone: Sequence[str], with_values: bool = False
    ) -> bool:
        """Whether the copy can get and lose columns; ``with_values``: new ones have values in rows
        that are there."""
        ...

    def change_columns(self, columns: NewColumns) -> CopyState | None:
        """Changes the columns, in a commit with the end of the newest one; where a version is the
        end of a window, in the commit of the merge, or, if there is none, in one with its end. None
        where the copy cannot have that. Raises CopyConflictError where another instance has
        written."""
        ...


@runtime_checkable
class KeepingCopy(StoredCopy, Protocol):
    """A copy that may keep more than the rows that its table has."""

    def read_all_columns(self, version: int) -> pa.Schema:
        """The columns of a version, with those of its mode."""
        ...

    def scan_all(self, version: int) -> Iterator[pa.RecordBatch]:
        """All rows of a version, deleted ones and earlier versions of rows, too."""
        ...

    def find_loaded(self, version: int) -> int:
        """The end of the load that the history of a version begins with; 0: not known."""
        ...


@runtime_checkable
class HeadedCopy(StoredCopy, Protocol):
    """A copy whose versions are ends of windows: what others commit after the newest one is in no
    version until this product commits on top of it, but readers of the table see it."""

    def list_later(self) -> Sequence[OutsideCommit]:
        """What others have changed after the newest version, the latest first."""
        ...


@dataclass(frozen=True, slots=True)
class VersionRows:
    """Rows that only one of two versions of a copy has: ``came`` for the later one."""

    batch: pa.RecordBatch
    came: bool


@runtime_checkable
class ComparableCopy(StoredCopy, Protocol):
    """A copy that says in which rows two versions differ, at the cost of the files that do."""

    def compare_versions(
        self, before: int, after: int, names: Sequence[str]
    ) -> Iterator[VersionRows]:
        """Some columns of the rows that only one of both has. A row that was written anew, in
        another file, is on both sides. Raises ReplicaError where one of them cannot be read."""
        ...


def check_version(copy: StoredCopy, table: str, version: int, end: int) -> None:
    """Raises ReplicaError where a cut's version is not the cut's any more: in a copy that was
    removed and loaded again, versions of Delta begin anew."""
    there = copy.find_end(version)
    if there > end:
        raise ReplicaError(
            f"the copy of {table} was removed and loaded again: version {version} is of"
            f" {format_timestamp(there)} now, and not of {format_timestamp(end)}; use a later cut"
        )


def make_conflict(place: str, consumer: str, end: int) -> CopyConflictError:
    """Another instance has written a copy that Spark was about to write."""
    return CopyConflictError(
        f"another writer has changed {place}: run one instance of consumer '{consumer}' at a time,"
        f" and start the query again; the window to {format_timestamp(end)} is then tried again"
    )


OpenCopy = Callable[[str], StoredCopy]
"""The copy of a table, by the table's name."""
OpenTableCopy = Callable[[str], TableCopy]


def is_dropped(field: pa.Field) -> bool:
    """Whether a column of a copy is one that the table has no more: it is kept, and not written."""
    return DROPPED.encode() in (field.metadata or {})


def same_columns(schema: pa.Schema, other: pa.Schema) -> bool:
    """Whether two schemas have the same columns, whatever the elements of lists are called."""
    return schema.names == other.names and all(
        same_type(a, b) for a, b in zip(schema.types, other.types, strict=True)
    )


def same_type(type_: pa.DataType, other: pa.DataType) -> bool:
    """Whether two types have the same values."""
    elements = getattr(type_, "value_type", None), getattr(other, "value_type", None)
    return bool(elements[0] == elements[1] if all(elements) else type_ == other)
