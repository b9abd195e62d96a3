"""The order in which the partitions of a window are read where their keys move while they live.

Spanner: at a record that says that keys moved in at a timestamp, a reader who wants the changes of
each key in order waits until the partitions they came from were read up to that timestamp.

The functions of a stream's placements have partitions of their own, whose tokens need not differ
from those of another function; a row that goes to another placement moves between partitions of two
functions.

One query is open at a time. A partition that has to wait is left where it is, and another one is
read; later its query is opened again at that timestamp, and what was taken there is skipped.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Iterator
from contextlib import closing
from dataclasses import dataclass, field
from heapq import heappop, heappush

from watcher.captures.change_stream.record_values import (
    DataRecord,
    Heartbeat,
    MovingRecord,
    PartitionEnd,
    PartitionMove,
    PartitionStart,
)

Query = Callable[[str, str | None, int, int], Generator[MovingRecord]]
"""The records of a function's partition, or, without a token, its partitions; both ends are
inside."""

Partition = tuple[str, str]
"""A function, and the token of one of its partitions."""

Identity = tuple[str, str, str]
"""What no other record of a partition has at its timestamp."""


@dataclass(slots=True)
class PartitionProgress:
    """How far a partition was read: everything below ``at``, and ``taken`` at it.

    ``sources`` are the partitions that it waits for, at a record of the timestamp ``at``. Its
    queries can start at ``began`` or later.
    """

    partition: Partition
    began: int
    at: int
    sources: tuple[str, ...] = ()
    taken: set[Identity] = field(default_factory=set)

    @property
    def token(self) -> str:
        """The token of the partition."""
        return self.partition[1]

    @property
    def opens_at(self) -> int:
        """Where a query of what is left starts: where Spanner cannot refuse it, even if the
        partition ended right before ``at``."""
        return max(self.began, self.at - 1)

    def take(self, record: MovingRecord) -> bool:
        """Notes a record; False for one that was taken before."""
        if isinstance(record, Heartbeat):
            self.advance(record.timestamp + 1)
            return True
        timestamp, identity = identify(record)
        self.advance(timestamp)
        if timestamp < self.at or identity in self.taken:
            return False
        self.taken.add(identity)
        return True

    def advance(self, timestamp: int) -> None:
        """Everything below a timestamp was read."""
        if timestamp > self.at:
            self.at = timestamp
            self.taken.clear()


class MovingKeys:
    """The partitions of one window: which are to be read, which wait for others."""

    def __init__(self) -> None:
        self._unfinished: dict[Partition, PartitionProgress] = {}
        self._untouched: list[tuple[int, int, Partition]] = []
        """A heap of those that were not taken yet, by where they begin, then as announced."""
        self._taken: dict[Partition, int] = {}
        """Those that were taken and have to wait, with their numbers among those announced."""
        self._count = 0
        self._finished: set[Partition] = set()
        self._finished_tokens: set[str] = set()

    def announce(self, function: str, started: PartitionStart, at: int | None = None) -> None:
        """Partitions of a function are to be read, from ``at`` on if that is later than where they
        start. One that several records announce is read once."""
        for token in started.tokens:
            partition = (function, token)
            if partition in self._finished or partition in self._unfinished:
                continue
            progress = PartitionProgress(partition, started.timestamp, at or started.timestamp)
            self._unfinished[partition] = progress
            self._count += 1
            heappush(self._untouched, (progress.at, self._count, partition))

    def finish(self, progress: PartitionProgress) -> None:
        """A partition has been read to its end, or to the window's."""
        del self._unfinished[progress.partition]
        del self._taken[progress.partition]
        self._finished.add(progress.partition)
        self._finished_tokens.add(progress.token)

    def take_next(self) -> PartitionProgress | None:
        """The partition to be read now; None when all were read.

        Where each waits for another one (two that exchange keys at one timestamp), the one that
        waits at the least timestamp goes on: all others have been read up to their own records
        there, or further.
        """
        waiting = [
            (self._unfinished[partition].at, number, partition)
            for partition, number in self._taken.items()
        ]
        free = [each for each in waiting if self.may_go_on(self._unfinished[each[2]])]
        first = min([*free, *self._untouched[:1]], default=None) or min(waiting, default=None)
        if first is None:
            return None
        if self._untouched[:1] == [first]:
            heappop(self._untouched)
            self._taken[first[2]] = first[1]
        progress = self._unfinished[first[2]]
        progress.sources = ()
        return progress

    def may_go_on(self, progress: PartitionProgress) -> bool:
        """True when every partition that keys came from was read up to the move."""
        return all(self._is_past(source, progress) for source in progress.sources)

    def _is_past(self, source: str, progress: PartitionProgress) -> bool:
        """Whether a source was read up to the move. A source that the function of the
        partition does not have is in another one; one that nobody has announced yet is still to be:
        until then all others are read. That of a placement which is not read at all never is."""
        own = (progress.partition[0], source)
        if own in self._finished or own == progress.partition:
            return True
        known = self._unfinished.get(own)
        if known is not None:
            return known.at > progress.at
        if source in self._finished_tokens:
            return True
        others = [p for p in self._unfinished.values() if p.partition != progress.partition]
        elsewhere = [each for each in others if each.token == source]
        return all(each.at > progress.at for each in elsewhere or others)


def read_moving_keys(
    query: Query, functions: Iterable[str], start: int, end: int
) -> Iterator[tuple[str, DataRecord]]:
    """The changes of the window (start, end], each with its partition's token: those of a key in
    commit order, all of them once.

    The partitions are those that were active at ``start`` and all that these announce. Not those at
    ``start`` + 1 µs: one that ended there may have changes of that timestamp. They are read from
    ``start`` on, because one of them may have ended there; what is not of the window is skipped.
    """
    moving = MovingKeys()
    for function in functions:
        for record in query(function, None, start, end):
            if isinstance(record, PartitionStart):
                moving.announce(function, record, max(record.timestamp, start + 1))
    while (progress := moving.take_next()) is not None:
        with closing(query(*progress.partition, progress.opens_at, end)) as records:
            for change in read_on(moving, progress, records):
                yield progress.token, change


def read_on(
    moving: MovingKeys, progress: PartitionProgress, records: Iterable[MovingRecord]
) -> Iterator[DataRecord]:
    """The changes of a partition, until it ends, the window ends, or it has to wait."""
    for record in records:
        if not progress.take(record):
            continue
        if isinstance(record, DataRecord):
            yield record
        elif isinstance(record, PartitionStart):
            moving.announce(progress.partition[0], record)
        elif isinstance(record, PartitionEnd):
            break
        elif isinstance(record, PartitionMove):
            progress.sources = record.sources
            if not moving.may_go_on(progress):
                return
    moving.finish(progress)


def identify(
    record: DataRecord | PartitionStart | PartitionMove | PartitionEnd,
) -> tuple[int, Identity]:
    """The timestamp of a record, and what tells it from others there. Spanner: its sequence is
    unique in the partition; that of changes is unique in their transaction."""
    name = type(record).__name__
    if isinstance(record, DataRecord):
        return record.commit_timestamp, (name, record.transaction_id, record.sequence)
    return record.timestamp, (name, "", record.sequence)
