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
