"""Reading a change stream: one query over one partition, or over the list of partitions."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

import grpc

from emulator import limits
from emulator.engine.change_streams import mutable
from emulator.engine.change_streams.mutable import is_mutable
from emulator.engine.change_streams.partitions import StreamPartition, stream_partitions
from emulator.engine.change_streams.rules import retention_seconds
from emulator.engine.change_streams.signals import Signal, Signals
from emulator.engine.change_streams.values import Json, compact_json
from emulator.engine.clock import Clock
from emulator.engine.timeline import Timeline
from emulator.errors import SpannerError, failed_precondition, invalid_argument, out_of_range
from emulator.storage.sqlite import Storage
from emulator.values.forms import timestamp_from_micros, timestamp_to_text
from emulator.wrong import Wrong, is_wrong
from spanner_schema.model.schema import ChangeStream, Schema

FUTURE_MICROS_MAX = 600 * 1_000_000
HEARTBEAT_MILLISECONDS = (1_000, 300_000)
MUTABLE_AHEAD_MICROS_MAX = 1_800 * 1_000_000
"""How far ahead the end of a query may be where partitions change their keys."""
RECORDS_AT_ONCE = 500
WRONG_AHEAD_MICROS = 60_000_000
AFTER_RECORDS = 1 << 31
FETCH = (
    'SELECT micros, sequence, data FROM "$records" WHERE partition = ? '
    "AND (micros, sequence) > (?, ?) AND micros <= ? ORDER BY micros, sequence LIMIT ?"
)

Place = tuple[int, int]
"""Where a reader is: a timestamp, and a number among the records at it."""

PlacedRecords = list[tuple[Place, str]]
"""Records that are ready at once: ChangeRecord values in storage form, each with its place."""


@dataclass(frozen=True, slots=True)
class ReadArguments:
    """The arguments of a read function; timestamps in Unix microseconds. An empty ``placement`` is
    all of them."""

    stream: str
    start: int
    end: int | None
    token: str | None
    heartbeat_milliseconds: int
    mutable: bool = False
    placement: str = ""

    @property
    def function(self) -> str:
        """The name of the function."""
        return f"READ_{self.stream}" + (f"_{self.placement}" if self.placement else "")

    def shows(self, partition: StreamPartition) -> bool:
        """Whether the function tells of a partition."""
        return not self.placement or partition.placement == self.placement


@dataclass(frozen=True, slots=True)
class Caller:
    """Who waits for the records: ``check`` raises when nobody does any more.

    ``when_gone`` takes a function to be called at that moment.
    """

    check: Callable[[], None]
    when_gone: Callable[[Callable[[], None]], None]


@dataclass(frozen=True, slots=True)
class ChangeReader:
    """Answers the queries of change streams. Thread-safe."""

    storage: Storage
    clock: Clock
    timeline: Timeline
    schema: Callable[[], Schema]
    signals: Signals

    def read(
        self, arguments: ReadArguments, after: Place | None, caller: Caller
    ) -> Iterator[PlacedRecords]:
        """The records, those together that are ready at once: nothing waits for what comes later.

        ``after`` is where a broken stream resumes. Raises at once for wrong arguments.
        """
        stream = self.schema().change_stream(arguments.stream)
        if stream is None:
            raise invalid_argument(f"Table-valued function not found: {arguments.function}")
        partitions = self.partitions(arguments.stream)
        if not partitions:
            raise failed_precondition(
                f"Change Stream {stream.name} was created by an earlier version of this server: "
                "drop all change streams of the database and create them again."
            )
        self._check_arguments(arguments, stream, partitions)
        if is_mutable(stream):
            arguments = replace(arguments, mutable=True)
            self._check_end(arguments)
        if arguments.token is None:
            return self._read_roots(arguments, after, caller)
        partition = next((p for p in partitions if p.token == arguments.token), None)
        if partition is None:
            raise invalid_argument(
                "Specified partition_token is invalid, as it does not belong to the Change Stream "
                f"associated with the TVF. Received partition_token: {arguments.token}."
            )
        if not arguments.shows(partition):
            raise invalid_argument(
                f"Partition token {arguments.token} does not belong to the placement TVF "
                f"{arguments.function}."
            )
        ended = partition.ended
        if arguments.start < partition.started or (ended is not None and arguments.start > ended):
            raise out_of_range(
                "Specified start_timestamp is invalid for the partition. Please specify a "
                f"start_timestamp within {format_timestamp(partition.started)} and "
                f"{'now' if ended is None else format_timestamp(ended)}. Received start_timestamp: "
                f"{format_timestamp(arguments.start)}."
            )
        return self._read_partition(arguments, partition, after, caller)

    def _check_arguments(
        self, arguments: ReadArguments, stream: ChangeStream, partitions: list[StreamPartition]
    ) -> None:
        """The arguments that do not depend on the partition."""
        least, most = HEARTBEAT_MILLISECONDS
        if not least <= arguments.heartbeat_milliseconds <= most:
            raise invalid_argument(
                f"heartbeat_milliseconds must be between {least} and {most}. Received: "
                f"{arguments.heartbeat_milliseconds}."
            )
        if arguments.end is not None and arguments.end < arguments.start:
            raise invalid_argument(
                "If end_timestamp is specified, start_timestamp must be <= end_timestamp. Received "
                f"start_timestamp: {format_timestamp(arguments.start)}, "
                f"end_timestamp: {format_timestamp(arguments.end)}."
            )
        now = self.clock.wall()
        oldest = max(
            min(p.started for p in partitions), now - retention_seconds(stream) * 1_000_000
        )
        if arguments.start < oldest:
            raise out_of_range(
                "Specified start_timestamp is too far in the past. Please specify a "
                f"start_timestamp within the earliest read timestamp: {format_timestamp(oldest)}. "
                f"Received start_timestamp: {format_timestamp(arguments.start)}."
            )
        if arguments.start > now + FUTURE_MICROS_MAX:
            raise out_of_range(
                "Specified start_timestamp is too far in the future. Please specify a "
                f"start_timestamp within the earliest read timestamp: {format_timestamp(oldest)}, "
                "and the current maximum start timestamp: "
                f"{format_timestamp(now + FUTURE_MICROS_MAX)}. "
                f"Received start_timestamp: {format_timestamp(arguments.start)}."
            )

    def _check_end(self, arguments: ReadArguments) -> None:
        """A query of partitions that change their keys ends, and soon."""
        if arguments.end is None:
            raise invalid_argument(
                "end_timestamp must not be null for a change stream with partition_mode "
                "MUTABLE_KEY_RANGE."
            )
        latest = max(self.clock.wall(), arguments.start) + MUTABLE_AHEAD_MICROS_MAX
        if arguments.end > latest:
            raise out_of_range(
                "Specified end_timestamp is too far in the future. Please specify an end_timestamp "
                f"of at most {format_timestamp(latest)}, 30 minutes after the start or now. "
                f"Received end_timestamp: {format_timestamp(arguments.end)}."
            )

    def _read_roots(
        self, arguments: ReadArguments, after: Place | None, caller: Caller
    ) -> Iterator[PlacedRecords]:
        """The partitions that are active at the start, each in a record."""
        signal = self.signals.enter(0)
        caller.when_gone(signal.set)
        try:
            while (ahead := arguments.start - self.clock.wall()) > 0:
                self.check_open(caller)
                signal.wait(ahead / 1_000_000)
        finally:
            self.signals.leave(0, signal)
        self.timeline.wait_until_readable(arguments.start)
        roots = list_roots(arguments, self.partitions(arguments.stream))
        records = mutable_roots if arguments.mutable else immutable_roots
        yield list(place_records(arguments.start, records(arguments.start, roots), after))

    def _read_partition(
        self,
        arguments: ReadArguments,
        partition: StreamPartition,
        after: Place | None,
        caller: Caller,
    ) -> Iterator[PlacedRecords]:
        """Everything of a partition, as it comes; ends with the partition or the query."""
        signal = self.signals.enter(partition.number, limits.PARTITION_READERS_MAX)
        caller.when_gone(signal.set)
        try:
            yield from PartitionReading(self, arguments, partition, after, caller, signal).run()
        finally:
            self.signals.leave(partition.number, signal)

    def check_open(self, caller: Caller) -> None:
        """Raises when the caller has left or the database is closing."""
        caller.check()
        if self.signals.closed:
            raise SpannerError(grpc.StatusCode.UNAVAILABLE, "The database is closing.")

    def partitions(self, stream: str) -> list[StreamPartition]:
        """All partitions of a stream, oldest first."""
        reader = self.storage.borrow()
        try:
            return stream_partitions(reader.connection, stream.casefold())
        finally:
            self.storage.give_back(reader)

    def fetch(
        self, partition: int, place: Place, limit: int, show: Callable[[str], str]
    ) -> PlacedRecords:
        """Some records after a place, up to a timestamp, as ``show`` writes them."""
        reader = self.storage.borrow()
        try:
            rows = reader.connection.execute(
                FETCH, (partition, *place, limit, RECORDS_AT_ONCE)
            ).fetchall()
        finally:
            self.storage.give_back(reader)
        return [((int(str(m)), int(str(n))), show(str(data))) for m, n, data in rows]


class PartitionReading:
    """One query over one partition."""

    def __init__(
        self,
        reader: ChangeReader,
        arguments: ReadArguments,
        partition: StreamPartition,
        after: Place | None,
        caller: Caller,
        signal: Signal,
    ) -> None:
        self._reader = reader
        self._arguments = arguments
        self._partition = partition
        self._after = after
        self._caller = caller
        self._signal = signal
        inside = not is_wrong(Wrong.STREAM_START_INSIDE)
        self._place = after or (arguments.start, -1 if inside else AFTER_RECORDS)
        self._sent_any = after is not None
        self._beat = time.monotonic()
        is_mutable = arguments.mutable
        self._show = self._show_own if is_mutable else data_record
        self._show_beat = mutable.heartbeat_record if is_mutable else heartbeat_record

    def run(self) -> Iterator[PlacedRecords]:
        """The records, heartbeats in between, and the children at the end."""
        while True:
            self._signal.clear()
            self._reader.check_open(self._caller)
            visible = self._wait_visible()
            partition = self._reload_partition()
            ended = partition.ended if partition.ended and partition.ended <= visible else None
            end = self._arguments.end
            last = visible if ended is None else ended - 1
            if self._arguments.mutable and ended is not None:
                last = ended
            outside = 1 if is_wrong(Wrong.STREAM_END_INSIDE) else 0
            yield from self._read_up_to(last if end is None else min(last, end - outside))
            if self._arguments.mutable and ended is not None and (end is None or ended <= end):
                return
            if ended is not None and (end is None or ended <= end):
                if not is_wrong(Wrong.STREAM_CHILDREN_LAST):
                    yield from self._read_children(ended)
                return
            if end is not None and (visible >= end or ended is not None):
                if not self._sent_any:
                    yield [((end, AFTER_RECORDS), self._show_beat(end))]
                return
            yield from self._wait(visible)

    def _wait_visible(self) -> int:
        """Every commit at or below this timestamp is in the file."""
        end, wall = self._arguments.end, self._reader.clock.wall()
        if end is not None and (end <= wall or is_wrong(Wrong.STREAM_OPEN_TO_THE_END)):
            self._reader.timeline.wait_until_readable(end)
        return self._reader.timeline.strong()

    def _reload_partition(self) -> StreamPartition:
        """The partition as it is now. Raises when its stream was dropped."""
        for partition in self._reader.partitions(self._arguments.stream):
            if partition.number == self._partition.number:
                return partition
        raise invalid_argument(
            "This partition is no longer valid: its Change Stream was dropped, or its records have "
            "expired."
        )

    def _read_up_to(self, limit: int) -> Iterator[PlacedRecords]:
        """The records that are there, up to a timestamp."""
        number = self._partition.number
        while fetched := self._reader.fetch(number, self._place, limit, self._show):
            shown = [(place, text) for place, text in fetched if text]
            self._place = fetched[-1][0]
            if is_wrong(Wrong.STREAM_COMMIT_ORDER):
                shown.reverse()
            if shown:
                self._sent_any = True
                yield shown
            self._beat = time.monotonic()

    def _show_own(self, data: str) -> str:
        """A record where partitions live on; empty for one about other placements only."""
        if self._arguments.placement and data.startswith('["start"'):
            partitions = self._reader.partitions(self._arguments.stream)
            own = {p.token for p in partitions if self._arguments.shows(p)}
            data = mutable.keep_tokens(data, own)
        return mutable.data_record(data) if data else ""

    def _read_children(self, ended: int) -> Iterator[PlacedRecords]:
        """The partitions that continue with this one's keys."""
        own = list(filter(self._arguments.shows, self._reader.partitions(self._arguments.stream)))
        tokens = {partition.token for partition in own}
        children = [
            (child, tuple(parent for parent in child.parents if parent in tokens))
            for child in own
            if self._partition.token in child.parents
        ]
        records = (child_record(n, child, of) for n, (child, of) in enumerate(children, start=1))
        yield list(place_records(ended, records, self._after))

    def _wait(self, visible: int) -> Iterator[PlacedRecords]:
        """Waits for news, the next heartbeat or the end of the query, whichever comes first."""
        interval = self._arguments.heartbeat_milliseconds / 1000
        left = self._beat + interval - time.monotonic()
        if left <= 0:
            self._beat = time.monotonic()
            if visible > self._place[0]:
                self._place, self._sent_any = (visible, AFTER_RECORDS), True
                early = WRONG_AHEAD_MICROS if is_wrong(Wrong.STREAM_HEARTBEAT_BOUND) else 0
                yield [(self._place, self._show_beat(visible + early))]
            return
        if self._arguments.end is not None:
            ahead = (self._arguments.end - self._reader.clock.wall()) / 1_000_000
            left = min(left, max(ahead, 0.0))
        self._signal.wait(left)


def place_records(
    at: int, records: Iterable[str], after: Place | None
) -> Iterator[tuple[Place, str]]:
    """Records of one timestamp, numbered from 1: those after a place."""
    for number, text in enumerate(records, start=1):
        place = (at, number)
        if after is None or place > after:
            yield place, text


def list_roots(
    arguments: ReadArguments, partitions: Sequence[StreamPartition]
) -> list[tuple[int, StreamPartition]]:
    """The partitions with which a reader begins, each with the timestamp from which it has them.

    Those that are active at the start; and of a placement that was created later, its first ones:
    no record of the placement's function could announce them.
    """
    own = list(filter(arguments.shows, partitions))
    start, end = arguments.start, arguments.end
    roots = [(start, p) for p in own if p.started <= start and (p.ended is None or p.ended > start)]
    if is_wrong(Wrong.STREAM_NAMES_PARTITIONS):
        roots = roots[1:]
    if arguments.placement:
        tokens = {partition.token for partition in own}
        roots += [
            (p.started, p)
            for p in own
            if start < p.started
            and (end is None or p.started <= end)
            and tokens.isdisjoint(p.parents)
        ]
    return roots


def mutable_roots(start: int, roots: Sequence[tuple[int, StreamPartition]]) -> Iterator[str]:
    """Start records, one a timestamp: the first says what there is at the start."""
    tokens: dict[int, list[str]] = {start: []}
    for began, partition in roots:
        tokens.setdefault(began, []).append(partition.token)
    for number, (began, at) in enumerate(sorted(tokens.items()), start=1):
        yield mutable.start_record(began, number, at)


def immutable_roots(start: int, roots: Sequence[tuple[int, StreamPartition]]) -> Iterator[str]:
    """A child partitions record for each; a heartbeat where there are none."""
    if not roots:
        yield heartbeat_record(start)
    for number, (began, partition) in enumerate(roots, start=1):
        yield child_record(number, partition, (), began)


def child_record(
    number: int, partition: StreamPartition, parents: Sequence[str], start: int | None = None
) -> str:
    """A ChangeRecord with a child partitions record."""
    token: list[Json] = [partition.token, list(parents)]
    began = timestamp_from_micros(partition.started if start is None else start)
    return compact_json([[[], [], [[began, f"{number:08}", [token]]]]])


def heartbeat_record(micros: int) -> str:
    """A ChangeRecord with a heartbeat."""
    return compact_json([[[], [[timestamp_from_micros(micros)]], []]])


def data_record(data: str) -> str:
    """A ChangeRecord with a data change record, whose fields are JSON already."""
    return f"[[[{data}],[],[]]]"


def format_timestamp(micros: int) -> str:
    """A timestamp in messages."""
    return timestamp_to_text(timestamp_from_micros(micros))
