"""The tables of a configuration as a ``Source``: polled, or read from a change stream."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from spanner_schema.model.schema import Schema
from watcher.captures.change_stream import (
    ChangeFilter,
    ChangeStreamCapture,
    WatchedStream,
    WholeRows,
    choose_recorded_columns,
    find_streamed_tables,
    use_placements,
)
from watcher.captures.poll import PollCapture
from watcher.captures.poll_tables import PolledTables
from watcher.captures.streamed_tables import StreamedTables
from watcher.consumers.positions import own_tables
from watcher.envelopes import Known
from watcher.model.errors import ConfigurationError
from watcher.replica.cuts.modes import HISTORY, LATEST
from watcher.settings.watcher import WatchConfig
from watcher.spanner.queries import QueryClient
from watcher.spanner.read_options import write_tag
from watcher.tables.selection import Selection, list_filters, read_filtered, select
from watcher.tables.shards import group_shards
from watcher.tables.values import TableSpec, WatchedTable

WatchedTables = PolledTables | StreamedTables


def make_selection(config: WatchConfig) -> Selection:
    """The tables that a configuration selects; never the product's own tables."""
    complete = config.replica is not None
    ours = own_tables(config.positions.table)
    return Selection(config.tables, config.exclude, ours, complete=complete)


def make_queries(config: WatchConfig) -> QueryClient:
    """Where a watcher reads; all its captures have it in common."""
    work = "replicate" if config.replica is not None else "watch"
    options = replace(config.read_options, tag=write_tag(work, config.consumer))
    return QueryClient(config.address, options)


def select_polled(
    config: WatchConfig, schema: Schema, database: str, scan: frozenset[str] | None
) -> tuple[WatchedTable, ...]:
    """The tables to poll. ``scan`` names those that may be read without their index.

    Raises NotWatchableError, TableNotFoundError.
    """
    return select(schema, make_selection(config), config.table, database, scan)


def make_polled(
    config: WatchConfig, queries: QueryClient, tables: Sequence[WatchedTable]
) -> PolledTables:
    """Tables as a source that polls them."""
    return PolledTables(
        [
            PollCapture(
                queries,
                each,
                group_shards(each.shard_values, config.shard_groups),
                config.nanoseconds,
            )
            for each in tables
        ]
    )


def check_push(config: WatchConfig, stream: WatchedStream) -> None:
    """Raises ConfigurationError for queries that would have to stay open and cannot."""
    if config.stream.push and stream.keys_move:
        raise ConfigurationError(
            f"stream.push needs queries without an end, and change stream {stream.name} has"
            " partition_mode = 'MUTABLE_KEY_RANGE', whose queries must have one: remove stream.push"
            " and choose a short interval"
        )


def resolve_streamed(
    config: WatchConfig, queries: QueryClient, schema: Schema, database: str
) -> StreamedTables:
    """The tables of a change stream. Raises NotWatchableError, TableNotFoundError, and
    ConfigurationError when the stream cannot fill the envelope."""
    selection = make_selection(config)
    stream, tables = find_streamed_tables(
        schema, config.stream.name, selection, database, config.table
    )
    stream = use_placements(queries.stream, stream, config.stream.placements)
    check_push(config, stream)
    whole = config.stream.whole_rows
    known = Known("change-stream", stream.known_values(whole), bool(config.backfill))
    config.check_known(known)
    specs = read_filtered(config.table, tables)
    choices = {name.casefold(): spec.choice for name, spec in specs.items()}
    capture = ChangeStreamCapture(
        queries,
        stream,
        ChangeFilter(
            frozenset(table.name for table in tables),
            config.stream.operation_set,
            config.stream.tag,
            choose_recorded_columns(schema, tables, choices),
            selection,
            list_filters(tables),
        ),
        make_whole_rows(config, queries, specs) if whole else None,
    )
    captures = [PollCapture(queries, each, (), config.nanoseconds) for each in tables]
    return StreamedTables(capture, captures)


def make_whole_rows(
    config: WatchConfig, queries: QueryClient, specs: Mapping[str, TableSpec]
) -> WholeRows:
    """What completes the records of a stream. Copies that keep the newest row of each key alone
    need no row but that at the window's end; a history takes no later row for an earlier version,
    and is loaded again where that is gone."""
    replica = config.replica
    at_end = replica is not None and replica.mode == LATEST
    newest = replica is not None and replica.mode != HISTORY
    return WholeRows(queries, specs, newest=newest, at_end=at_end)
