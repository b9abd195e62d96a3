"""Records of change streams, made inside the transaction that makes the changes."""

from __future__ import annotations

import json

import apsw

from emulator.engine.change_streams.mods import net_changes
from emulator.engine.change_streams.mutable import is_mutable, partition_mode
from emulator.engine.change_streams.partitions import (
    StreamPartition,
    active_partitions,
    clear_records,
    create_partitions,
    remove_partitions,
    stream_partitions,
)
from emulator.engine.change_streams.placements import (
    RowPlaces,
    change_placements,
    event_rows,
    find_by_key,
)
from emulator.engine.change_streams.records import build_records, leaves_out, record_rows
from emulator.engine.change_streams.rules import retention_seconds
from emulator.engine.change_streams.signals import Signals
from emulator.errors import failed_precondition
from emulator.values.forms import timestamp_from_micros
from emulator.values.requests import TransactionOrigin
from emulator.wrong import Wrong, is_wrong
from spanner_schema.model.schema import Schema
from spanner_schema.syntax.placements import is_per_placement, list_placement_names

WRITE = 'INSERT INTO "$records" (partition, micros, sequence, data) VALUES (?, ?, ?, ?)'
SELECT_NOTED = 'SELECT "table", kind, written, old, new FROM "$mods" ORDER BY number'


class ChangeCapture:
    """Works on the writing connection, for the holder of the turn."""

    def __init__(self, connection: apsw.Connection) -> None:
        self.signals = Signals()
        self._connection = connection
        self._partitions: dict[str, list[StreamPartition]] = {}
        self._touched: set[int] = set()
        self._row = -1
        self._positions: list[int] = []
        connection.create_scalar_function("written_", self._note_written_column, 2)
        connection.create_scalar_function("taken_", self._take_written_columns, 1)
        connection.create_scalar_function("zero_", write_zero, 1, deterministic=True)

    def load(self) -> None:
        """Takes the partitions from the file: at the start, and when they have changed."""
        self._partitions = {}
        for partition in active_partitions(self._connection):
            self._partitions.setdefault(partition.stream, []).append(partition)

    def apply_stream_changes(self, before: Schema, after: Schema, micros: int) -> None:
        """A DDL statement created or dropped streams; inside its transaction."""
        old = {stream.name.casefold() for stream in before.change_streams}
        new = {stream.name.casefold() for stream in after.change_streams}
        for stream in after.change_streams:
            earlier = before.change_stream(stream.name)
            if earlier is not None and partition_mode(earlier) != partition_mode(stream):
                raise failed_precondition(
                    f"The partition_mode of Change Stream {stream.name} cannot be changed: drop "
                    "the stream and create it again."
                )
            if earlier is None:
                continue
            if is_per_placement(earlier) != is_per_placement(stream):
                raise failed_precondition(
                    f"The per_placement_tvf of Change Stream {stream.name} cannot be changed: drop "
                    "the stream and create it again."
                )
            if is_per_placement(stream):
                self.touch(change_placements(self._connection, stream, before, after, micros))
        for name in sorted(old - new):
            self._touched |= {p.number for p in stream_partitions(self._connection, name)}
            remove_partitions(self._connection, name)
        for name in sorted(new - old):
            created = after.change_stream(name)
            by_placement = created is not None and is_per_placement(created)
            for placement in list_placement_names(after) if by_placement else [""]:
                create_partitions(self._connection, name, micros, placement)

    def record(self, schema: Schema, micros: int, origin: TransactionOrigin) -> None:
        """Turns what the triggers noted into records; nothing to do when nobody watches."""
        if not schema.change_streams:
            return
        noted = self._connection.execute(SELECT_NOTED).fetchall()
        if not noted:
            return
        self._connection.execute('DELETE FROM "$mods"')
        mods = net_changes(noted, schema)
        form = timestamp_from_micros(micros)
        by_places = any(map(is_per_placement, schema.change_streams))
        places = RowPlaces(self._connection, schema, mods if by_places else ())
        for stream in schema.change_streams:
            partitions = self._partitions[stream.name.casefold()]
            by_placement = is_per_placement(stream)
            find = places.find(partitions) if by_placement else find_by_key(partitions)
            shown = () if leaves_out(stream, origin) else mods
            data_records = build_records(stream, find, shown, form)
            rows = list(record_rows(data_records, stream, micros, form, origin))
            if by_placement and is_mutable(stream):
                rows += event_rows(places.list_moves(stream), partitions, micros, len(rows))
            if is_wrong(Wrong.STREAM_KEY_IN_ONE_PARTITION):
                rows += repeat_elsewhere(rows, partitions)
            self._connection.executemany(WRITE, rows)
            self._touched |= {row[0] for row in rows}

    def touch(self, partitions: list[StreamPartition]) -> None:
        """Marks partitions whose readers must wake after the commit."""
        self._touched |= {partition.number for partition in partitions}

    def wake_readers(self) -> None:
        """Wakes the readers of the partitions that a commit changed."""
        if self._touched:
            touched, self._touched = self._touched, set()
            self.signals.wake(touched)

    def clear(self, schema: Schema, now: int) -> int:
        """Removes what is older than each stream keeps; inside a transaction."""
        return sum(
            clear_records(
                self._connection,
                stream.name.casefold(),
                now - retention_seconds(stream) * 1_000_000,
            )
            for stream in schema.change_streams
        )

    def _note_written_column(self, *arguments: apsw.SQLiteValue) -> None:
        """An UPDATE is about to set this column of this row."""
        row, position = int(str(arguments[0])), int(str(arguments[1]))
        if row != self._row:
            self._row, self._positions = row, []
        if position not in self._positions:
            self._positions.append(position)

    def _take_written_columns(self, *arguments: apsw.SQLiteValue) -> str:
        """The columns that an UPDATE has set in a row."""
        positions = self._positions if int(str(arguments[0])) == self._row else []
        self._row, self._positions = -1, []
        return json.dumps(positions)


def write_zero(*values: apsw.SQLiteValue) -> str:
    """A zero with its sign, in JSON."""
    return json.dumps(values[0])


def repeat_elsewhere(
    rows: list[tuple[int, int, int, str]], partitions: list[StreamPartition]
) -> list[tuple[int, int, int, str]]:
    """Wrong on purpose: the same records in another partition, where there is one."""
    numbers = [partition.number for partition in partitions]
    return [
        (next(each for each in numbers if each != number), micros, len(rows) + sequence, data)
        for number, micros, sequence, data in rows
        if len(numbers) > 1
    ]
