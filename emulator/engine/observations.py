"""What a read-write transaction read before it took the turn to write, and whether it still holds.

Until its first DML or its commit, a read-write transaction reads a snapshot and locks nothing. When
it takes the turn, every result is looked at again: a result that would differ now aborts it. So all
that it read is true at its commit timestamp, which is what serializable means.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from emulator.engine.state import SchemaState
from emulator.engine.timeline import Timeline
from emulator.values.requests import Stored

Row = tuple[Stored, ...]

MASK = (1 << 64) - 1


@dataclass(frozen=True, slots=True)
class Observation:
    """A result: the tables it came from, its fingerprint, and how to read it again."""

    tables: tuple[str, ...]
    fingerprint: tuple[int, int]
    again: Callable[[], Iterable[Row]]


@dataclass(slots=True)
class Observations:
    """All results read at one timestamp with one schema."""

    read_timestamp_micros: int
    state: SchemaState
    seen: list[Observation] = field(default_factory=list)

    def add(
        self, tables: Iterable[str], rows: Iterable[Row], again: Callable[[], Iterable[Row]]
    ) -> None:
        """Remembers a result."""
        names = tuple(name.casefold() for name in tables)
        self.seen.append(Observation(names, fingerprint(rows), again))

    def hold(self, timeline: Timeline, state: SchemaState) -> bool:
        """Whether every result would be the same now. The caller holds the turn to write."""
        if state is not self.state:
            return not self.seen
        for observation in self.seen:
            changed = (
                timeline.last_change(name) > self.read_timestamp_micros
                for name in observation.tables
            )
            if any(changed) and fingerprint(observation.again()) != observation.fingerprint:
                return False
        return True


def fingerprint(rows: Iterable[Row]) -> tuple[int, int]:
    """The number of rows and a sum over them: SQLite may give them in another order."""
    count = total = 0
    for row in rows:
        count += 1
        total = (total + hash((tag_types(row), len(row)))) & MASK
    return count, total


def tag_types(row: Row) -> tuple[tuple[str, Stored], ...]:
    """A row whose hash differs for 1, 1.0 and TRUE."""
    return tuple((type(value).__name__, value) for value in row)
