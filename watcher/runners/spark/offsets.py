"""Offsets: small JSON objects in Spark's checkpoint, readable by people and by later releases.

Every one has ``version``, ``database`` and ``source`` (what is read, by the options). And then:

- ``start``: where the options want to start; the very first offset only.
- ``position``: everything up to this commit timestamp belongs to this batch or one before it.
- ``backfill``: tables are still being delivered whole, as of ``position``: ``table`` is the one
  in progress, ``after`` its last key that was delivered (null: none yet).
- ``tables``, for several tables: those whose changes up to ``position`` belong to this batch or one
  before it. A table that is in the end of a batch and not in its start is new: the batch has
  everything of it.
- ``from``, in the first end only: the resolved start, or ``earliest`` for a backfill. Spark
  requests the first offset again when a query is restarted before its first batch is done, and the
  same answer would be a later time then.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from watcher.model.errors import CheckpointError
from watcher.settings.fields import EARLIEST
from watcher.spanner.keys import Key
from watcher.spanner.timestamps import format_timestamp, to_micros

VERSION = 2
VERSIONS = (1, VERSION)

Offset = dict[str, Any]


@dataclass(frozen=True, slots=True)
class OffsetContent:
    """What an offset says. ``position`` is None for the very first one; ``began`` is None but in
    the first end, where None of ``began_at`` is a backfill. ``tables`` is None where the options
    name one table, and in offsets of earlier releases."""

    position: int | None
    backfill: tuple[str, Key | None] | None = None
    first_end: bool = False
    began_at: int | None = None
    tables: tuple[str, ...] | None = None


@dataclass(frozen=True, slots=True)
class Offsets:
    """Reads and writes the offsets of one query."""

    database: str
    source: str

    def make_first(self, start: str) -> Offset:
        """The first offset: what the options say, never what the time is."""
        return self._head() | {"start": start}

    def make(
        self,
        position: int,
        backfill: tuple[str, Key | None] | None = None,
        began: str | None = None,
        tables: Sequence[str] | None = None,
    ) -> Offset:
        """An offset at a position; ``began`` is set in the first end, ``tables`` for several."""
        offset = self._head() | {"position": format_timestamp(position)}
        if tables is not None:
            offset["tables"] = sorted(tables)
        if backfill is not None:
            table, after = backfill
            key = list(after) if after is not None else None
            offset["backfill"] = {"table": table, "after": key}
        return offset | {"from": began} if began is not None else offset

    def parse(self, offset: Mapping[str, Any]) -> OffsetContent:
        """What an offset says. Raises CheckpointError for another query's, or a later release's."""
        self._check(offset)
        if "position" not in offset:
            return OffsetContent(None)
        stored = offset.get("backfill")
        backfill = None
        if stored is not None:
            after = stored["after"]
            backfill = (stored["table"], tuple(after) if after is not None else None)
        began = offset.get("from")
        at = parse_micros(began) if began not in (None, EARLIEST) else None
        tables = tuple(offset["tables"]) if "tables" in offset else None
        return OffsetContent(
            parse_micros(offset["position"]), backfill, began is not None, at, tables
        )

    def _head(self) -> Offset:
        return {"version": VERSION, "database": self.database, "source": self.source}

    def _check(self, offset: Mapping[str, Any]) -> None:
        if offset.get("version") not in VERSIONS:
            raise CheckpointError(
                f"the checkpoint contains offsets of version {offset.get('version')};"
                f" this release reads versions {', '.join(map(str, VERSIONS))}"
            )
        expected = (self.database, self.source)
        actual = (offset.get("database"), offset.get("source", offset.get("table")))
        if actual != expected:
            raise CheckpointError(
                f"the checkpoint belongs to {actual[1]} of {actual[0]}, not to"
                f" {expected[1]} of {expected[0]}: use a separate checkpoint for each query"
            )


def parse_micros(text: str) -> int:
    """An RFC 3339 timestamp as microseconds since 1970."""
    return to_micros(datetime.fromisoformat(text))
