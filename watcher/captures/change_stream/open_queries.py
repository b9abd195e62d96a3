"""Queries of a change stream that stay open: changes come as they are committed, in milliseconds.

One thread reads each partition; one queue keeps the order of each partition. Children are opened
when everything of their parents was taken from it, so that the order of every key is commit order.
"""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from queue import Empty, Full, Queue

from watcher.captures.change_stream.records import ChildPartition, DataRecord, Heartbeat, Record

QUEUE_CHANGES_MAX = 10_000
TAKEN_CHANGES_MAX = 10_000
"""About: a record is never parted, and may have thousands of changes. Counting records instead held
a whole backlog in memory, and handed it over as one batch."""
PAUSE_SECONDS = 0.2

Read = Callable[[str | None, int], Iterator[Record]]
"""Opens a query from a timestamp on: of a partition, or, without a token, for the partitions."""


@dataclass(slots=True)
class OpenPartition:
    """A partition that is being read. Everything of it below ``reached`` was taken."""

    token: str
    reached: int
    children: list[ChildPartition] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class PartitionEnd:
    """A thread has ended: with its partition, or with an error."""

    error: Exception | None = None


QueuedItem = tuple[OpenPartition, Record | PartitionEnd]


def count_changes(record: Record | PartitionEnd) -> int:
    """The changes of a record; one for what has none."""
    return max(1, len(record.mods)) if isinstance(record, DataRecord) else 1


class ChangeQueue(Queue[QueuedItem]):
    """A queue whose size is the number of changes in it, by the methods that ``Queue`` has for
    other orders and sizes."""

    def _init(self, maxsize: int) -> None:  # noqa: ARG002 (as Queue has it)
        self._items: deque[QueuedItem] = deque()
        self._changes = 0

    def _qsize(self) -> int:
        return self._changes

    def _put(self, item: QueuedItem) -> None:
        self._items.append(item)
        self._changes += count_changes(item[1])

    def _get(self) -> QueuedItem:
        item = self._items.popleft()
        self._changes -= count_changes(item[1])
        return item


class OpenQueries:
    """The open queries of one reader, from a timestamp (outside) on."""

    def __init__(self, read: Read, start: int) -> None:
        self._read = read
        self._queue = ChangeQueue(QUEUE_CHANGES_MAX)
        self._closed = threading.Event()
        self._open: dict[str, OpenPartition] = {}
        self._finished: set[str] = set()
        self._reached = start
        roots = [each for each in read(None, start + 1) if isinstance(each, ChildPartition)]
        self._waiting = {child.token: child for child in roots}
        self._open_next()

    @property
    def watermark(self) -> int:
        """Every change at or below it was taken: the least of all partitions, also of those that
        have not started. It never goes back."""
        reached = [partition.reached for partition in self._open.values()]
        reached += [child.start for child in self._waiting.values()]
        self._reached = max(self._reached, min(reached, default=0) - 1)
        return self._reached

    def take(self, seconds: float) -> list[tuple[str, DataRecord]]:
        """The changes that have come, each with its partition, about 10,000 at most; waits for the
        first this long.

        Raises the error that ended a query.
        """
        taken: list[tuple[str, DataRecord]] = []
        changes = 0
        deadline = time.monotonic() + seconds
        while changes < TAKEN_CHANGES_MAX:
            left = 0.0 if taken else max(0.0, deadline - time.monotonic())
            try:
                partition, record = (
                    self._queue.get(timeout=left) if left else self._queue.get(False)
                )
            except Empty:
                break
            if isinstance(record, DataRecord):
                taken.append((partition.token, record))
                changes += count_changes(record)
            self._update(partition, record)
        return taken

    def close(self) -> None:
        """Ends the threads; each notices with its next record or heartbeat."""
        self._closed.set()

    def _update(self, partition: OpenPartition, record: Record | PartitionEnd) -> None:
        """Keeps what a record says of its partition."""
        if isinstance(record, DataRecord):
            # More may come at the same timestamp.
            partition.reached = max(partition.reached, record.commit_timestamp)
        elif isinstance(record, Heartbeat):
            partition.reached = max(partition.reached, record.timestamp + 1)
        elif isinstance(record, ChildPartition):
            partition.children.append(record)
        elif record.error is not None:
            raise record.error
        else:
            self._finish(partition)
        if self._waiting:
            self._open_next()

    def _finish(self, partition: OpenPartition) -> None:
        """A partition has ended; both parents of a merged child name it."""
        del self._open[partition.token]
        self._finished.add(partition.token)
        for child in partition.children:
            if child.token not in self._finished and child.token not in self._open:
                self._waiting.setdefault(child.token, child)

    def _open_next(self) -> None:
        for child in sorted(self._waiting.values(), key=lambda each: each.start):
            if self._is_ready(child):
                del self._waiting[child.token]
                partition = OpenPartition(child.token, child.start)
                self._open[child.token] = partition
                thread = threading.Thread(target=self._follow, args=(partition,), daemon=True)
                thread.start()

    def _is_ready(self, child: ChildPartition) -> bool:
        """True when all its parents have ended. An unknown parent ended before this reader started,
        unless a partition that has not been read as far as that is still to name it."""
        if all(parent in self._finished for parent in child.parents):
            return True
        if any(parent in self._open or parent in self._waiting for parent in child.parents):
            return False
        reached = all(partition.reached >= child.start for partition in self._open.values())
        return reached and all(each.start >= child.start for each in self._waiting.values())

    def _follow(self, partition: OpenPartition) -> None:
        """Reads a partition until it ends. A query that ends without naming children has not
        reached the end of its partition: it is opened again where it stopped."""
        point = ReadPoint(partition.reached)
        ended = False
        try:
            while not ended and not self._closed.is_set():
                empty = True
                for record in self._read(partition.token, point.at):
                    empty = False
                    ended = ended or isinstance(record, ChildPartition)
                    if point.is_new(record) and not self._put(partition, record):
                        return
                if empty:
                    self._closed.wait(PAUSE_SECONDS)
            self._put(partition, PartitionEnd())
        except Exception as error:  # noqa: BLE001 (handed to the reader)
            self._put(partition, PartitionEnd(error))

    def _put(self, partition: OpenPartition, record: Record | PartitionEnd) -> bool:
        """Waits while the queue is full; False once the reader is closed."""
        while not self._closed.is_set():
            try:
                self._queue.put((partition, record), timeout=PAUSE_SECONDS)
            except Full:
                continue
            return True
        return False


@dataclass(slots=True)
class ReadPoint:
    """How far a partition was read: a query that is opened again at ``at`` repeats records."""

    at: int
    _seen: set[tuple[str, str]] = field(default_factory=set)

    def is_new(self, record: Record) -> bool:
        """True for a record that did not come before."""
        if isinstance(record, Heartbeat):
            self._reach(record.timestamp)
        if not isinstance(record, DataRecord):
            return True
        self._reach(record.commit_timestamp)
        identity = (record.transaction_id, record.sequence)
        if record.commit_timestamp < self.at or identity in self._seen:
            return False
        self._seen.add(identity)
        return True

    def _reach(self, timestamp: int) -> None:
        if timestamp > self.at:
            self.at, self._seen = timestamp, set()
