"""What one query reads: its tables, and which of their columns it shows."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import pyarrow as pa
from pyspark.sql.pandas.types import from_arrow_schema, to_arrow_schema
from pyspark.sql.types import StructType

from ddl.schema import Schema
from watcher.captures import COMMIT_TIMESTAMP_COLUMN, Rows
from watcher.captures.poll import PollCapture
from watcher.change import Change, Value
from watcher.changes import change_ids, changes_of, json_text
from watcher.columns import TIMESTAMP
from watcher.config import SourceOptions, listed
from watcher.database import connect
from watcher.errors import ConfigurationError
from watcher.positions import own_tables
from watcher.selection import Selection, one, select
from watcher.shards import groups
from watcher.table import WatchedTable, read_schema, watched_table

CHANGE_ID_COLUMN = "_change_id"
ID_FIELD = pa.field(CHANGE_ID_COLUMN, pa.string())
ENVELOPE = pa.schema(
    [
        ("table", pa.string()),
        ("operation", pa.string()),
        (COMMIT_TIMESTAMP_COLUMN, TIMESTAMP),
        ("key", pa.string()),
        ("values", pa.string()),
        ID_FIELD,
    ]
)
"""``key`` and ``values`` are JSON objects; ``values`` has every column, those of the key too."""


@dataclass(frozen=True)
class Reading:
    """The tables of a query, and the columns that it shows. Picklable: executors shape rows."""

    options: SourceOptions
    captures: tuple[PollCapture, ...]
    shown: pa.Schema

    @property
    def tables(self) -> tuple[str, ...]:
        """The names of the tables."""
        return tuple(self._by_name)

    @cached_property
    def _by_name(self) -> dict[str, PollCapture]:
        return {capture.table.name: capture for capture in self.captures}

    def capture(self, table: str) -> PollCapture:
        """The capture of a table."""
        return self._by_name[table]

    @property
    def spark_schema(self) -> StructType:
        """The columns in Spark's types."""
        found: StructType = from_arrow_schema(self.shown)
        return found

    def showing(self, schema: StructType) -> Reading:
        """The same tables with the columns that the caller's schema names; others are not read.

        Raises ConfigurationError for a column or a type that is not there.
        """
        wanted = to_arrow_schema(schema, timezone="UTC")
        for field in wanted:
            place = self.shown.get_field_index(field.name)
            if place < 0:
                raise ConfigurationError(
                    f"there is no column {field.name}; there are: {', '.join(self.shown.names)}"
                )
            if not self.shown.field(place).type.equals(field.type):
                found = self.shown.field(place).type
                raise ConfigurationError(
                    f"column {field.name} is {found}, the schema that was given says {field.type}"
                )
        if self.options.envelope:
            return replace(self, shown=wanted)
        captures = tuple(narrowed(each, wanted.names) for each in self.captures)
        return replace(self, captures=captures, shown=wanted)

    def shaped(self, rows: Rows) -> pa.RecordBatch:
        """The columns that the query shows, of rows of one of its tables."""
        if self.options.envelope:
            return enveloped(changes_of(rows, self.options.address.path), self.shown)
        arrays = [shown_column(rows, field) for field in self.shown]
        return pa.RecordBatch.from_arrays(arrays, schema=self.shown)


def shown_column(rows: Rows, field: pa.Field) -> pa.Array:
    """A column of a batch; NULLs for one that its table does not have any more."""
    if field.name == CHANGE_ID_COLUMN:
        return pa.array(change_ids(rows), field.type)
    if field.name not in rows.batch.schema.names:
        return pa.nulls(rows.batch.num_rows, field.type)
    return rows.batch.column(field.name).cast(field.type)


def narrowed(capture: PollCapture, names: Sequence[str]) -> PollCapture:
    """A capture that reads only some columns, and the key where ids are wanted."""
    wanted = set(names)
    if CHANGE_ID_COLUMN in wanted:
        wanted |= set(capture.table.primary_key)
    columns = tuple(pair for pair in capture.table.columns if pair[0] in wanted)
    return replace(capture, table=replace(capture.table, columns=columns))


def reading(options: SourceOptions) -> Reading:
    """Finds the tables. Raises TableNotFoundError, NotWatchableError."""
    database = connect(options.address)
    schema = read_schema(database)
    captures = tuple(
        PollCapture(
            options.address,
            table,
            groups(table.shard_values, options.shard_groups),
            options.nanoseconds,
        )
        for table in chosen(options, schema, database.name)
    )
    if options.envelope:
        return Reading(options, captures, ENVELOPE)
    return Reading(options, captures, pa.schema([*captures[0].schema, ID_FIELD]))


def chosen(options: SourceOptions, schema: Schema, database: str) -> Iterator[WatchedTable]:
    """The tables that the options name, by name."""
    if options.table is not None:
        yield watched_table(schema, options.table, database)
        return
    selection = Selection(
        listed(options.tables or ""), listed(options.exclude), own_tables(options.positions_table)
    )
    yield from sorted(select(schema, selection, {}, database), key=lambda table: table.name)


def snapshot_reading(options: SourceOptions) -> Reading:
    """As ``reading``; one table may be without an index, because it is read whole."""
    if options.table is None:
        return reading(options)
    database = connect(options.address)
    table = one(read_schema(database), options.table, database.name, None, scan=True)
    capture = PollCapture(options.address, table, (), options.nanoseconds)
    return Reading(options, (capture,), pa.schema([*capture.schema, ID_FIELD]))


def enveloped(changes: Iterator[Change], shown: pa.Schema) -> pa.RecordBatch:
    """Changes of any table as rows of one form."""
    rows = [
        (
            change.table,
            str(change.operation),
            change.commit_timestamp,
            json_text(change.key),
            json_text(whole_row(change)),
            change.id,
        )
        for change in changes
    ]
    columns = list(zip(*rows, strict=True)) or [()] * len(ENVELOPE)
    arrays = [
        pa.array(columns[ENVELOPE.get_field_index(field.name)], field.type) for field in shown
    ]
    return pa.RecordBatch.from_arrays(arrays, schema=shown)


def whole_row(change: Change) -> dict[str, Value]:
    """Key and values in the order of the table's columns."""
    cells = {**change.key, **(change.new_values or {})}
    return {name: cells[name] for name, _ in change.shape.columns if name in cells}
