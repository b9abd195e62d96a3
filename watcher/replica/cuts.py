"""A cut: a window end, and the version of each copy that is Spanner's table at it. Plain values."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from watcher.errors import CheckpointError, ReplicaError
from watcher.spanner.timestamps import format_timestamp, to_datetime
from watcher.tables.values import WatchedTable

FORMAT = 1
DELTA, ICEBERG, PARQUET = "delta", "iceberg", "parquet"
"""The formats of copies."""
CONSUMER, END, KIND = (f"spanner-watcher.{name}" for name in ("consumer", "end", "kind"))
"""Properties of a snapshot of Iceberg: who has written it, the window's end, load or merge."""


def parse_stored(text: str, path: str) -> dict[str, Any]:
    """A file of a replica. Raises CheckpointError for what no release up to this one writes."""
    stored: dict[str, Any] = json.loads(text)
    if stored.get("format") != FORMAT:
        raise CheckpointError(
            f"{path} has format {stored.get('format')}, and this release reads format {FORMAT}:"
            " install the release that wrote it, or a later one"
        )
    return stored


@dataclass(frozen=True, slots=True)
class TableCut:
    """A copy in a cut. ``uncompared`` are the columns that clearing changes in Spanner without a
    change; ``deleted`` is the soft-delete column, whose rows are not in the copy."""

    version: int
    key: tuple[str, ...]
    uncompared: tuple[str, ...] = ()
    deleted: str | None = None


@dataclass(frozen=True, slots=True)
class Cut:
    """The state of a replica after a window. ``end`` is in microseconds since 1970.

    Only an ``exact`` cut is known to equal Spanner at its end. Cuts before ``exact_from`` are not:
    something up to there was read as of that time.
    """

    database: str
    consumer: str
    end: int
    exact: bool
    tables: Mapping[str, TableCut] = field(default_factory=dict)
    exact_from: int = 0
    copies: str = DELTA
    """The format of the copies."""

    def to_text(self) -> str:
        """As it is stored."""
        tables = {
            name: {
                "version": each.version,
                "key": each.key,
                "uncompared": each.uncompared,
                "deleted": each.deleted,
            }
            for name, each in sorted(self.tables.items())
        }
        return json.dumps(
            {
                "format": FORMAT,
                "database": self.database,
                "consumer": self.consumer,
                "end": self.end,
                "timestamp": format_timestamp(self.end),
                "exact": self.exact,
                "exact_from": self.exact_from,
                "copies": self.copies,
                "tables": tables,
            },
            indent=1,
        )

    @classmethod
    def from_text(cls, text: str, path: str) -> Cut:
        """As it was stored. Raises CheckpointError for what no release up to this one writes."""
        stored = parse_stored(text, path)
        tables = {
            name: TableCut(
                each["version"], tuple(each["key"]), tuple(each["uncompared"]), each["deleted"]
            )
            for name, each in stored["tables"].items()
        }
        return cls(
            stored["database"],
            stored["consumer"],
            stored["end"],
            stored["exact"],
            tables,
            stored["exact_from"],
            stored.get("copies", DELTA),
        )


def describe_table(table: WatchedTable, version: int) -> TableCut:
    """A copy of a table in a cut."""
    return TableCut(version, table.primary_key, list_uncompared(table), table.deleted)


def list_uncompared(table: WatchedTable) -> tuple[str, ...]:
    """The columns that clearing writes: ``processed`` and with it the shard, or the timestamp."""
    if table.change_sets is not None:
        return ()
    cleared = (
        (table.processed_column, table.shard_column)
        if table.processed_column is not None
        else (table.timestamp_column,)
    )
    names = {name for name, _ in table.columns}
    return tuple(name for name in cleared if name and name in names)


@dataclass(frozen=True)
class TablesAt:
    """The tables of a replica at one Spanner timestamp. No transaction is torn over them."""

    cut: Cut

    @property
    def timestamp(self) -> datetime:
        """The timestamp: every transaction at or below it is in the tables, and no other."""
        return to_datetime(self.cut.end)

    @property
    def tables(self) -> tuple[str, ...]:
        """The names of the tables."""
        return tuple(self.cut.tables)

    def find_version(self, table: str) -> int:
        """The version of a table's copy. Raises ReplicaError."""
        if table not in self.cut.tables:
            raise ReplicaError(f"the cut has no table {table}; it has: {', '.join(self.tables)}")
        return self.cut.tables[table].version
