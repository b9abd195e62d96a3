"""What one query reads: its tables, and which of their columns it shows."""

from __future__ import annotations

from collections.abc import Container, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import pyarrow as pa
from pyspark.sql.pandas.types import from_arrow_schema, to_arrow_schema
from pyspark.sql.types import StructType

from ddl.schema import Schema, TypeCode
from watcher.captures import Changed, StreamRows
from watcher.captures.change_stream import (
    ChangeFilter,
    ChangeStreamCapture,
    WatchedStream,
    WholeRows,
    find_stream,
    list_streamed_columns,
)
from watcher.captures.changes import iterate_changes
from watcher.captures.poll import PollCapture
from watcher.change import Shape
from watcher.consumers.positions import own_tables
from watcher.envelopes import Known
from watcher.errors import ConfigurationError, SchemaChangedError
from watcher.runners.spark.shaping import (
    CHANGE_ID_COLUMN,
    ENVELOPE,
    ID_FIELD,
    JSON_FIELDS,
    MESSAGE,
    STREAM_ENVELOPE,
    STREAM_FIELDS,
    enveloped,
    format_of,
    messages,
    stored,
    typed,
)
from watcher.runners.spark.variants import of_variants, with_texts, with_variants
from watcher.settings.fields import EARLIEST
from watcher.settings.spark import JsonType, SchemaChange, SourceOptions, listed
from watcher.spanner.database import connect
from watcher.spanner.queries import QueryClient
from watcher.tables.discovery import find_watched_table, find_whole_table
from watcher.tables.schema_reader import read_epoch
from watcher.tables.selection import Selection, find_table, is_glob, select, select_streamed
from watcher.tables.shards import group_shards
from watcher.tables.values import WatchedTable


@dataclass(frozen=True)
class Reading:
    """The tables of a query, and the columns that it shows. Picklable: executors shape rows.

    With a ``stream`` it tells the changes, and the captures read tables whole, for a backfill.
    """

    options: SourceOptions
    captures: tuple[PollCapture, ...]
    shown: pa.Schema
    stream: ChangeStreamCapture | None = None
    known_at: int = 0
    """The read timestamp (microseconds since 1970) of the schema that the columns are from."""

    @property
    def tables(self) -> tuple[str, ...]:
        """The names of the tables."""
        return tuple(self._by_name)

    @cached_property
    def _by_name(self) -> dict[str, PollCapture]:
        return {capture.table.name: capture for capture in self.captures}

    @property
    def queries(self) -> QueryClient:
        """Where the query reads."""
        return self.captures[0].queries

    def capture(self, table: str) -> PollCapture:
        """The capture of a table."""
        return self._by_name[table]

    @property
    def spark_schema(self) -> StructType:
        """The columns in Spark's types."""
        found: StructType = from_arrow_schema(self.shown)
        return found

    def in_schema(self, schema: Schema, whole: bool = False) -> Reading:
        """The same query in another schema: with the tables, columns, index and shards of that. The
        columns that it shows stay; those that a table does not have are NULL. ``whole``: tables are
        read whole.

        Raises NotWatchableError or TableNotFoundError where it cannot be read.
        """
        find = whole_in if whole else reading_in
        fresh = find(schema, self.options, self.queries)
        captures = fresh.captures
        if not self.options.uniform:
            captures = tuple(narrowed(each, self.shown.names) for each in captures)
        return replace(fresh, captures=captures, shown=self.shown, known_at=self.known_at)

    def only(self, tables: Container[str] | None) -> Reading:
        """The same query with some of its tables; None is all of them."""
        if tables is None:
            return self
        return replace(self, captures=tuple(c for c in self.captures if c.table.name in tables))

    def check_columns(self, before: Reading) -> None:
        """Raises SchemaChangedError where a table has another type in a column that the query
        shows, or has lost it, unless the options want NULLs then. ``before`` is the query as it
        began."""
        if self.options.uniform or self.stream is not None:
            return
        types = dict(self.captures[0].table.columns)
        stop = self.options.on_schema_change is SchemaChange.STOP
        for name, was in before.captures[0].table.columns:
            if name not in self.shown.names:
                continue
            if name not in types and stop:
                raise schema_changed(self.options, f"column {name} was dropped")
            if types.get(name, was).code is not was.code:
                became = types[name].code
                raise schema_changed(
                    self.options, f"column {name} was {was.code.value} and is {became.value}"
                )

    @cached_property
    def _texts(self) -> pa.Schema:
        return with_texts(self.shown)

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
        if self.options.uniform:
            return replace(self, shown=wanted)
        captures = tuple(narrowed(each, wanted.names) for each in self.captures)
        return replace(self, captures=captures, shown=wanted)

    def shaped(self, rows: Changed) -> pa.RecordBatch:
        """The columns that the query shows, of what changed in one of its tables."""
        shaped = self._shaped(rows)
        return shaped if self._texts is self.shown else with_variants(shaped, self.shown)

    def _shaped(self, rows: Changed) -> pa.RecordBatch:
        options = self.options
        if options.envelope is not None:
            return messages(
                iterate_changes(rows, options.address.path), format_of(options), self._texts
            )
        if options.uniform:
            return enveloped(iterate_changes(rows, options.address.path), self._texts)
        if isinstance(rows, StreamRows):
            return typed(rows, self.captures[0].table, self._texts, options.nanoseconds)
        return stored(rows, self._texts)


def schema_changed(options: SourceOptions, what: str) -> SchemaChangedError:
    """The refusal of a schema that the query does not fit any more."""
    return SchemaChangedError(
        f"the schema of {options.source} has changed while the query ran ({what});"
        " start the query again to read the columns that there are now, or set the option"
        " 'onSchemaChange' to 'nulls' to go on with NULLs for a column that is dropped"
    )


def narrowed(capture: PollCapture, names: Sequence[str]) -> PollCapture:
    """A capture that reads only some columns, and the key where ids are wanted."""
    wanted = set(names)
    if CHANGE_ID_COLUMN in wanted:
        wanted |= set(capture.table.primary_key)
    columns = tuple(pair for pair in capture.table.columns if pair[0] in wanted)
    return replace(capture, table=replace(capture.table, columns=columns))


def reading(options: SourceOptions) -> Reading:
    """Finds the tables. Raises TableNotFoundError, NotWatchableError, and ConfigurationError when
    the capture cannot fill the envelope."""
    connect(options.address)
    queries = queries_of(options)
    epoch = read_epoch(queries.stream)
    return replace(reading_in(epoch.schema, options, queries), known_at=epoch.read_timestamp)


def reading_in(schema: Schema, options: SourceOptions, queries: QueryClient) -> Reading:
    """The tables of a query in a schema. Errors as ``reading``."""
    database = options.address.path
    if options.streamed:
        return streamed(options, schema, database, queries)
    format_of(options).check(Known("poll", backfill=options.starting_timestamp == EARLIEST))
    captures = tuple(
        PollCapture(
            queries,
            table,
            group_shards(table.shard_values, options.shard_groups),
            options.nanoseconds,
        )
        for table in chosen(options, schema, database)
    )
    return Reading(options, captures, shown_of(options, captures))


def queries_of(options: SourceOptions) -> QueryClient:
    """Where a query reads; its captures have it in common, also on an executor."""
    return QueryClient(options.address, options.read_options, options.outage_seconds)


def shown_of(options: SourceOptions, captures: Sequence[PollCapture]) -> pa.Schema:
    """The columns of a query. Raises ConfigurationError for VARIANT where there can be none."""
    variant = options.json_type is JsonType.VARIANT
    if options.envelope is not None:
        if variant:
            raise ConfigurationError(
                "'jsonType' variant is for columns of tables and for 'tables'; the key and the"
                f" value of the envelope '{options.envelope}' are bytes: leave it out"
            )
        return MESSAGE
    if options.uniform:
        shown = STREAM_ENVELOPE if options.streamed else ENVELOPE
        return of_variants(shown, JSON_FIELDS) if variant else shown
    table = captures[0]
    more = STREAM_FIELDS if options.streamed else ()
    shown = pa.schema([*table.typed_schema, ID_FIELD, *more])
    return of_variants(shown, json_columns(table.table)) if variant else shown


def json_columns(table: WatchedTable) -> set[str]:
    """The columns of JSON, and of arrays of it."""
    return {
        name
        for name, type_ in table.columns
        if TypeCode.JSON in (type_.code, type_.element.code if type_.element else None)
    }


def streamed(
    options: SourceOptions, schema: Schema, database: str, queries: QueryClient
) -> Reading:
    """The tables of a change stream."""
    selection = selection_of(options)
    named = [name for name in selection.include if not is_glob(name)]
    spelled = [find_whole_table(schema, name, database).name for name in named]
    stream = find_stream(schema, options.stream, spelled, database)
    tables = select_streamed(schema, selection, stream.tables, database)
    known = stream.captured.whole_row_form if options.whole_rows else stream.captured
    backfill = options.starting_timestamp == EARLIEST
    format_of(options).check(Known("change-stream", known, backfill))
    if not options.uniform:
        tables = tuple(told(options, schema, stream, table) for table in tables)
    wanted = ChangeFilter(
        frozenset(table.name for table in tables),
        frozenset(options.operations),
        options.transaction_tag,
        selection=selection if options.tables is not None else None,
    )
    shapes = tuple(Shape(each.name, each.columns, each.primary_key) for each in tables)
    whole = WholeRows(queries, shapes) if options.whole_rows else None
    captures = tuple(PollCapture(queries, t, (), options.nanoseconds) for t in tables)
    capture = ChangeStreamCapture(queries, stream, wanted, whole)
    return Reading(options, captures, shown_of(options, captures), capture)


def told(
    options: SourceOptions, schema: Schema, stream: WatchedStream, table: WatchedTable
) -> WatchedTable:
    """A table with the columns that its changes tell. Raises ConfigurationError where they tell of
    some of them only now and then: NULL would mean two things."""
    if options.whole_rows:
        return table
    if not stream.captured.whole_row:
        raise ConfigurationError(
            f"change stream {stream.name} has value_capture_type {stream.captured}, which does not"
            " tell whole rows; set the option 'wholeRows' to 'true' to have them read, use 'tables'"
            " instead of 'table', or make a stream with NEW_ROW_AND_OLD_VALUES"
        )
    found = schema.table(table.name)
    names = list_streamed_columns(schema, stream.name, found) if found is not None else ()
    return replace(table, columns=tuple(pair for pair in table.columns if pair[0] in names))


def selection_of(options: SourceOptions) -> Selection:
    """The tables that the options name."""
    named = (options.table,) if options.table is not None else listed(options.tables or "")
    return Selection(named, listed(options.exclude), own_tables(options.positions_table))


def chosen(options: SourceOptions, schema: Schema, database: str) -> Iterator[WatchedTable]:
    """The tables that the options name, by name."""
    if options.table is not None:
        yield find_watched_table(schema, options.table, database)
        return
    found = select(schema, selection_of(options), {}, database)
    yield from sorted(found, key=lambda table: table.name)


def snapshot_reading(options: SourceOptions) -> Reading:
    """As ``reading``; one table may be without an index, because it is read whole."""
    connect(options.address)
    queries = queries_of(options)
    return whole_in(read_epoch(queries.stream).schema, options, queries)


def whole_in(schema: Schema, options: SourceOptions, queries: QueryClient) -> Reading:
    """As ``reading_in``; one table may be without an index, because it is read whole."""
    if options.table is None or options.uniform or options.streamed:
        return reading_in(schema, options, queries)
    table = find_table(schema, options.table, options.address.path, None, scan=True)
    capture = PollCapture(queries, table, (), options.nanoseconds)
    return Reading(options, (capture,), shown_of(options, (capture,)))
