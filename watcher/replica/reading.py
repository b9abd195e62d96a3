"""Reads a replica as of a cut: every table at the same Spanner timestamp."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

import pyarrow as pa

from watcher.replica.copies import OpenCopy, check_version
from watcher.replica.cuts import TablesAt
from watcher.replica.formats import open_copies, split_copies
from watcher.replica.manifest import Manifest


@dataclass(frozen=True)
class ReplicaAt(TablesAt):
    """As ``TablesAt``, read with Arrow."""

    copies: OpenCopy

    def read(self, table: str, columns: Sequence[str] | None = None) -> pa.Table:
        """A table. Raises ReplicaError."""
        version, copy = self.find_version(table), self.copies(table)
        check_version(copy, table, version, self.cut.end)
        schema = copy.read_schema(version)
        if columns is not None:
            schema = pa.schema([schema.field(name) for name in columns])
        return pa.Table.from_batches(copy.scan(version, schema.names), schema)


def as_of(to: str, timestamp: datetime | str | None = None) -> ReplicaAt:
    """A replica at the latest exact cut at or before a timestamp (None: the latest).

    >>> replica = as_of("delta:/lake/music", "2026-01-31T12:00:00Z")
    >>> replica.read("Singers")

    ``to`` is ``delta:FOLDER``, or another format's. Raises ReplicaError.
    """
    _, folder = split_copies(to)
    cut = Manifest(folder).find_as_of(timestamp)
    return ReplicaAt(cut, open_copies(cut.copies, folder, cut.consumer))
