"""Reads a replica as of a cut: every table at the same Spanner timestamp."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

import pyarrow as pa

from watcher.model.errors import ReplicaError
from watcher.replica.copies import KeepingCopy, OpenCopy, check_version
from watcher.replica.cuts.cut import TablesAt
from watcher.replica.cuts.manifest import Manifest, parse_timestamp
from watcher.replica.cuts.modes import COLUMNS, HISTORY, LATEST
from watcher.replica.formats import find_folder, open_copies, split_copies
from watcher.replica.row_versions import keep_valid
from watcher.spanner.timestamps import format_timestamp, to_datetime


@dataclass(frozen=True)
class ReplicaAt(TablesAt):
    """As ``TablesAt``, read with Arrow. ``at``: a timestamp before the cut's end, of copies that
    have the history since then."""

    copies: OpenCopy
    at: int | None = None

    @property
    def timestamp(self) -> datetime:
        """As ``TablesAt.timestamp``."""
        return to_datetime(self.cut.end if self.at is None else self.at)

    def read(
        self, table: str, columns: Sequence[str] | None = None, all_rows: bool = False
    ) -> pa.Table:
        """A table as it is at the timestamp. ``all_rows``: with deleted rows and earlier versions,
        if the copy keeps them, up to the end of the cut, and with the columns that tell which they
        are. Raises ReplicaError."""
        version, copy = self.find_version(table), self.copies(table)
        check_version(copy, table, version, self.cut.end)
        if self.cut.mode != LATEST and (all_rows or self.at is not None):
            assert isinstance(copy, KeepingCopy), "others have one mode"
            rows = read_all(copy, version)
            if not all_rows:
                rows = self._choose(table, rows, copy.find_loaded(version))
            return rows if columns is None else rows.select(list(columns))
        schema = copy.read_schema(version)
        if columns is not None:
            schema = pa.schema([schema.field(name) for name in columns])
        return pa.Table.from_batches(copy.scan(version, schema.names), schema)

    def _choose(self, table: str, rows: pa.Table, since: int) -> pa.Table:
        """The rows of a history at the timestamp."""
        assert self.at is not None, "else the latest ones are read"
        if self.at < since:
            raise ReplicaError(
                f"the history of {table} begins at {format_timestamp(since)}: use a timestamp from"
                " then on"
            )
        return keep_valid(rows, self.at).drop_columns(list(COLUMNS[HISTORY]))


def read_all(copy: KeepingCopy, version: int) -> pa.Table:
    """All rows of a version, with all columns."""
    schema = copy.read_all_columns(version)
    return pa.Table.from_batches(copy.scan_all(version), schema)


def as_of(to: str, timestamp: datetime | str | None = None) -> ReplicaAt:
    """A replica at the latest exact cut at or before a timestamp (None: the latest). Copies that
    have the history are read at the timestamp itself.

    >>> replica = as_of("delta:/lake/music", "2026-01-31T12:00:00Z")
    >>> replica.read("Singers")

    ``to`` is ``delta:FOLDER``, ``iceberg:CATALOG.NAMESPACE``, or another format's. Raises
    ReplicaError.
    """
    format_, place = split_copies(to)
    manifest = Manifest(find_folder(format_, place))
    last = manifest.find_exact() if timestamp is not None else None
    if last is not None and last.mode == HISTORY and timestamp is not None:
        at = min(parse_timestamp(timestamp), last.end)
        return ReplicaAt(last, open_copies(last.copies, place, last.consumer), at)
    cut = manifest.find_as_of(timestamp)
    return ReplicaAt(cut, open_copies(cut.copies, place, cut.consumer))
