"""How many calls of Spanner a consumer makes: what docs/cost.md counts, as a formula.

A call is a request to Spanner. Each kind of work is so many calls, so many times an hour:

- a **look**, every ``pause``: by polling a query for every fifty tables; of a change stream its
  read timestamp, its partitions (one query), and each partition (one query each);
- **listening** (a change stream that is quiet): its partitions and each of them, once a pause;
- a **window** with changes: counts (one query for each changed table, where there are several),
  the schema's digest, the rows (one query for each changed table and slice), and the position (a
  read and a commit). Of a change stream a window is its look, and the position;
- each ``refresh`` without changes: the digest, and the position;
- a **lease** is renewed four times in its length: an update and a commit.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil
from typing import Literal

from watcher.captures.change_stream.listening import PARTITIONS_MAX
from watcher.captures.poll_tables import TABLES_PER_QUERY
from watcher.consumers.holding import RENEWALS_PER_LEASE
from watcher.settings.watch_config import IDLE_SECONDS_MAX

HOUR = 3_600.0
POSITION_CALLS = RENEWAL_CALLS = 2
"""What is read is checked in the transaction that writes."""
CaptureKind = Literal["poll", "change-stream", "push"]


@dataclass(frozen=True, slots=True)
class Consumption:
    """One consumer; times in seconds. ``changing`` of its tables change between two polls.
    ``partitions`` are those of the change stream; ``listens`` as ``stream.listen``."""

    capture: CaptureKind = "poll"
    tables: int = 1
    shards: int = 16
    changing: int = 0
    slices: int = 1
    partitions: int = 1
    interval: float = 1.0
    idle_interval: float = 0.0
    refresh: float = 10.0
    lease: float = 15.0
    listens: bool = True

    @property
    def listening(self) -> bool:
        """Whether it hears of changes while there are none."""
        few = self.partitions <= PARTITIONS_MAX
        return self.capture == "change-stream" and self.listens and few and not self.changing

    @property
    def pause(self) -> float:
        """Seconds from one look to the next."""
        if self.changing:
            return self.interval
        longest = max(self.interval, self.idle_interval)
        if self.listening:  # until what is heard has ended
            longest = max(longest, min(self.refresh, IDLE_SECONDS_MAX)) + self.interval
        return ceil(longest / self.interval - 1e-9) * self.interval

    @property
    def idle_saves(self) -> float:
        """Seconds from one look that reads the schema, and saves the positions of tables that do
        not change, to the next: the first that is later than ``refresh`` after it."""
        if self.capture == "push":
            return self.refresh
        return (self.refresh // self.pause + 1) * self.pause


@dataclass(frozen=True, slots=True)
class CallCosts:
    """Calls an hour by what they are for. ``seeks`` are the places of indexes at which queries
    begin to read, in an hour: one for each shard of a table that is looked at."""

    looks: float
    listening: float
    windows: float
    schema: float
    positions: float
    leases: float
    seeks: float

    @property
    def calls(self) -> float:
        """All of them."""
        work = self.looks + self.listening + self.windows
        return work + self.schema + self.positions + self.leases


def count_calls(of: Consumption) -> CallCosts:
    """The calls of an hour."""
    polls = HOUR / of.pause
    queries, listening, windows = count_queries(of)
    saves = HOUR / of.idle_saves
    digests = saves
    if of.changing:
        saves = HOUR if of.capture == "push" else polls
        digests = polls if of.capture == "poll" else digests
    return CallCosts(
        looks=polls * queries,
        listening=polls * listening,
        windows=polls * windows,
        schema=digests,
        positions=saves * POSITION_CALLS,
        leases=HOUR / of.lease * RENEWALS_PER_LEASE * RENEWAL_CALLS,
        seeks=polls * of.tables * of.shards if of.capture == "poll" else 0.0,
    )


def count_queries(of: Consumption) -> tuple[float, float, float]:
    """The queries of a look, of listening after it, and of the window that it finds."""
    if of.capture == "push":
        return 0.0, 0.0, 0.0  # open all the time
    if of.capture == "change-stream":
        partitions = 1 + of.partitions
        return 1.0 + partitions, partitions if of.listening else 0.0, 0.0
    counts = of.changing if of.changing > 1 else 0
    return float(ceil(of.tables / TABLES_PER_QUERY)), 0.0, float(counts + of.changing * of.slices)
