"""Queries of a change stream that stay open: changes come as they are committed, in milliseconds.

One thread receives each partition; one queue keeps the order of each partition. Children are opened
when everything of their parents was taken from it, so that the order of every key is commit order.
"""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from queue import Empty, Full, Queue

from watcher.captures.change_stream.record_columns import Arrival, RecordColumns
from watcher.captures.change_stream.record_values import ChildPartition, Heartbeat, Record
from watcher.captures.change_stream.repeats import ReadPoint, Records, find_newest

QUEUE_BYTES_MAX = 4 * 1024 * 1024
TAKEN_BYTES_MAX = 4 * 1024 * 1024
"""About, as Spanner sends them: a record is never parted."""
PAUSE_SECONDS = 0.2

Read = Callable[[str | None, int], Iterator[Arrival]]
"""Opens a query from a timestamp on: of a partition, or, without a token, for the partitions."""

Decode = Callable[[Iterable[Arrival]], Iterable[Record | RecordColumns]]
"""The records of what one query has sent, in its order."""


@dataclass(slots=True)
class OpenPartition:
    """A partition that is being read. Everything of it below ``reached`` was taken.

    ``arrived`` is what was taken from the queue, and is not decoded yet.
    """

    token: str
    reached: int
    point: ReadPoint
    children: list[ChildPartition] = field(default_factory=list)
    arrived: list[Arrival] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class QueryEnd:
    """A query has ended: without an error, with its partition, or before it."""

    error: Exception | None = None
    empty: bool = False


QueuedItem = tuple[OpenPartition, Arrival | QueryEnd]


def measure_item(item: QueuedItem) -> int:
    """The bytes of what a query has sent."""
    return item[1].size if isinstance(item[1], Arrival) else 0


class ChangeQueue(Queue[QueuedItem]):
    """A queue whose size is the number of bytes in it, by the methods that ``Queue`` has for other
    orders and sizes."""

    def _init(self, maxsize: int) -> None:  # noqa: ARG002 (as Queue has it)
        self._items: deque[QueuedItem] = deque()
        self._bytes = 0

    def _qsize(self) -> int:
        # Queue.get waits while this is 0: an end has no bytes.
        return self._bytes or len(self._items)

    def _put(self, item: QueuedItem) -> None:
        self._items.append(item)
        self._bytes += measure_item(item)

    def _get(self) -> QueuedItem:
        item = self._items.popleft()
        self._bytes -= measure_item(item)
        return item


class OpenQueries:
    """The open queries of one reader, from a timestamp (outside) on.

    The threads only receive. What has come meanwhile is decoded when it is taken, all of a
    partition together: many records at once cost a fraction of what they cost one by one.
    """

    def __init__(self, read: Read, decode: Decode, start: int) -> None:
        self._read = read
        self._decode = decode
        self._queue = ChangeQueue(QUEUE_BYTES_MAX)
        self._closed = threading.Event()
        self._open: dict[str, OpenPartition] = {}
        self._finished: set[str] = set()
        self._reached = start
        found = decode(read(None, start + 1))
        roots = [each for each in found if isinstance(each, ChildPartition)]
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

    def take(self, seconds: float) -> list[tuple[str, Records]]:
        """The records that have come, each with its partition, about 4 MiB of them at most; waits
        for the first this long.

        Raises the error that ended a query.
        """
        taken: list[tuple[str, Records]] = []
        arrived: dict[str, OpenPartition] = {}
        size = 0
        deadline = time.monotonic() + seconds
        while size < TAKEN_BYTES_MAX:
            left = 0.0 if taken or arrived else max(0.0, deadline - time.monotonic())
            try:
                item = self._queue.get(timeout=left) if left else self._queue.get(False)
            except Empty:
                break
            partition, sent = item
            size += measure_item(item)
            if isinstance(sent, Arrival):
                partition.arrived.append(sent)
                arrived[partition.token] = partition
            else:
                taken += self._take_arrived(partition)
                self._end(partition, sent)
        for partition in arrived.values():
            taken += self._take_arrived(partition)
        if self._waiting:
            self._open_next()
        return taken

    def close(self) -> None:
        """Ends the threads; each notices with its next record or heartbeat."""
        self._closed.set()

    def _take_arrived(self, partition: OpenPartition) -> Iterator[tuple[str, Records]]:
        """The records of what has come; keeps what they say of their partition."""
        arrived, partition.arrived = partition.arrived, []
        for record in self._decode(arrived):
            if isinstance(record, ChildPartition):
                partition.children.append(record)
            # assumes: stream-heartbeat-bound
            elif isinstance(record, Heartbeat):
                partition.point.reach(record.timestamp)
                partition.reached = max(partition.reached, record.timestamp + 1)
            else:
                new = partition.point.take_new(record)
                if new is not None:
                    # More may come at the same timestamp.
                    partition.reached = max(partition.reached, find_newest(new))
                    yield partition.token, new

    def _end(self, partition: OpenPartition, end: QueryEnd) -> None:
        """A query that ends without naming children has not reached the end of its partition: it is
        opened again where it stopped."""
        if end.error is not None:
            raise end.error
        if partition.children:
            self._finish(partition)
            if self._waiting:
                self._open_next()
        else:
            partition.point.reopened = True
            self._start(partition, pause=end.empty)

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
                partition = OpenPartition(child.token, child.start, ReadPoint(child.start))
                self._open[child.token] = partition
                self._start(partition)

    def _start(self, partition: OpenPartition, pause: bool = False) -> None:
        """Queries a partition in a thread of its own."""
        asked = partition, partition.point.at, PAUSE_SECONDS if pause else 0.0
        threading.Thread(target=self._follow, args=asked, daemon=True).start()

    def _is_ready(self, child: ChildPartition) -> bool:
        """True when all its parents have ended. An unknown parent ended before this reader started,
        unless a partition that has not been read as far as that is still to name it."""
        if all(parent in self._finished for parent in child.parents):
            return True
        if any(parent in self._open or parent in self._waiting for parent in child.parents):
            return False
        reached = all(partition.reached >= child.start for partition in self._open.values())
        return reached and all(each.start >= child.start for each in self._waiting.values())

    def _follow(self, partition: OpenPartition, start: int, pause: float) -> None:
        """Receives what a query of a partition sends."""
        empty = True
        try:
            if pause:
                self._closed.wait(pause)
            for arrival in () if self._closed.is_set() else self._read(partition.token, start):
                empty = False
                if not self._put(partition, arrival):
                    return
            self._put(partition, QueryEnd(empty=empty))
        except Exception as error:  # noqa: BLE001 (handed to the reader)
            self._put(partition, QueryEnd(error))

    def _put(self, partition: OpenPartition, item: Arrival | QueryEnd) -> bool:
        """Waits while the queue is full; False once the reader is closed."""
        while not self._closed.is_set():
            try:
                self._queue.put((partition, item), timeout=PAUSE_SECONDS)
            except Full:
                continue
            return True
        return False
