"""Is this database ready to be watched, and what to do if not."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from google.api_core.exceptions import GoogleAPICallError
from google.cloud.spanner_v1 import param_types
from google.cloud.spanner_v1.database import Database

from spanner_schema.model.names import split_name
from watcher.consumers.clearing.guard import check_erasable
from watcher.model.assumptions.ledger import LEDGER, list_unsafe
from watcher.model.errors import ConfigurationError, NotOursError, WatcherError
from watcher.model.window import BEGINNING, Window
from watcher.overview.page.service import choose_token
from watcher.overview.probe.stored import load_failures
from watcher.overview.reader import StaleReader
from watcher.overview.stored import read_own_columns, read_stored_state
from watcher.runners.sources import make_queries, resolve_streamed, select_polled
from watcher.settings.modes import list_watch_modes
from watcher.settings.sections import PageConfig
from watcher.settings.watcher import WatchConfig
from watcher.sinks.queues import open_queue
from watcher.spanner.database import connect
from watcher.spanner.dialects import find_dialect
from watcher.spanner.failures import suggest_fix
from watcher.spanner.queries import QueryClient
from watcher.tables.discovery import read_schema
from watcher.tables.values import WatchedTable


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that was checked. ``advice`` says what to do when it is not ``ok``."""

    name: str
    ok: bool
    detail: str
    advice: str = ""


def check(config: WatchConfig) -> Iterator[Finding]:
    """Checks access, schema and indexes, one after another; ends where nothing more can be checked.

    Changes nothing.
    """
    try:
        database = connect(config.address)
    except WatcherError as error:
        yield Finding("access", False, str(error), "see above")
        return
    yield Finding("access", True, f"{config.address} answers")
    apart = config.positions_address != config.address
    positions = connect(config.positions_address) if apart else database
    yield from check_probe(config, positions)
    if config.capture == "change-stream":
        yield from check_stream(config, database)
    else:
        yield from check_polled(config, database)
    if config.delivery.queue is not None:
        yield check_queue(config)
    if config.page is not None:
        yield check_page(config.page)
    if config.positions.keep == "spanner" and config.consumer is not None:
        yield check_consumer(config, positions, config.consumer)
    if config.consumer is None:
        yield Finding(
            "consumer",
            True,
            "no consumer is named: positions are not saved, and clearing does not wait",
        )


def check_probe(config: WatchConfig, positions: Database) -> Iterator[Finding]:
    """What the last probe of the database found wrong; nothing where that is nothing."""
    for name, seen in load_failures(positions, config.positions.table, config.address).items():
        accepted = name in config.accept_failed_probes
        unsafe = bool(list_unsafe([name], list_watch_modes(config))) and not accepted
        advice_ = LEDGER[name].advice if name in LEDGER else ""
        yield Finding(f"assumption {name}", not unsafe, f"does not hold: {seen}", advice_)


def check_stream(config: WatchConfig, database: Database) -> Iterator[Finding]:
    """Is there a change stream that watches the tables, and can it be read?"""
    try:
        tables = resolve_streamed(
            config, make_queries(config), read_schema(database), database.name
        )
        stream = tables.change_stream
        now = tables.look(dict.fromkeys(tables.tables, BEGINNING)).end
        parts = len(tables.plan(Window(now - 1, now)))
    except WatcherError as error:
        yield Finding("change stream", False, str(error), "see above")
        return
    except GoogleAPICallError as error:
        yield Finding("change stream", False, str(error.message), suggest_fix(error))
        return
    yield Finding("tables", True, ", ".join(tables.tables))
    yield Finding(
        f"change stream {stream.name}", True, f"readable, {parts} partitions, {stream.captured}"
    )


def check_polled(config: WatchConfig, database: Database) -> Iterator[Finding]:
    """Are there tables that can be polled, and their indexes readable?"""
    try:
        tables = select_polled(config, read_schema(database), database.name, None)
    except WatcherError as error:
        advice_ = "run 'spanner-watcher ddl plan' to see how; an index counts once it is backfilled"
        yield Finding("tables", False, str(error), advice_)
        return
    except GoogleAPICallError as error:
        yield Finding("schema", False, str(error.message), suggest_fix(error))
        return
    yield Finding("tables", True, ", ".join(table.name for table in tables))
    for table in tables:
        yield from check_table(database, table)


def check_table(database: Database, table: WatchedTable) -> Iterator[Finding]:
    """Are the index and the shard column readable, and can the index be cleared?"""
    if table.index is None:
        yield Finding(
            f"{table.name}: index",
            False,
            "no index on the shard and the commit timestamp exists: each poll scans the table",
            f"spanner-watcher ddl apply --database spanner://{database.name} --table {table.name}",
        )
        return
    (schema, name), (_, index) = split_name(table.name), split_name(table.index)
    state = read_scalar(
        database,
        "SELECT INDEX_STATE FROM INFORMATION_SCHEMA.INDEXES"
        " WHERE TABLE_SCHEMA = @schema AND TABLE_NAME = @table AND INDEX_NAME = @name",
        {"schema": schema or table.sql.default_schema, "table": name, "name": index},
    )
    yield Finding(
        f"{table.name}: index {table.index}",
        state in ("READ_WRITE", None, ""),
        f"state {state}" if state else "readable",
        "the index is still being backfilled: wait until it is ready",
    )
    yield check_clearing(database, table)


def check_clearing(database: Database, table: WatchedTable) -> Finding:
    """Can delivered rows leave the index, and may they?"""
    check = f"{table.name}: clearing"
    if table.processed_column is None and not table.clears_by_null:
        why = "the timestamp column is NOT NULL"
        return Finding(check, False, why, "drop the NOT NULL, or use the strategy 'processed'")
    try:
        check_erasable(database, table)
    except NotOursError as error:
        return Finding(check, False, str(error), "without clearing, rows stay in the index")
    return Finding(check, True, "delivered rows can leave the index")


def check_queue(config: WatchConfig) -> Finding:
    """Does the queue answer that changes go to?"""
    try:
        open_queue(config)
    except WatcherError as error:
        return Finding("destination", False, str(error), "see above")
    return Finding("destination", True, f"{config.delivery.queue} is ready")


def check_page(page: PageConfig) -> Finding:
    """Can the page be served, and who can open it?"""
    try:
        token = choose_token(page)
    except WatcherError as error:
        return Finding("page", False, str(error), "see above")
    who = "with a token" if token is not None else "without a token"
    return Finding("page", True, f"{page.host}, port {page.port}, {who}")


def check_consumer(config: WatchConfig, positions: Database, consumer: str) -> Finding:
    """Is the consumer's name free?"""
    now = QueryClient(config.positions_address).fetch_read_timestamp()
    reader, table = StaleReader(positions, now), config.positions.table
    try:
        state = read_stored_state(reader, table, read_own_columns(reader, table))
    except ConfigurationError as error:
        return Finding(f"consumer {consumer}", False, str(error), "see above")
    status = state.statuses.get(consumer)
    if status is not None and status.alive:
        return Finding(
            f"consumer {consumer}",
            False,
            f"another instance runs under this name ({status.state})",
            f"stop it (spanner-watcher ctl stop {consumer}), or choose another name",
        )
    return Finding(f"consumer {consumer}", True, "the name is free")


def read_scalar(database: Database, query: str, params: dict[str, str]) -> str | None:
    """The first cell of a query's result; None without a row."""
    with database.snapshot() as snapshot:
        values = {name: (value, param_types.STRING) for name, value in params.items()}
        rows = snapshot.execute_sql(*find_dialect(database).bind(query, values))
        return next((row[0] for row in rows), None)
