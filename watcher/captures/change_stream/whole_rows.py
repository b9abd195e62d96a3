"""The values that a stream's capture type leaves out, read at the commit timestamp with the columns
that the table had then; for copies, where Spanner keeps that no more, as they were later."""

from __future__ import annotations

import json
import logging
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from typing import Any

from spanner_schema.model.schema import Schema, Table
from watcher.captures.change_stream.record_values import DataRecord, StreamMod
from watcher.captures.change_stream.row_reads import (
    JsonRow,
    RowReads,
    Rows,
    group_records,
    identify_mod,
)
from watcher.captures.strong_reads import read_or_strongly
from watcher.model.change import Operation, Shape
from watcher.model.errors import VersionExpiredError
from watcher.model.log_events.reading import WHOLE_ROWS_UNREADABLE
from watcher.spanner.queries import QueryClient
from watcher.tables.column_choice import list_codes
from watcher.tables.discovery import find_whole_table
from watcher.tables.epochs import Epochs
from watcher.tables.lookup import list_primary_key
from watcher.tables.selection import find_spec
from watcher.tables.values import TableSpec

LOG = logging.getLogger("watcher.captures")


@dataclass
class Expired:
    """Up to which timestamp versions are gone, as far as reads were refused. Spanner brings none
    back."""

    # assumes: retention-not-back

    upto: int = 0

    def note(self, at: int, error: VersionExpiredError) -> None:
        """A read at a timestamp was refused."""
        if self.upto == 0:
            WHOLE_ROWS_UNREADABLE.log(LOG, error=error)
        self.upto = max(self.upto, at)


@dataclass(frozen=True)
class WholeRows:
    """Completes records. ``specs`` say which columns of a table are read.

    ``newest``: whoever gets the records keeps the newest row of each key at the end of the window,
    as copies do. Where the version of a commit timestamp is gone, a record then has the row as it
    is at the window's end, which is exact for such a reader; or the latest one, where that is gone,
    too. Without it, a record says then what it says by itself, and is marked as a part of its row.
    ``at_end``: and needs no other: every record has the row as it is at the window's end.

    A read costs one call a commit, and of many of them with ``at_end`` (``RowReads``), and a window
    one more for its schema. Picklable,
    and compared by what it reads: an executor looks at the schema itself.
    """

    queries: QueryClient
    specs: Mapping[str, TableSpec] = field(default_factory=dict)
    newest: bool = False
    at_end: bool = False

    def __reduce__(self) -> tuple[Any, ...]:
        return WholeRows, (self.queries, dict(self.specs), self.newest, self.at_end)

    @cached_property
    def _epochs(self) -> Epochs[Schema]:
        return Epochs(self.queries.stream, lambda schema: schema)

    @cached_property
    def _expired(self) -> Expired:
        return Expired()

    @cached_property
    def _latest(self) -> dict[int, Schema]:
        """The schema of a strong read, for the end of the window that needed it."""
        return {}

    @cached_property
    def _shapes(self) -> dict[str, tuple[Schema, Shape]]:
        """The columns that are read, of the schema that they were last looked up in, by table."""
        return {}

    def complete_all(
        self, records: Iterable[tuple[str, DataRecord]], end: int
    ) -> Iterator[tuple[str, DataRecord]]:
        """``complete`` for records with their partitions."""
        for group in group_records(records):
            reads = RowReads(self.queries, [record for _, record in group])
            for token, record in group:
                yield token, self.complete(record, end, reads)

    def complete(self, record: DataRecord, end: int, reads: RowReads | None = None) -> DataRecord:
        """The record with every column that its table had at the commit timestamp, in a window that
        ends at ``end``. Never fails because versions are gone: see ``newest``.

        Spanner does not say that a transaction has one record a row. What a record says of a column
        is kept, so that the first of two updates does not look like the second. A row that the same
        transaction deleted again is completed from what it was before; one that was not there then
        either keeps what its record says, and is marked with the record's own capture type. So is a
        record whose table cannot be read as it was then.
        """
        if record.operation is Operation.DELETE:
            return replace(record, captured=record.captured.whole_row_form)
        reads = reads or RowReads(self.queries, [record])
        if not self.at_end and record.commit_timestamp > self._expired.upto:
            try:
                return self._complete(record, end, reads)
            except VersionExpiredError as error:
                self._expired.note(record.commit_timestamp, error)
        return self._complete_late(record, end, reads)

    def _complete_late(self, record: DataRecord, end: int, reads: RowReads) -> DataRecord:
        """The same of a record whose commit timestamp is too old to read, or need not be read."""
        schema = self._find_late_schema(end)
        table = schema.table(record.shape.table)
        if table is None:
            return record
        shape = self._choose_shape(table, schema)
        if self._is_whole(record, shape):
            return replace(record, shape=use_types(record.shape, shape))
        same_key = set(shape.primary_key) == set(record.shape.primary_key)
        readable = self.newest and same_key
        rows = self._read_late_rows(reads, record, shape, end) if readable else None
        if rows is None:
            return replace(record, captured=record.captured.part_form)
        # A row that is gone since has its delete in the stream, which comes after this record.
        there = [(mod, rows.get(identify_mod(mod, shape))) for mod in record.mods]
        return replace(
            record,
            shape=shape,
            mods=tuple(replace_row(mod, row) for mod, row in there if row is not None),
            captured=record.captured.whole_row_form,
        )

    def _find_late_schema(self, end: int) -> Schema:
        """The schema at the end of a window, or the latest one."""
        if end > self._expired.upto:
            try:
                return self._epochs.inside(end, end)
            except VersionExpiredError as error:
                self._expired.note(end, error)
        if end not in self._latest:
            self._latest.clear()
            self._latest[end] = self._epochs.latest()[1]
        return self._latest[end]

    def _read_late_rows(
        self, reads: RowReads, record: DataRecord, shape: Shape, end: int
    ) -> Rows | None:
        """At the end of a window, or strongly."""
        read = partial(reads.read_late, record, shape)
        return read_or_strongly(read, end) if end > self._expired.upto else read(None)

    def _complete(self, record: DataRecord, end: int, reads: RowReads) -> DataRecord:
        for schema in self._find_schemas(record, end):
            table = schema.table(record.shape.table)
            if table is None:
                continue
            shape = self._choose_shape(table, schema)
            if self._is_whole(record, shape):
                return replace(record, shape=use_types(record.shape, shape))
            rows = reads.read_then(record, shape)
            if rows is not None:
                return self._add_values(record, shape, rows, reads)
        return record

    def _find_schemas(self, record: DataRecord, end: int) -> Iterator[Schema]:
        """The schema at the commit timestamp as the looks around it tell it; if that is not the
        record's, or its rows cannot be read so, the one that a look at the timestamp itself finds.
        """
        at = record.commit_timestamp
        told = self._epochs.inside(at, end)
        if describes(told, record.shape):
            yield told
        exact = self._epochs.at(at)
        if exact is not told or not describes(told, record.shape):
            yield exact

    def _choose_shape(self, table: Table, schema: Schema) -> Shape:
        """The columns of a table that are read."""
        known = self._shapes.get(table.name)
        if known is None or known[0] is not schema:
            known = self._shapes[table.name] = schema, self._make_shape(table, schema)
        return known[1]

    def _make_shape(self, table: Table, schema: Schema) -> Shape:
        spec = find_spec(self.specs, table.name) or TableSpec()
        choice = spec.choice.keep_existing(table)
        there = replace(
            spec,
            columns=choice.include,
            exclude_columns=choice.exclude,
            text_columns=choice.texts,
            masks={mask.column: mask.kind for mask in choice.masks},
        )
        whole = find_whole_table(schema, table.name, self.queries.address.path, there)
        return Shape(whole.name, whole.columns, whole.primary_key)

    def _is_whole(self, record: DataRecord, shape: Shape) -> bool:
        """Whether a record has every column of its table."""
        names = {name for name, _ in record.shape.columns}
        return record.captured.whole_row and all(name in names for name, _ in shape.columns)

    def _add_values(
        self, record: DataRecord, shape: Shape, rows: Rows, reads: RowReads
    ) -> DataRecord:
        """The record with the columns of the rows as they were at the commit timestamp."""
        keys = [identify_mod(mod, shape) for mod in record.mods]
        gone = [mod for key, mod in zip(keys, record.mods, strict=True) if key not in rows]
        if gone:
            rows = rows | (reads.read_mods(shape, gone, record.commit_timestamp - 1) or {})
        mods = zip(keys, record.mods, strict=True)
        return replace(
            record,
            shape=add_recorded_columns(shape, record.shape),
            mods=tuple(complete_mod(mod, rows.get(key), record) for key, mod in mods),
            captured=record.captured.whole_row_form,
        )


def describes(schema: Schema, recorded: Shape) -> bool:
    """Whether a schema has the columns of a record, with their types, and the same key."""
    table = schema.table(recorded.table)
    if table is None or set(recorded.primary_key) != set(list_primary_key(table)):
        return False
    columns = {column.name: list_codes(column.type) for column in table.columns}
    return all(columns.get(name) == list_codes(type_) for name, type_ in recorded.columns)


def complete_mod(mod: StreamMod, row: JsonRow | None, record: DataRecord) -> StreamMod:
    """A mod with the columns of its row that it leaves out."""
    if row is not None:
        return replace(mod, new=json.dumps(row | json.loads(mod.new or "{}")))
    return replace(mod, captured=record.captured)


def replace_row(mod: StreamMod, row: JsonRow) -> StreamMod:
    """A mod with a later row in the place of its own values."""
    return replace(mod, new=json.dumps(row), old=None)


def use_types(recorded: Shape, shape: Shape) -> Shape:
    """The columns of a record with the types that they are read as."""
    types = dict(recorded.columns) | dict(shape.columns)
    return replace(recorded, columns=tuple((name, types[name]) for name, _ in recorded.columns))


def add_recorded_columns(shape: Shape, recorded: Shape) -> Shape:
    """A shape with the columns of a record that cannot be read, because of their types."""
    names = {name for name, _ in shape.columns}
    more = tuple(column for column in recorded.columns if column[0] not in names)
    return replace(shape, columns=shape.columns + more)
