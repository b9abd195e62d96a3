"""The idea that carries everything: an interval of commit timestamps, and its parts."""

from __future__ import annotations

from dataclasses import dataclass, field

BEGINNING = 0
"""A timestamp (microseconds since 1970) below every commit timestamp."""


@dataclass(frozen=True, slots=True, order=True)
class Window:
    """Commit timestamps ``start < t <= end`` of one database, in microseconds since 1970 (UTC).

    ``end`` is always a timestamp at which a strong read was served, so that the window's content
    never changes.
    """

    start: int
    end: int

    def __post_init__(self) -> None:
        if not BEGINNING <= self.start <= self.end:
            raise ValueError(f"a window must not end before it starts: ({self.start}, {self.end}]")

    @property
    def empty(self) -> bool:
        """True when no commit timestamp can lie inside."""
        return self.start == self.end


@dataclass(frozen=True, slots=True)
class ShardGroup:
    """Shard values that one slice reads together; ``None`` in ``values`` is never meant."""

    number: int
    values: tuple[int | str, ...]


@dataclass(frozen=True, slots=True)
class Slice:
    """A part of a window that anyone can read, anywhere; each capture has a class of its own."""

    window: Window


@dataclass(frozen=True, slots=True)
class TableSlice(Slice):
    """A slice of one table."""

    table: str


@dataclass(frozen=True, slots=True)
class ShardSlice(TableSlice):
    """One group of shards of one table.

    ``shards`` is None for a table that is read whole (without a shard column). ``read_at`` is set
    where the slice has a part of a window, which is still read at the end of the whole. ``rows`` is
    how many it has, where they were counted.
    """

    shards: ShardGroup | None = None
    read_at: int | None = None
    rows: int | None = field(default=None, compare=False)
