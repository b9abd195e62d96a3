"""Reads a partition of a window, and after it its children, as far as they are its to read: some of
their queries are under way before it is their turn."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Generic, Protocol, TypeVar

from watcher.captures.change_stream.lineage import Lineage, is_child_reader
from watcher.captures.change_stream.record_values import ChildPartition, Heartbeat
from watcher.captures.change_stream.sizes import RecordSize
from watcher.captures.change_stream.stream_slices import PartitionSlice

AHEAD = 8
"""How many partitions of a window are asked for beside the one that is read."""
Sized = TypeVar("Sized")
"""What is read of records: all of them, one by one or many at once, or how large they are."""


class Reach(Protocol):
    """How far to read: the end of a window, or one that moves while it is read."""

    @property
    def end(self) -> int:
        """The last timestamp (inside)."""
        ...


PartitionQuery = Callable[[str | None, int, int], Iterator[Sized | Heartbeat | ChildPartition]]
"""Reads a partition, or, without a token, the partitions; both timestamps are inside."""


class StartedQueries(Generic[Sized]):
    """The queries of partitions that are to be read, some of which are under way before it is their
    turn: a window costs what its records cost, and not a round trip for each partition."""

    def __init__(self, query: PartitionQuery[Sized], reach: Reach) -> None:
        self._query = query
        self._reach = reach
        self._started: dict[str, Iterator[Sized | Heartbeat | ChildPartition]] = {}

    def start(self, child: ChildPartition) -> None:
        """A partition is going to be read."""
        if len(self._started) < AHEAD and child.start <= self._reach.end:
            self._started[child.token] = self._ask(child)

    def take(self, child: ChildPartition) -> Iterator[Sized | Heartbeat | ChildPartition]:
        """The records of a partition whose turn it is."""
        started = self._started.pop(child.token, None)
        return started if started is not None else self._ask(child)

    def _ask(self, child: ChildPartition) -> Iterator[Sized | Heartbeat | ChildPartition]:
        return self._query(child.token or None, child.start, self._reach.end)


def walk_partitions(
    part: PartitionSlice, query: PartitionQuery[Sized], reach: Reach
) -> Iterator[tuple[str, Sized]]:
    """The records of a partition and its children, each with the token of its partition."""
    # assumes: stream-start-inside
    # assumes: stream-end-inside
    # assumes: stream-commit-order
    # assumes: stream-children-last
    # assumes: stream-key-in-one-partition
    lineage = Lineage(part.window.end)
    ahead = StartedQueries(query, reach)
    start = max(part.window.start + 1, part.began)
    child: ChildPartition | None = ChildPartition(part.token or "", (), start)
    while child is not None:
        if child.start <= reach.end:
            yield from walk_partition(part, child, ahead, reach, lineage)
        child = lineage.take_next()


def walk_partition(
    part: PartitionSlice,
    child: ChildPartition,
    ahead: StartedQueries[Sized],
    reach: Reach,
    lineage: Lineage,
) -> Iterator[tuple[str, Sized]]:
    """The records of one partition; its children are announced, and asked for."""
    for record in ahead.take(child):
        if isinstance(record, ChildPartition):
            announced = part.with_partitions or is_child_reader(child.token, record)
            if announced and lineage.announce(record):
                ahead.start(record)
        elif not isinstance(record, Heartbeat):
            if isinstance(record, RecordSize) and record.commit_timestamp > reach.end:
                return
            yield child.token, record
