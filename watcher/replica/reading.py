"""Reads a replica as of a cut: every table at the same Spanner timestamp."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

import pyarrow as pa

from watcher.errors import ReplicaError
from watcher.replica.copies import OpenCopy
from watcher.replica.cuts import Cut
from watcher.replica.delta import open_delta_copies
from watcher.replica.manifest import Manifest
from watcher.spanner.timestamps import to_datetime, to_micros


@dataclass(frozen=True)
class ReplicaAt:
    """The tables of a replica at one Spanner timestamp. No transaction is torn over them."""

    cut: Cut
    copies: OpenCopy

    @property
    def timestamp(self) -> datetime:
        """The timestamp: every transaction at or below it is in the tables, and no other."""
        return to_datetime(self.cut.end)

    @property
    def tables(self) -> tuple[str, ...]:
        """The names of the tables."""
        return tuple(self.cut.tables)

    def read(self, table: str, columns: Sequence[str] | None = None) -> pa.Table:
        """A table. Raises ReplicaError."""
        if table not in self.cut.tables:
            raise ReplicaError(f"the cut has no table {table}; it has: {', '.join(self.tables)}")
        copy, version = self.copies(table), self.cut.tables[table].version
        schema = copy.read_schema(version)
        if columns is not None:
            schema = pa.schema([schema.field(name) for name in columns])
        return pa.Table.from_batches(copy.scan(version, schema.names), schema)


def as_of(to: str, timestamp: datetime | str | None = None) -> ReplicaAt:
    """A replica at the latest exact cut at or before a timestamp (None: the latest).

    >>> replica = as_of("delta:/lake/music", "2026-01-31T12:00:00Z")
    >>> replica.read("Singers")

    ``to`` is ``delta:FOLDER``. Raises ReplicaError.
    """
    folder = to.partition(":")[2] if to.startswith("delta:") else to
    manifest = Manifest(folder)
    cut = (
        manifest.find_exact()
        if timestamp is None
        else manifest.find_at_or_before(parse_timestamp(timestamp))
    )
    return ReplicaAt(cut, open_delta_copies(folder, cut.consumer))


def parse_timestamp(timestamp: datetime | str) -> int:
    """A time in microseconds since 1970; text without a zone is UTC. Raises ReplicaError."""
    try:
        moment = timestamp if isinstance(timestamp, datetime) else datetime.fromisoformat(timestamp)
    except ValueError as error:
        raise ReplicaError(
            f"invalid timestamp '{timestamp}': use one such as 2026-01-31T12:00:00Z"
        ) from error
    return to_micros(moment if moment.tzinfo else moment.replace(tzinfo=UTC))
