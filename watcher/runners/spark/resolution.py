"""Options and a schema -> the scan of a query."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

import pyarrow as pa
from google.cloud.spanner_v1.database import Database

from spanner_schema.model.schema import Schema
from watcher.captures.change_stream import (
    ChangeFilter,
    ChangeStreamCapture,
    WatchedStream,
    WholeRows,
    choose_recorded_columns,
    find_streamed_tables,
    list_streamed_columns,
    use_placements,
)
from watcher.captures.change_types import CHANGE_FIELDS
from watcher.captures.poll import PollCapture
from watcher.consumers.positions import own_tables
from watcher.envelopes import Known
from watcher.envelopes.batches import MESSAGE
from watcher.model.errors import ConfigurationError, NotWatchableError
from watcher.overview.probe.stored import refuse_unsafe
from watcher.replica.cuts.modes import HISTORY
from watcher.runners.spark.scan import Scan, narrow_capture
from watcher.runners.spark.shapes import (
    ENVELOPE,
    ID_FIELD,
    JSON_FIELDS,
    STREAM_ENVELOPE,
    STREAM_FIELDS,
    resolve_format,
)
from watcher.runners.spark.table_batches import TABLE_BATCHES
from watcher.runners.spark.variants import use_variants
from watcher.settings.fields import EARLIEST
from watcher.settings.modes import list_scan_modes
from watcher.settings.spark import JsonType, SourceOptions
from watcher.settings.spark_texts import split_names
from watcher.spanner.database import connect
from watcher.spanner.queries import QueryClient
from watcher.spanner.read_options import write_tag
from watcher.tables.discovery import find_watched_table
from watcher.tables.schema_reader import read_epoch
from watcher.tables.selection import (
    Selection,
    find_spec,
    find_table,
    list_filters,
    read_filtered,
    select,
)
from watcher.tables.shards import group_shards
from watcher.tables.values import WatchedTable


def resolve_scan(options: SourceOptions) -> Scan:
    """Finds the tables. Raises TableNotFoundError, NotWatchableError, and ConfigurationError when
    the capture cannot fill the envelope."""
    refuse_unsafe_scan(options, connect(options.address))
    queries = make_scan_queries(options)
    epoch = read_epoch(queries.stream)
    return replace(resolve_scan_in(epoch.schema, options, queries), known_at=epoch.read_timestamp)


def refuse_unsafe_scan(options: SourceOptions, database: Database) -> None:
    """Raises UnsafeModeError where a probe of the database has found wrong what the query relies
    on."""
    modes, accepted = list_scan_modes(options), options.accept_failed_probes
    table, address = options.positions_table, options.address
    refuse_unsafe(database, table, address, modes, accepted, "acceptFailedProbes")


def resolve_scan_in(schema: Schema, options: SourceOptions, queries: QueryClient) -> Scan:
    """The tables of a query in a schema. Errors as ``resolve_scan``."""
    database = options.address.path
    if options.streamed:
        return resolve_streamed_scan(options, schema, database, queries)
    resolve_format(options).check(Known("poll", backfill=options.starting_timestamp == EARLIEST))
    captures = tuple(
        PollCapture(
            queries,
            table,
            group_shards(table.shard_values, options.shard_groups),
            options.nanoseconds,
        )
        for table in find_tables(options, schema, database)
    )
    return Scan(options, captures, make_shown_schema(options, captures))


def make_scan_queries(options: SourceOptions) -> QueryClient:
    """Where a query reads; its captures have it in common, also on an executor."""
    read_options = replace(options.read_options, tag=write_tag("spark", options.consumer))
    return QueryClient(options.address, read_options, options.outage_seconds)


def make_shown_schema(options: SourceOptions, captures: Sequence[PollCapture]) -> pa.Schema:
    """The columns of a query. Raises ConfigurationError for VARIANT where there can be none."""
    if options.arrow_rows:
        return TABLE_BATCHES
    variant = options.json_type is JsonType.VARIANT
    changes = CHANGE_FIELDS if options.change_columns else ()
    if options.envelope is not None:
        if variant:
            raise ConfigurationError(
                "'jsonType' variant is for columns of tables and for 'tables'; the key and the"
                f" value of the envelope '{options.envelope}' are bytes: leave it out"
            )
        return MESSAGE
    if options.uniform:
        form = STREAM_ENVELOPE if options.streamed else ENVELOPE
        shown = pa.schema([*form, *changes])
        return use_variants(shown, JSON_FIELDS) if variant else shown
    table = captures[0]
    more = STREAM_FIELDS if options.streamed else ()
    shown = pa.schema([*table.typed_schema, ID_FIELD, *more, *changes])
    return use_variants(shown, json_columns(table.table)) if variant else shown


def json_columns(table: WatchedTable) -> set[str]:
    """The columns of JSON, and of arrays of it."""
    return {
        name
        for name, type_ in table.columns
        if type_.code.is_json or (type_.element is not None and type_.element.code.is_json)
    }


def resolve_streamed_scan(
    options: SourceOptions, schema: Schema, database: str, queries: QueryClient
) -> Scan:
    """The tables of a change stream."""
    selection = make_scan_selection(options)
    stream, tables = find_streamed_tables(
        schema, options.stream, selection, database, options.specs
    )
    stream = use_placements(queries.stream, stream, split_names(options.placements))
    backfill = options.starting_timestamp == EARLIEST
    known = Known("change-stream", stream.known_values(options.whole_rows), backfill)
    resolve_format(options).check(known)
    if not options.uniform:
        tables = tuple(keep_captured_columns(options, schema, stream, table) for table in tables)
    specs = read_filtered(options.specs, tables)
    choices = {name.casefold(): spec.choice for name, spec in specs.items()}
    change_filter = ChangeFilter(
        frozenset(table.name for table in tables),
        frozenset(options.operations),
        options.transaction_tag,
        choose_recorded_columns(schema, tables, choices),
        selection if options.tables is not None else None,
        list_filters(tables),
    )
    # Of batches of rows `watcher.replicate` makes copies; a history has rows as they were.
    newest = options.arrow_rows and options.copy_mode != HISTORY
    whole = WholeRows(queries, specs, newest) if options.whole_rows else None
    captures = tuple(PollCapture(queries, t, (), options.nanoseconds) for t in tables)
    capture = ChangeStreamCapture(queries, stream, change_filter, whole)
    return Scan(options, captures, make_shown_schema(options, captures), capture)


def keep_captured_columns(
    options: SourceOptions, schema: Schema, stream: WatchedStream, table: WatchedTable
) -> WatchedTable:
    """A table with the columns that its changes contain. Raises ConfigurationError where a change
    contains only some of them: NULL would mean two things."""
    if options.whole_rows:
        return table
    if not stream.captured.whole_row:
        raise ConfigurationError(
            f"change stream {stream.name} has value_capture_type {stream.captured}, which does not"
            " contain whole rows: set the option 'wholeRows' to 'true' to have them read, use"
            " 'tables' instead of 'table', or create a stream with NEW_ROW_AND_OLD_VALUES"
        )
    definition = schema.table(table.name)
    names = list_streamed_columns(schema, stream.name, definition) if definition is not None else ()
    return table.keep_columns(names)


def make_scan_selection(options: SourceOptions) -> Selection:
    """The tables that the options name."""
    named = (options.table,) if options.table is not None else split_names(options.tables or "")
    ours = own_tables(options.positions_table)
    return Selection(named, split_names(options.exclude), ours, complete=options.arrow_rows)


def find_tables(options: SourceOptions, schema: Schema, database: str) -> Iterator[WatchedTable]:
    """The tables that the options name, by name."""
    if options.table is not None:
        spec = find_spec(options.specs, options.table)
        yield find_watched_table(schema, options.table, database, spec)
        return
    tables = select(schema, make_scan_selection(options), options.specs, database)
    yield from sorted(tables, key=lambda table: table.name)


def resolve_batch_scan(options: SourceOptions) -> Scan:
    """Spark does not say here whether this is a stream, which needs an index, or a batch, for which
    a commit timestamp is enough. Errors as ``resolve_scan``."""
    try:
        return resolve_scan(options)
    except NotWatchableError as error:
        if options.reads_changes:
            raise
        try:
            return resolve_snapshot_scan(options)
        except NotWatchableError:
            raise error from None


def resolve_snapshot_scan(options: SourceOptions) -> Scan:
    """As ``resolve_scan``; one table may be without an index, because it is read whole."""
    refuse_unsafe_scan(options, connect(options.address))
    queries = make_scan_queries(options)
    return resolve_whole_scan_in(read_epoch(queries.stream).schema, options, queries)


def resolve_whole_scan_in(schema: Schema, options: SourceOptions, queries: QueryClient) -> Scan:
    """As ``resolve_scan_in``; one table may be without an index, because it is read whole."""
    if options.table is None or options.uniform or options.streamed:
        return resolve_scan_in(schema, options, queries)
    spec = find_spec(options.specs, options.table)
    table = find_table(schema, options.table, options.address.path, spec, scan=True)
    capture = PollCapture(queries, table, (), options.nanoseconds)
    return Scan(options, (capture,), make_shown_schema(options, (capture,)))


def resolve_scan_again(scan: Scan, schema: Schema, whole: bool = False) -> Scan:
    """The same query in another schema: with its tables, columns, index and shards. The columns
    that it shows stay; those that a table does not have are NULL. ``whole``: tables are read whole.

    Raises NotWatchableError or TableNotFoundError where it cannot be read.
    """
    resolve = resolve_whole_scan_in if whole else resolve_scan_in
    fresh = resolve(schema, scan.options, scan.queries)
    captures = fresh.captures
    if not scan.options.uniform:
        captures = tuple(narrow_capture(each, scan.shown.names) for each in captures)
    return replace(fresh, captures=captures, shown=scan.shown, known_at=scan.known_at)
