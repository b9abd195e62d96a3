"""What a watcher stands on: its database, where it keeps positions, its lease, and its tables."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from google.cloud.spanner_v1.database import Database

from ddl.schema import Schema
from watcher.captures.key_ranges import KeyRangeCapture
from watcher.consumers.leases import Consumers, Lease
from watcher.consumers.positions import (
    FilePositions,
    MemoryPositions,
    Positions,
    SpannerPositions,
    consumers_table,
)
from watcher.errors import LeaseHeldError, NotWatchableError
from watcher.runners.sources import WatchedTables, polled, queries_of, selection_of, streamed
from watcher.settings.watcher import WatchConfig
from watcher.spanner.database import connect
from watcher.spanner.keys import KeyRange
from watcher.tables.epochs import Epochs
from watcher.tables.selection import matches
from watcher.tables.values import TableSpec

NAMELESS = "watch"


@dataclass(frozen=True, slots=True)
class Tables:
    """A schema, and the tables in it that are watched."""

    schema: Schema
    source: WatchedTables


class Connection:
    """Opened when the watcher starts, and again when the server has lost its session."""

    def __init__(self, config: WatchConfig) -> None:
        self._config = config
        self._owner = ""
        self._watched: frozenset[str] = frozenset()
        self._ever_watched: frozenset[str] = frozenset()
        self._epochs: Epochs[Tables]
        self.consumer = config.consumer or NAMELESS
        self.queries = queries_of(config)
        self.lease: Lease | None = None
        self.database: Database
        self.positions: Positions = MemoryPositions()
        self.consumers: Consumers | None = None

    def open(self) -> None:
        """Connects, and makes the tables for positions and consumers where they are missing.

        Anew when the server has lost the client's session, which the client would keep for weeks.
        """
        self.database = connect(self._config.address)
        self._epochs = Epochs(self.queries.stream, self._derive)
        self.positions, self.consumers = self._keepers()

    def begin_run(self) -> None:
        """A run has a token of its own: what an earlier one may still write is refused."""
        self._owner = str(uuid.uuid4())
        self.lease = None

    def acquire(self, pause: Callable[[float], bool]) -> None:
        """Takes the consumer's name, and waits for the lease of an instance that has died.

        ``pause`` waits so many seconds and says whether to give up. Raises LeaseHeldError when that
        instance proves to be alive, unless on standby.
        """
        if self.consumers is None:
            return
        seconds = self._config.lease
        first: int | None = None
        while True:
            try:
                self.lease = self.consumers.acquire(
                    self.consumer, seconds, self._owner, self.selection
                )
            except LeaseHeldError:
                status = self.consumers.status(self.consumer)
                renewed = status.updated_at if status else None
                first = first if first is not None else renewed
                if renewed != first and not self._config.standby:
                    raise
                if pause(seconds / 20):
                    raise
            else:
                return

    @property
    def owner(self) -> str | None:
        """This instance, where it holds a lease."""
        return self.lease.owner if self.lease is not None else None

    @property
    def selection(self) -> str | None:
        """The tables that are polled, as others can read it: clearing waits for this consumer in
        tables that it has not seen yet."""
        if self._config.capture == "change-stream":
            return None
        return selection_of(self._config).to_text()

    def latest_tables(self) -> Tables:
        """The tables to watch, as the schema is now.

        Raises NotWatchableError when the index of a table that was watched is gone and must not be
        done without.
        """
        _, tables = self._epochs.latest()
        return self._checked(tables)

    def tables_at(self, timestamp: int, unread: frozenset[str]) -> Tables:
        """As ``latest_tables``, as the schema is at a read timestamp; the same object for the same
        schema. ``unread`` tables may not have been made watchable yet. Raises VersionExpiredError
        past the version retention."""
        return self._checked(self._epochs.at(timestamp), unread)

    def _checked(self, tables: Tables, unread: frozenset[str] = frozenset()) -> Tables:
        """A table that is still there, but cannot be polled any more, is not left out silently."""
        watched = frozenset(tables.source.tables)
        for name in sorted(self._watched - watched - unread):
            if tables.schema.table(name) is not None:
                raise NotWatchableError(
                    f"table {name} cannot be polled any more: its index is gone; make it again"
                    " with 'spanner-watcher ddl apply', or set on_missing_index = 'scan'"
                )
        self._watched = watched
        self._ever_watched |= watched
        return tables

    def _derive(self, schema: Schema) -> Tables:
        """The tables to watch in a schema. Those that were watched may, with ``on_missing_index =
        "scan"``, go on without their index."""
        config, name = self._config, self.database.name
        if config.capture == "change-stream":
            return Tables(schema, streamed(config, self.queries, schema, name))
        scan = self._ever_watched if config.on_missing_index == "scan" else None
        return Tables(schema, polled(config, self.queries, schema, name, scan))

    def _keepers(self) -> tuple[Positions, Consumers | None]:
        """Where positions are kept, and leases where several machines can see them."""
        kept = self._config.positions
        if kept.keep == "file" and kept.path is not None:
            return FilePositions(kept.path), None
        if kept.keep == "memory" or self._config.consumer is None:
            return self.positions, None
        database = self.database
        if self._config.positions_address != self._config.address:
            database = connect(self._config.positions_address)
        positions = SpannerPositions(database, kept.table)
        positions.create()
        return positions, Consumers(database, consumers_table(kept.table))

    def backfill_captures(self, source: WatchedTables) -> Mapping[str, KeyRangeCapture]:
        """The tables that are to be delivered whole first."""
        specs = {name.casefold(): spec for name, spec in self._config.table.items()}
        captures = {}
        for name in source.tables:
            if not matches(name, self._config.backfill):
                continue
            spec = specs.get(name.casefold(), TableSpec())
            captures[name] = KeyRangeCapture(
                source.capture(name),
                KeyRange(
                    raw_bound(spec.backfill_from),
                    raw_bound(spec.backfill_to),
                    start_inside=True,
                    end_inside=False,
                ),
            )
        return captures


def raw_bound(key: tuple[str | int, ...] | None) -> tuple[str, ...] | None:
    """A key of the configuration as Spanner's API writes it: INT64 as text."""
    return tuple(str(part) for part in key) if key is not None else None
