"""Reads a window of a change stream: a slice a partition, its children with it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from google.api_core.exceptions import OutOfRange
from google.cloud.spanner_v1 import Type, TypeCode

from watcher.captures import StreamRows, statements
from watcher.captures.change_stream.lineage import Lineage, reads_child
from watcher.captures.change_stream.open_queries import OpenQueries
from watcher.captures.change_stream.records import Child, DataRecord, Record, records_of
from watcher.captures.change_stream.rows import BATCH_ROWS, Gathering
from watcher.captures.change_stream.watched import Wanted, WatchedStream
from watcher.captures.change_stream.whole_rows import WholeRows
from watcher.errors import StreamExpiredError
from watcher.spanner.queries import Queries
from watcher.spanner.stream import WireValue
from watcher.spanner.timestamps import timestamp_text
from watcher.window import Slice, Window

HEARTBEAT_MILLISECONDS = 10_000
OPEN_HEARTBEAT_MILLISECONDS = 1_000
"""Spanner: the least. A quiet partition's watermark is so old at most."""

ALL = Wanted()
TYPES = {
    "start": Type(code=TypeCode.TIMESTAMP),
    "end": Type(code=TypeCode.TIMESTAMP),
    "token": Type(code=TypeCode.STRING),
    "heartbeat": Type(code=TypeCode.INT64),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionSlice(Slice):
    """A partition that is active when the window begins, and those of its children that are its to
    read. Without a token: the records that the query for the partitions itself returned."""

    token: str | None


@dataclass(frozen=True)
class ChangeStreamCapture:
    """Reads the changes of a stream. Picklable; keeps nothing between windows.

    ``whole`` fetches the values that the stream's capture type leaves out.
    """

    queries: Queries
    stream: WatchedStream
    wanted: Wanted = ALL
    whole: WholeRows | None = None

    def plan(self, window: Window) -> Sequence[PartitionSlice]:
        """The partitions that are active when the window begins: one call, none for an empty
        window.

        Raises StreamExpiredError when the stream does not keep records as old as that any more.
        """
        if window.empty:
            return ()
        tokens: list[str | None] = []
        for record in self._records(None, window.start + 1, window.end):
            if isinstance(record, Child):
                tokens.append(record.token)
            elif isinstance(record, DataRecord) and None not in tokens:
                tokens.append(None)
        return [
            PartitionSlice(table=self.stream.name, window=window, shards=None, token=token)
            for token in tokens
        ]

    def read(self, part: PartitionSlice) -> Iterator[StreamRows]:
        """The changes of a slice. Slices can be read side by side: of a merged child's parents only
        one goes on with it."""
        root = Child(part.token or "", (), part.window.start + 1)
        yield from self._walk(root, part.window, alone=False)

    def read_window(self, window: Window) -> Iterator[StreamRows]:
        """The changes of a whole window: of each key in commit order."""
        if not window.empty:
            yield from self._walk(Child("", (), window.start + 1), window, alone=True)

    def any_change(self, window: Window) -> bool:
        """Whether a window holds any change; reads no further than the first."""
        return any(True for _ in self._walk(Child("", (), window.start + 1), window, True, 1))

    def _walk(
        self, root: Child, window: Window, alone: bool, batch_rows: int = BATCH_ROWS
    ) -> Iterator[StreamRows]:
        """A partition and its children; without a token, the partitions and theirs if ``alone``."""
        lineage = Lineage(window.end)
        gathering = Gathering(window, self.stream.keys)
        place: Child | None = root
        while place is not None:
            for record in self._records(place.token or None, place.start, window.end):
                if isinstance(record, DataRecord):
                    self._gather(gathering, record, place.token)
                    if gathering.rows >= batch_rows:
                        yield gathering.taken()
                elif isinstance(record, Child) and (alone or reads_child(place.token, record)):
                    lineage.announce(record)
            place = lineage.next()
        if gathering.rows:
            yield gathering.taken()

    def _gather(self, gathering: Gathering, record: DataRecord, token: str) -> None:
        if self.wanted.takes(record):
            record = self.wanted.narrowed(record)
            gathering.add(self.whole.completed(record) if self.whole else record, token)

    def open(self, start: int) -> OpenQueries:
        """Queries that stay open, from a timestamp (outside) on."""
        return OpenQueries(self._records, start)

    def gathered(
        self, records: Iterable[tuple[str, DataRecord]], window: Window
    ) -> StreamRows | None:
        """Records with their partitions as changes; None where none is wanted."""
        gathering = Gathering(window, self.stream.keys)
        for token, record in records:
            self._gather(gathering, record, token)
        return gathering.taken() if gathering.rows else None

    def _records(self, token: str | None, start: int, end: int | None = None) -> Iterator[Record]:
        """The records of a partition, or the partitions themselves; both ends are inside. Without
        an end the query stays open."""
        beat = HEARTBEAT_MILLISECONDS if end is not None else OPEN_HEARTBEAT_MILLISECONDS
        params: dict[str, WireValue] = {
            "start": timestamp_text(start),
            "end": timestamp_text(end) if end is not None else None,
            "token": token,
            "heartbeat": str(beat),
        }
        stream = self.queries.stream
        query = statements.read_change_stream(self.stream.name)
        try:
            yield from records_of(stream.rows(query, params, TYPES, None, counted=False))
        except OutOfRange as error:
            raise StreamExpiredError(
                f"change stream {self.stream.name} cannot be read from {timestamp_text(start)}"
                f" ({error.message}); what it no longer keeps is lost to this reader: give the"
                " reader a new position or checkpoint, with a backfill"
            ) from error
