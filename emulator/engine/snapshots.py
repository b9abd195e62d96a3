"""Snapshots of the SQLite file that belong to a read timestamp, kept a while for a broken stream.

A query without ORDER BY gives its rows in the order in which SQLite meets them. A stream that is
resumed must meet them in the same order, so a result that is closed before its end leaves its
snapshot behind: the next read at the same timestamp finds it and runs exactly as before.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from emulator.engine.state import SchemaState
from emulator.engine.timeline import Timeline
from emulator.storage.sqlite import Storage, StorageReader
from emulator.wrong import Wrong, is_wrong

READ_STATE = 'SELECT last_commit, schema_version FROM "$state"'
KEPT_MAX = 16
KEPT_SECONDS = 15.0


@dataclass(slots=True)
class Snapshot:
    """A connection inside a read transaction of SQLite, for reads at one timestamp.

    ``state`` is the schema valid at the timestamp. ``last_commit`` is the greatest commit timestamp
    that it shows. ``as_of`` remembers, for each table, whether it had to be read as it was.
    """

    reader: StorageReader
    state: SchemaState
    micros: int
    last_commit: int
    as_of: dict[str, bool] = field(default_factory=dict)

    def tables_changed_since(self, tables: Iterable[str], timeline: Timeline) -> frozenset[str]:
        """The tables, in lower case, of which the snapshot may show later changes."""
        if self.last_commit <= self.micros:
            return frozenset()
        names = [name.casefold() for name in tables]
        archives = self.state.placement.archives
        for name in names:
            if name not in self.as_of:
                changed = timeline.last_change(name) > self.micros
                changed = changed and not is_wrong(Wrong.EXACT_READ_REPEATS)
                self.as_of[name] = changed or name in archives
        return frozenset(name for name in names if self.as_of[name])


class Snapshots:
    """Opens and closes snapshots."""

    def __init__(
        self,
        storage: Storage,
        newest: Callable[[], SchemaState],
        state_at: Callable[[int, SchemaState], SchemaState],
    ) -> None:
        self._storage = storage
        self._newest = newest
        self._state_at = state_at
        self._lock = threading.Lock()
        self._kept: list[tuple[float, Snapshot]] = []

    def open(self, micros: int) -> Snapshot:
        """A snapshot for reads at a timestamp that is readable already."""
        kept = self._find(micros)
        if kept is not None:
            return kept
        while True:
            reader = self._storage.borrow()
            newest = self._newest()
            reader.connection.execute("BEGIN")
            row = reader.connection.execute(READ_STATE).fetchone()
            if row is not None and row[1] == newest.version:
                state = self._state_at(micros, newest)
                return Snapshot(reader, state, micros, int(row[0]))
            self._storage.give_back(reader)

    def close(self, snapshot: Snapshot, *, complete: bool) -> None:
        """Takes a snapshot back; one whose result was not read to its end is kept a while."""
        if complete:
            self._storage.give_back(snapshot.reader)
        else:
            with self._lock:
                self._kept.append((time.monotonic() + KEPT_SECONDS, snapshot))
        self.expire()

    def expire(self, *, everything: bool = False) -> None:
        """Returns the connections of snapshots that no client resumed in time."""
        now = time.monotonic()
        with self._lock:
            fresh = [item for item in self._kept if item[0] > now and not everything]
            fresh = fresh[-KEPT_MAX:]
            gone = [item for item in self._kept if item not in fresh]
            self._kept = fresh
        for _, snapshot in gone:
            self._storage.give_back(snapshot.reader)

    def _find(self, micros: int) -> Snapshot | None:
        """A kept snapshot of this timestamp; a later schema change makes no difference to it."""
        with self._lock:
            for item in self._kept:
                if item[1].micros == micros:
                    self._kept.remove(item)
                    return item[1]
        return None
