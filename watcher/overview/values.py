"""What an operator sees, as plain values. Timestamps are microseconds since 1970."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

from watcher.consumers.states import Command, StoredError
from watcher.tables.values import ShardValue


class CaptureKind(StrEnum):
    """Where a consumer reads its changes."""

    POLL = "poll"
    CHANGE_STREAM = "change-stream"


@dataclass(frozen=True, slots=True)
class Count:
    """A number of rows that was counted up to a limit: with ``at_least`` there are as many or
    more."""

    rows: int
    at_least: bool = False

    def __add__(self, other: Count) -> Count:
        return Count(self.rows + other.rows, self.at_least or other.at_least)


@dataclass(frozen=True, slots=True)
class ProofOverview:
    """What ``verify --incremental`` has proved of a table's copy: when it was equal (None: not as a
    whole yet), and which part of its rows (0 to 1) was compared whole within the time it was given.
    ``text`` says it for people."""

    at: int | None
    share: float
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class TableOverview:
    """One table of a consumer.

    ``lag_seconds`` is None for a consumer that has ended, and for one that begins at the beginning.
    ``lost_in_seconds`` is when Spanner deletes records of the change stream that the consumer has
    not read, negative once it may have; None for a polled table, whose rows stay in the index until
    every consumer has delivered them. ``exact_for_seconds`` is how long Spanner keeps the row
    versions at the position: later a window is not an exact cut, but loses nothing.
    """

    table: str
    position: int
    lag_seconds: float | None
    rows_behind: Count | None
    lost_in_seconds: float | None
    exact_for_seconds: float | None
    note: str | None = None
    proof: ProofOverview | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ConsumerOverview:
    """A consumer, a Spark query among them. ``command`` was asked for and is not obeyed yet, or
    still holds (pause). ``seen_at``: when an instance last said that it is alive.
    ``delivered_rows`` and the rate are of its last run."""

    consumer: str
    state: str
    alive: bool
    capture: CaptureKind
    command: Command | None
    ended_at: int | None
    reason: str | None
    seen_at: int | None
    windows: int | None
    delivered_rows: int | None
    rows_per_second: float | None
    dead_letters: int | None
    last_error: StoredError | None
    tables: tuple[TableOverview, ...]

    @property
    def lag_seconds(self) -> float | None:
        """Of the table that is furthest behind."""
        return max((t.lag_seconds for t in self.tables if t.lag_seconds is not None), default=None)

    @property
    def lost_in_seconds(self) -> float | None:
        """Of the table that loses records first."""
        left = [t.lost_in_seconds for t in self.tables if t.lost_in_seconds is not None]
        return min(left, default=None)

    @property
    def exact_for_seconds(self) -> float | None:
        """Of the table whose versions go first."""
        left = [t.exact_for_seconds for t in self.tables if t.exact_for_seconds is not None]
        return min(left, default=None)

    @property
    def rows_behind(self) -> Count | None:
        """Over all tables whose rows can be counted."""
        counts = [t.rows_behind for t in self.tables if t.rows_behind is not None]
        return sum(counts, Count(0)) if counts else None


@dataclass(frozen=True, slots=True, kw_only=True)
class BackfillOverview:
    """A backfill under way. ``after`` is the last key that was delivered, in the JSON of Spanner's
    API. ``left`` are the rows above it.
    ``exact_for_seconds`` is how long Spanner keeps the versions of the snapshot ``at``: later, rows
    that changed since come twice."""

    consumer: str
    table: str
    at: int
    after: tuple[object, ...] | None
    left: Count | None
    exact_for_seconds: float


@dataclass(frozen=True, slots=True)
class ShardCount:
    """Rows of one shard in the index; ``shard`` is None where shards cannot be listed."""

    shard: ShardValue | None
    count: Count


@dataclass(frozen=True, slots=True, kw_only=True)
class IndexOverview:
    """The index that polls of a table read. ``clearable`` are the rows that every consumer has
    delivered, ``slowest_consumer`` the one that clearing waits for; None without consumers.
    ``clears``: the table has a way to be cleared."""

    table: str
    index: str | None
    counted_at: int
    shards: tuple[ShardCount, ...]
    clearable: Count | None
    slowest_consumer: str | None
    clears: bool

    @property
    def rows(self) -> Count:
        """Over all shards."""
        return sum((each.count for each in self.shards), Count(0))


@dataclass(frozen=True, slots=True)
class Sample:
    """Rows of each shard at one time, in the order of ``IndexOverview.shards``."""

    at: int
    rows: tuple[int, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Overview:
    """Everything at one read timestamp. ``counted_at`` is that of the counts, which are taken less
    often; ``history`` has the counts of before, by table, the oldest first."""

    database: str
    read_at: int
    counted_at: int | None
    version_retention_seconds: int
    consumers: tuple[ConsumerOverview, ...]
    backfills: tuple[BackfillOverview, ...]
    indexes: tuple[IndexOverview, ...]
    history: Mapping[str, tuple[Sample, ...]]
