"""Registers a watcher in the tables that it watches, before anything of them is read."""

from __future__ import annotations

import logging
import sys
from collections.abc import Mapping
from dataclasses import replace

from watcher.consumers.positions import Registration
from watcher.consumers.positions.selections import parse_selection
from watcher.consumers.starts import Standing, choose_start
from watcher.model.errors import ConfigurationError
from watcher.model.log_events.running import POSITION_LEFT_BEHIND, POSITION_VOID, START_IN_FUTURE
from watcher.model.window import BEGINNING
from watcher.runners.table_rules import map_change_sets, warn_about_cleared
from watcher.runners.watcher_run.connection import Connection
from watcher.runners.watcher_run.lease_keeper import LeaseKeeper
from watcher.runners.watcher_run.table_resolver import TableResolver, Tables
from watcher.settings.fields import resolve_start
from watcher.tables.replaced import read_replaced
from watcher.tables.selection import Selection

LOG = logging.getLogger("watcher")


class Registrar:
    """Gives the consumer of a run its first position in each table, so that clearing never
    overtakes it: rule 1 of docs/protocol.md."""

    def __init__(
        self,
        start: str,
        connection: Connection,
        lease: LeaseKeeper,
        resolver: TableResolver,
        once: bool = False,
    ) -> None:
        """``once``: the run ends with what is there now."""
        self._start = start
        self._once = once
        self._connection = connection
        self._lease = lease
        self._resolver = resolver
        self._removal_due = False
        self._absent: dict[str, int] = {}
        """Timestamps at which tables were not there that have a position: one below is that of
        another table of the name."""
        self.unread: frozenset[str] = frozenset()
        """Tables that were registered and may not be watchable yet at the consumer's position."""

    def register_first(self, tables: Tables) -> None:
        """Registers the consumer when a run starts, and stores which tables it polls from now on.
        Which ones it polled before says what is new in the database, and what was only selected
        now. A table that was dropped and created again while it did not run is new."""
        if self._resolver.selection is not None:
            known, address = self._read_positions(), self._resolver.queries.address
            self._absent = read_replaced(address, known, tables.schema.dialect)
        text = self._connection.positions.load_selection(self._lease.consumer)
        before = None
        if text is not None:
            before = parse_selection(text, self._lease.consumer, ())
            before = None if before.streamed else before
        self._register(
            tables, frozenset(tables.source.tables), before, text != self._resolver.stored_selection
        )

    def register_new(self, tables: Tables, watched_before: frozenset[str], at: int) -> None:
        """Registers tables of the schema that is valid ``at`` a later timestamp."""
        known = self._read_positions()
        gone = [name for name in known if tables.schema.table(name) is None]
        self._absent |= {name: max(at, self._absent.get(name, at)) for name in gone}
        self._register(tables, watched_before, self._resolver.selection, at=at)

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
            POSITION_LEFT_BEHIND.log(LOG, consumer=self._lease.consumer, table=name)
        self._removal_due = False

    def _read_positions(self) -> dict[str, int]:
        return self._connection.positions.load_all(self._lease.consumer)

    def _register(
        self,
        tables: Tables,
        watched: frozenset[str],
        selection: Selection | None,
        selects_anew: bool = False,
        at: int = sys.maxsize,
    ) -> None:
        """Registers the consumer in tables of the schema that is valid ``at`` a timestamp and in
        which it has no position, by where it is in those that are ``watched`` and by what it polled
        until now."""
        self._removal_due = True
        known = self._read_positions()
        void = self._find_void(tables, known, at)
        known = {name: at for name, at in known.items() if name not in void}
        new = [name for name in tables.source.tables if name not in known]
        self.unread |= frozenset(new)
        if not new and not selects_anew:
            return
        positions = {name: at for name, at in known.items() if name in watched}
        starts = self._choose_starts(tables, new, Standing(positions, selection))
        self._check_future(starts)
        starts |= dict.fromkeys(void.keys() - tables.backfills.keys(), BEGINNING)
        registration = replace(self._plan(tables, new, starts), replaced=void)
        registered = self._connection.positions.register(registration, self._lease.owner)
        warn_about_cleared(LOG, self._lease.consumer, registered, "use a backfill")

    def _find_void(self, tables: Tables, known: Mapping[str, int], at: int) -> dict[str, int]:
        """Tables whose position is that of another one, and when they had taken its name; a backlog
        may end where it is still there. A change stream goes on: it has the changes of both."""
        if self._resolver.selection is None:
            return {}
        void = {
            name: gone
            for name, gone in self._absent.items()
            if name in tables.source.tables and BEGINNING < known.get(name, gone) < gone <= at
        }
        for name in sorted(void):
            POSITION_VOID.log(LOG, table=name, consumer=self._lease.consumer)
        return void

    def _choose_starts(
        self, tables: Tables, new: list[str], standing: Standing
    ) -> dict[str, int | None]:
        """Where each table begins; None is now, where a table with a backfill begins, too."""
        start = resolve_start(self._start)
        if self._resolver.selection is None and standing.positions:
            start = None  # the stream may not reach back to it any more
        return {
            name: None if name in tables.backfills else choose_start(standing, name, start)
            for name in new
        }

    def _check_future(self, starts: Mapping[str, int | None]) -> None:
        """Says that nothing comes before the start that is asked for, where it is later than now.
        Raises ConfigurationError where the run would end before that."""
        start = resolve_start(self._start)
        if not start or start not in starts.values():
            return
        seconds = (start - self._resolver.queries.fetch_read_timestamp()) / 1_000_000
        if seconds <= 0:
            return
        ahead = f"start = '{self._start}' is {seconds:.0f} s ahead of Spanner's clock"
        if self._once:
            raise ConfigurationError(
                f"{ahead}, and --once delivers what is there now: use an earlier start"
            )
        START_IN_FUTURE.log(LOG, detail=ahead)

    def _plan(
        self, tables: Tables, new: list[str], starts: Mapping[str, int | None]
    ) -> Registration:
        now_tables = frozenset(name for name, at in starts.items() if at is None)
        now = self._resolver.queries.fetch_read_timestamp() if now_tables else BEGINNING
        return Registration(
            self._lease.consumer,
            {name: now if at is None else at for name, at in starts.items()},
            now_tables,
            frozenset(tables.backfills.keys() & set(new)),
            cleared_with=map_change_sets(tables.source.capture(name).table for name in new),
            selection=self._resolver.stored_selection,
        )
