"""What a watcher delivered of a schema, as rows: lines of two formats, or calls of a callback."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Any

import duckdb
from fixtures.same_values import (
    Key,
    Row,
    compare_rows,
    key_of,
    read_copied_cell,
    read_line_cell,
    read_row,
    truncate_timestamps,
)
from fixtures.table_facts import TableFacts

from watcher.cli.watch import make_sink
from watcher.model.change import Change
from watcher.runners.watcher import Watcher
from watcher.settings.destinations import DuckDbDestination
from watcher.settings.watcher import parse_watch_config
from watcher.sinks.table_store import quote_target


class SinkKind(StrEnum):
    """Where changes go: a file of plain lines, one of Debezium's, a function, or tables of another
    database, of DuckDB."""

    PLAIN = "plain"
    DEBEZIUM = "debezium"
    CALLBACK = "callback"
    TABLES = "tables"


@dataclass(frozen=True, slots=True)
class Delivered:
    """A change: its key and the cells that it has, or that the row is gone."""

    table: str
    cells: Row
    gone: bool


def deliver(
    settings: dict[str, Any], kind: SinkKind, path: Path, tables: Iterable[TableFacts]
) -> list[Delivered]:
    """Runs a watcher up to now; what it delivered to a sink of this kind."""
    by_name = {table.name: table for table in tables}
    if kind is SinkKind.CALLBACK:
        changes: list[Change] = []
        watcher = Watcher(parse_watch_config(settings))
        watcher.on_change(changes.append)
        watcher.run_once()
        return [read_change(change, by_name[change.table]) for change in changes]
    if kind is SinkKind.TABLES:
        delivered = deliver(settings, SinkKind.PLAIN, path, by_name.values())
        compare_tables(settings, path.with_name("tables.duckdb"), by_name.values(), delivered)
        return delivered
    config = parse_watch_config({"delivery": {"to": str(path), "envelope": kind.value}} | settings)
    watcher = Watcher(config)
    watcher.deliver_to(make_sink(config))
    watcher.run_once()
    text = path.read_text() if path.exists() else ""
    read = read_plain_line if kind is SinkKind.PLAIN else read_debezium_line
    return [each for line in text.splitlines() for each in read(json.loads(line), by_name)]


def compare_tables(
    settings: dict[str, Any], path: Path, tables: Iterable[TableFacts], changes: Sequence[Delivered]
) -> None:
    """Raises AssertionError unless the tables of a second watcher have the newest of these
    changes."""
    alone = {"consumer": "tables", "positions": {"keep": "memory"}}
    config = parse_watch_config({"delivery": {"to": f"duckdb:{path}"}} | settings | alone)
    watcher = Watcher(config)
    watcher.deliver_to(make_sink(config))
    watcher.run_once()
    queue = config.delivery.queue
    assert isinstance(queue, DuckDbDestination)
    with duckdb.connect(path) as connection:
        connection.execute("SET TimeZone = 'UTC'")
        for table in tables:
            changed = apply_changes(table, {}, changes)
            expected = {key: truncate_row(table, row) for key, row in changed.items()}
            target = quote_target(queue.name_target(table.name))
            names = {name for each in changes if each.table == table.name for name in each.cells}
            rows = (
                connection.sql(f"SELECT * FROM {target}").to_arrow_table().to_pylist()
                if names
                else []
            )
            found = [read_row(table.columns, row, read_copied_cell) for row in rows]
            left_out = frozenset(table.columns) - names
            problems = compare_rows(table, expected, found, left_out)
            assert not problems, problems


def truncate_row(table: TableFacts, row: Row) -> Row:
    """A row in microseconds, but for its key."""
    return {
        name: cell if name in table.key else truncate_timestamps(table.columns[name].type, cell)
        for name, cell in row.items()
    }


def read_change(change: Change, table: TableFacts) -> Delivered:
    """What a callback got."""
    cells = {**change.key, **(change.new_values or {})}
    row = read_row(table.columns, cells, read_copied_cell)
    return Delivered(table.name, row, change.new_values is None)


def read_plain_line(line: Any, tables: Mapping[str, TableFacts]) -> Iterator[Delivered]:
    """A line of the project's own format."""
    table = tables[line["table"]]
    cells = {**line["key"], **(line["values"] or {})}
    yield Delivered(
        table.name, read_row(table.columns, cells, read_line_cell), line["operation"] == "DELETE"
    )


def read_debezium_line(line: Any, tables: Mapping[str, TableFacts]) -> Iterator[Delivered]:
    """A line of Debezium's; a tombstone says nothing more than the delete before it."""
    if (value := line["value"]) is None:
        return
    table = tables[value["source"]["table"]]
    cells = {**line["key"], **(value["after"] or {})}
    yield Delivered(table.name, read_row(table.columns, cells, read_line_cell), value["op"] == "d")


def apply_changes(
    table: TableFacts, before: Mapping[Key, Row], changes: Iterable[Delivered]
) -> dict[Key, Row]:
    """The rows of a table after the changes of it, in their order. A change may have only some of
    the columns."""
    rows = {key: dict(row) for key, row in before.items()}
    for change in changes:
        if change.table != table.name:
            continue
        key = key_of(table, change.cells)
        if change.gone:
            rows.pop(key, None)
        else:
            rows[key] = rows.get(key, {}) | change.cells
    return rows
