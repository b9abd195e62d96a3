"""Which tables a watcher watches in a schema."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from spanner_schema.model.schema import Schema
from spanner_schema.model.selection import matches_any
from watcher.captures.key_ranges import KeyRangeCapture
from watcher.runners.sources import (
    WatchedTables,
    make_polled,
    make_queries,
    make_selection,
    resolve_streamed,
    select_polled,
)
from watcher.runners.table_rules import check_still_polled
from watcher.settings.watcher import WatchConfig
from watcher.spanner.keys import KeyRange
from watcher.tables.epochs import Epochs
from watcher.tables.selection import Selection
from watcher.tables.values import TableSpec, WatchedTable

SOURCES_KEPT_MAX = 8
KeepPart = Callable[[Schema, Sequence[WatchedTable]], Sequence[WatchedTable]]
"""Tables of a schema -> the same with the shards of one part of a shared consumer."""


@dataclass(frozen=True, slots=True)
class Tables:
    """A schema, the tables in it that are watched, and those of them that are backfilled.

    ``source`` is the same object in schemas that differ in other tables only. ``polled`` are its
    tables with all their shards, also where the source has those of one part.
    """

    schema: Schema
    source: WatchedTables
    polled: tuple[WatchedTable, ...]
    backfills: Mapping[str, KeyRangeCapture]


class TableResolver:
    """Lasts as long as the watcher, and remembers which tables it has watched."""

    def __init__(self, config: WatchConfig, keep_part: KeepPart | None = None) -> None:
        self._config = config
        self._keep_part = keep_part
        self.queries = make_queries(config)
        self._epochs = Epochs(self.queries.stream, self._resolve)
        self._sources: deque[WatchedTables] = deque(maxlen=SOURCES_KEPT_MAX)
        self._watched: frozenset[str] = frozenset()
        self._ever_watched: frozenset[str] = frozenset()

    @property
    def selection(self) -> Selection | None:
        """The tables that are polled; None for a change stream."""
        if self._config.capture == "change-stream":
            return None
        return make_selection(self._config)

    @property
    def stored_selection(self) -> str:
        """The tables that are watched, and how, in the form that others read: clearing waits for
        those that poll, also in tables that they have not registered yet."""
        streamed = self._config.capture == "change-stream"
        return replace(make_selection(self._config), streamed=streamed).to_text()

    def resolve_latest(self) -> Tables:
        """The tables to watch in the current schema.

        Raises NotWatchableError when the index of a watched table was dropped and is required.
        """
        _, tables = self._epochs.latest()
        return self._check(tables)

    def prepare(self, timestamp: int) -> None:
        """Begins what ``resolve_at`` does, without waiting for it."""
        self._epochs.prepare(timestamp)

    def resolve_at(self, timestamp: int, unread: frozenset[str]) -> Tables:
        """The tables to watch in the schema at a read timestamp; the same object for the same
        schema. ``unread`` tables may not be watchable there yet.

        Raises VersionExpiredError before the version retention period, NotWatchableError.
        """
        return self._check(self._epochs.at(timestamp), unread)

    def _check(self, tables: Tables, unread: frozenset[str] = frozenset()) -> Tables:
        watched = frozenset(tables.source.tables)
        existing = [table.name for table in tables.schema.tables]
        check_still_polled(
            self._watched - watched - unread, existing, "set on_missing_index = 'scan'"
        )
        self._watched = watched
        self._ever_watched |= watched
        return tables

    def _resolve(self, schema: Schema) -> Tables:
        polled = self._select_polled(schema)
        source = self._reuse(self._make_source(schema, polled))
        return Tables(schema, source, polled, self._resolve_backfills(source))

    def _reuse(self, source: WatchedTables) -> WatchedTables:
        """A source that was resolved before and reads the same. A backlog from before the product's
        own tables were made is in another schema than they are: what was learnt of a source lasts,
        and nothing is registered anew for each window."""
        for known in self._sources:
            if known.parts == source.parts:
                return known
        self._sources.append(source)
        return source

    def _select_polled(self, schema: Schema) -> tuple[WatchedTable, ...]:
        """The tables to poll; none for a change stream. Those that were watched may, with
        ``on_missing_index = "scan"``, be read without their index."""
        config = self._config
        if config.capture == "change-stream":
            return ()
        scan = self._ever_watched if config.on_missing_index == "scan" else None
        return select_polled(config, schema, config.address.path, scan)

    def _make_source(self, schema: Schema, polled: Sequence[WatchedTable]) -> WatchedTables:
        config = self._config
        if config.capture == "change-stream":
            return resolve_streamed(config, self.queries, schema, config.address.path)
        mine = self._keep_part(schema, polled) if self._keep_part is not None else polled
        return make_polled(config, self.queries, mine)

    def _resolve_backfills(self, source: WatchedTables) -> dict[str, KeyRangeCapture]:
        """The tables that are delivered whole before their changes."""
        specs = {name.casefold(): spec for name, spec in self._config.table.items()}
        captures = {}
        for name in source.tables:
            if not matches_any(name, self._config.backfill):
                continue
            spec = specs.get(name.casefold(), TableSpec())
            low, high = encode_bound(spec.backfill_from), encode_bound(spec.backfill_to)
            keys = KeyRange(low, high, start_inside=True, end_inside=False)
            captures[name] = KeyRangeCapture(source.capture(name), keys)
        return captures


def encode_bound(key: tuple[str | int, ...] | None) -> tuple[str, ...] | None:
    """A key of the configuration as Spanner's API writes it: INT64 as text."""
    return tuple(str(part) for part in key) if key is not None else None
