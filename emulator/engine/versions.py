"""The schemas of a database over time: a read uses the one valid at its timestamp."""

from __future__ import annotations

import threading
from bisect import bisect_right
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass

from emulator.engine.state import SchemaState
from emulator.storage.archives import Archive
from emulator.storage.history import Placement
from spanner_schema.model.schema import Schema

STATES_MAX = 16
"""How many earlier schemas remember what was compiled for them."""


@dataclass(frozen=True, slots=True)
class SchemaVersion:
    """A schema that is valid from the timestamp ``since`` on, in Unix microseconds."""

    since: int
    schema: Schema


class SchemaVersions:
    """Every schema that a read may still ask for, oldest first. Thread-safe."""

    def __init__(self, versions: Sequence[SchemaVersion], archives: Sequence[Archive]) -> None:
        self._versions = list(versions)
        self._archives = list(archives)
        self._states: OrderedDict[tuple[int, int], SchemaState] = OrderedDict()
        self._lock = threading.Lock()

    def add(self, version: SchemaVersion, archives: Sequence[Archive]) -> None:
        """Adds the schema of a committed change, and the tables that it archived."""
        with self._lock:
            self._versions.append(version)
            self._archives += archives

    def date_back(self, newest: SchemaState) -> None:
        """Makes the newest schema hold from the beginning of time on."""
        with self._lock:
            newest.since = 0
            self._versions = [SchemaVersion(0, newest.schema)]

    def state_at(self, micros: int, newest: SchemaState) -> SchemaState:
        """The schema valid at a timestamp, for a file whose schema is ``newest``."""
        if micros >= newest.since:
            return newest
        with self._lock:
            place = bisect_right(self._versions, micros, key=lambda version: version.since)
            version = self._versions[max(place - 1, 0)]
            key = (version.since, newest.version)
            state = self._states.pop(key, None) or self._state(version, newest)
            self._states[key] = state
            if len(self._states) > STATES_MAX:
                self._states.popitem(last=False)
        return state

    def _state(self, version: SchemaVersion, newest: SchemaState) -> SchemaState:
        """A schema of before over the file as it is now.

        Of several archives of a table the first one made after the version holds its rows. The file
        may be behind: what was put away after ``newest`` is not put away in it.
        """
        nearest: dict[str, Archive] = {}
        for archive in self._archives:
            if version.since < archive.until <= newest.since:
                nearest.setdefault(archive.table, archive)
        placement = Placement(nearest, newest.schema)
        return SchemaState(newest.version, version.schema, {}, version.since, placement)

    def expired_archives(self, horizon: int) -> list[Archive]:
        """The archives of which no read at or above the horizon needs anything."""
        with self._lock:
            return [archive for archive in self._archives if archive.until <= horizon]

    def forget(self, horizon: int, archives: Sequence[Archive]) -> None:
        """Leaves out schemas that no read at or above the horizon sees, and these archives."""
        with self._lock:
            place = bisect_right(self._versions, horizon, key=lambda version: version.since)
            del self._versions[: max(place - 1, 0)]
            self._archives = [each for each in self._archives if each not in archives]
