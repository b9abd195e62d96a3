"""Registers a watcher in the tables that it watches, before anything of them is read."""

from __future__ import annotations

import logging
from collections.abc import Mapping

from watcher.captures.poll_tables import PolledTables
from watcher.consumers.divisions import check_undivided
from watcher.consumers.positions import Registration
from watcher.runners.sources import WatchedTables
from watcher.runners.table_rules import map_change_sets, warn_about_cleared
from watcher.runners.watcher_run.connection import Connection
from watcher.runners.watcher_run.lease_keeper import LeaseKeeper
from watcher.runners.watcher_run.table_resolver import TableResolver, Tables
from watcher.settings.fields import resolve_start
from watcher.window import BEGINNING

LOG = logging.getLogger("watcher")


class Registrar:
    """Gives the consumer of a run its first position in each table, so that clearing never
    overtakes it: rule 1 of docs/protocol.md."""

    def __init__(
        self, start: str, connection: Connection, lease: LeaseKeeper, resolver: TableResolver
    ) -> None:
        self._start = start
        self._connection = connection
        self._lease = lease
        self._resolver = resolver
        self._removal_due = False
        self.unread: frozenset[str] = frozenset()
        """Tables that were registered and may not be watchable yet at the consumer's position."""

    def register_first(self, tables: Tables) -> None:
        """Registers the consumer when a run starts."""
        check_undivided(self._connection.positions, self._lease.consumer)
        known = self._read_positions()
        self._register(tables, known, self._resolve_first_start(tables.source, known))

    def register_new(self, tables: Tables, watched_before: frozenset[str]) -> None:
        """Registers tables that the schema at a later timestamp has. Everything in the index of a
        polled one came after it was made watchable; a change stream has delivered everything of it
        up to the least position."""
        known = self._read_positions()
        watched = [at for name, at in known.items() if name in watched_before]
        polling = isinstance(tables.source, PolledTables)
        self._register(tables, known, BEGINNING if polling else min(watched, default=BEGINNING))

    def remove_dropped(self, tables: Tables) -> None:
        """Removes the positions in tables that were dropped, once the windows in which they existed
        are delivered. A table that exists and is not watched any more keeps its position, and
        clearing waits for it until an operator unregisters it."""
        self.unread -= frozenset(tables.source.tables)
        if not self._removal_due:
            return
        known = self._read_positions()
        dropped = [name for name in known if tables.schema.table(name) is None]
        self._connection.positions.remove(self._lease.consumer, dropped, self._lease.owner)
        for name in sorted(known.keys() - set(dropped) - set(tables.source.tables)):
            LOG.warning(
                "consumer '%s' has a position in table %s, which it does not watch any more:"
                " clearing of %s waits for it; to end that, run: spanner-watcher ctl forget %s"
                " --table %s",
                self._lease.consumer,
                name,
                name,
                self._lease.consumer,
                name,
            )
        self._removal_due = False

    def _read_positions(self) -> dict[str, int]:
        return self._connection.positions.load_all(self._lease.consumer)

    def _resolve_first_start(self, source: WatchedTables, known: Mapping[str, int]) -> int | None:
        """Where a table without a position starts; None is now. The tables of a consumer that ran
        before start at its position: what was written to them while it did not run counts. Where it
        selected them before, they are new in the database, as in ``register_new``."""
        start = resolve_start(self._start)
        watched = [known[name] for name in source.tables if name in known]
        if start is not None or not watched:
            return start
        before = self._lease.selection_before
        if before is not None and before == self._resolver.selection:
            return BEGINNING
        return min(watched)

    def _register(self, tables: Tables, known: Mapping[str, int], start: int | None) -> None:
        """Registers the consumer in tables without a position. A table with a backfill starts now;
        so do all others where ``start`` is None."""
        self._removal_due = True
        new = [name for name in tables.source.tables if name not in known]
        self.unread |= frozenset(new)
        if not new:
            return
        registration = self._plan(tables, new, start)
        registered = self._connection.positions.register(registration, self._lease.owner)
        warn_about_cleared(LOG, self._lease.consumer, registered, "use a backfill")

    def _plan(self, tables: Tables, new: list[str], start: int | None) -> Registration:
        filled = tables.backfills.keys() & set(new)
        now_tables = frozenset(new) if start is None else frozenset(filled)
        now = self._resolver.queries.fetch_read_timestamp() if now_tables else BEGINNING
        starts = {n: now if n in now_tables or start is None else start for n in new}
        return Registration(
            self._lease.consumer,
            starts,
            now_tables,
            frozenset(filled),
            cleared_with=map_change_sets(tables.source.capture(name).table for name in new),
        )
