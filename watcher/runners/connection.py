"""What a watcher stands on: its database, where it keeps positions, its lease, and its tables."""

from __future__ import annotations

import uuid
from collections.abc import Callable

from google.cloud.spanner_v1.database import Database

from ddl.schema import Schema
from watcher.captures.backfill import BackfillCapture
from watcher.consumers import Consumers, Lease
from watcher.database import connect
from watcher.errors import LeaseHeldError, NotWatchableError
from watcher.positions import (
    FilePositions,
    MemoryPositions,
    Positions,
    SpannerPositions,
    consumers_table,
)
from watcher.positions.backfills import (
    Backfills,
    FileBackfills,
    MemoryBackfills,
    SpannerBackfills,
)
from watcher.selection import matches
from watcher.sources import WatchedTables, polled, queries_of, streamed
from watcher.table import TableSpec, read_schema
from watcher.watch_config import WatchConfig

NAMELESS = "watch"


class Connection:
    """Opened when the watcher starts, and again when the server has lost its session."""

    def __init__(self, config: WatchConfig) -> None:
        self._config = config
        self._owner = str(uuid.uuid4())
        self._schema = Schema()
        self._statements: tuple[str, ...] = ()
        self.consumer = config.consumer or NAMELESS
        self.queries = queries_of(config)
        self.lease: Lease | None = None
        self._keeper: Database
        self.database: Database
        self.positions: Positions = MemoryPositions()
        self.consumers: Consumers | None = None

    def open(self) -> None:
        """Connects, and makes the tables for positions and consumers where they are missing.

        Anew when the server has lost the client's session, which the client would keep for weeks.
        """
        self.database = connect(self._config.address)
        self.positions, self.consumers = self._keepers()

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
                self.lease = self.consumers.acquire(self.consumer, seconds, self._owner)
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

    def tables_changed(self) -> bool:
        """True when the database's DDL is not what it was when ``source`` read it."""
        self.database.reload()
        return tuple(self.database.ddl_statements) != self._statements

    def source(self, before: frozenset[str] = frozenset()) -> WatchedTables:
        """The tables to watch, as the schema is now. ``before`` are those watched until now: with
        ``on_missing_index = "scan"`` they may go on without their index.

        Raises NotWatchableError when such an index is gone and must not be done without.
        """
        config = self._config
        self._schema = read_schema(self.database)
        self._statements = tuple(self.database.ddl_statements)
        if config.capture == "change-stream":
            return streamed(config, self.queries, self._schema, self.database.name)
        scan = before if config.on_missing_index == "scan" else None
        found = polled(config, self.queries, self._schema, self.database.name, scan)
        self._check_kept(before - set(found.tables))
        return found

    def _check_kept(self, gone: frozenset[str]) -> None:
        """A table that is still there, but cannot be polled any more, is not left out silently."""
        unindexed = [name for name in sorted(gone) if self._schema.table(name) is not None]
        if unindexed:
            raise NotWatchableError(
                f"table {unindexed[0]} cannot be polled any more: its index is gone; make it again"
                " with 'spanner-watcher ddl apply', or set on_missing_index = 'scan'"
            )

    def _keepers(self) -> tuple[Positions, Consumers | None]:
        """Where positions are kept, and leases where several machines can see them."""
        kept = self._config.positions
        if kept.keep == "file" and kept.path is not None:
            return FilePositions(kept.path), None
        if kept.keep == "memory" or self._config.consumer is None:
            return self.positions, None
        database = self._keeper = self.database
        if self._config.positions_address != self._config.address:
            database = self._keeper = connect(self._config.positions_address)
        positions = SpannerPositions(database, kept.table)
        positions.create()
        consumers = Consumers(database, consumers_table(kept.table))
        consumers.create()
        return positions, consumers

    def backfills(self) -> Backfills:
        """Where the progress of backfills is kept: beside the positions."""
        kept = self._config.positions
        if isinstance(self.positions, FilePositions) and kept.path is not None:
            return FileBackfills(kept.path.with_name(kept.path.name + ".backfills"))
        if self.consumers is None:
            return MemoryBackfills()
        found = SpannerBackfills(self._keeper, kept.table)
        found.create()
        return found

    def backfill_captures(self, source: WatchedTables) -> dict[str, BackfillCapture]:
        """The tables that are to be delivered whole first."""
        specs = {name.casefold(): spec for name, spec in self._config.table.items()}
        captures = {}
        for name in source.tables:
            if not matches(name, self._config.backfill):
                continue
            spec = specs.get(name.casefold(), TableSpec())
            captures[name] = BackfillCapture(
                source.capture(name), raw_bound(spec.backfill_from), raw_bound(spec.backfill_to)
            )
        return captures


def raw_bound(key: tuple[str | int, ...] | None) -> tuple[str, ...] | None:
    """A key of the configuration as Spanner's API writes it: INT64 as text."""
    return tuple(str(part) for part in key) if key is not None else None
