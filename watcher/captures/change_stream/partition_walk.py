"""Reads a partition of a window, and after it its children, as far as they are its to read."""

from __future__ import annotations

from collections.abc import Iterator

from watcher.captures.change_stream.lineage import Lineage, is_child_reader
from watcher.captures.change_stream.record_values import ChildPartition, Heartbeat
from watcher.captures.change_stream.sizes import RecordSize
from watcher.captures.change_stream.started_queries import (
    PartitionQuery,
    Reach,
    Sized,
    StartedQueries,
)
from watcher.captures.change_stream.stream_slices import PartitionSlice


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
    place: ChildPartition | None = ChildPartition(part.token or "", (), start)
    while place is not None:
        if place.start <= reach.end:
            yield from walk_partition(part, place, ahead, reach, lineage)
        place = lineage.take_next()


def walk_partition(
    part: PartitionSlice,
    place: ChildPartition,
    ahead: StartedQueries[Sized],
    reach: Reach,
    lineage: Lineage,
) -> Iterator[tuple[str, Sized]]:
    """The records of one partition; its children are announced, and asked for."""
    for record in ahead.take(place):
        if isinstance(record, ChildPartition):
            announced = part.with_partitions or is_child_reader(place.token, record)
            if announced and lineage.announce(record):
                ahead.start(record)
        elif not isinstance(record, Heartbeat):
            if isinstance(record, RecordSize) and record.commit_timestamp > reach.end:
                return
            yield place.token, record
