"""The few SQL statements of the product: every name quoted, every value a parameter."""

from __future__ import annotations

import re

from google.cloud.spanner_v1 import Type, TypeCode

from ddl.schema import Type as SchemaType
from ddl.schema import TypeCode as SchemaTypeCode
from watcher.errors import ConfigurationError
from watcher.stream import WireValue, timestamp_text
from watcher.table import WatchedTable
from watcher.window import Window

NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,127}\Z")

INT64_ARRAY = Type(code=TypeCode.ARRAY, array_element_type=Type(code=TypeCode.INT64))
TIMESTAMP = Type(code=TypeCode.TIMESTAMP)

WINDOW_TYPES = {"shards": INT64_ARRAY, "start": TIMESTAMP, "end": TIMESTAMP}


def quoted(name: str) -> str:
    """An identifier for GoogleSQL, with its named schema. Raises ConfigurationError."""
    parts = name.split(".")
    if not all(NAME.match(part) for part in parts):
        raise ConfigurationError(f"'{name}' is not a name that Spanner allows")
    return ".".join(f"`{part}`" for part in parts)


def window_params(window: Window, shards: tuple[int, ...]) -> dict[str, WireValue]:
    """The parameters of ``select_window`` and ``count_window``."""
    return {
        "shards": [str(shard) for shard in shards],
        "start": timestamp_text(window.start),
        "end": timestamp_text(window.end),
    }


def source(table: WatchedTable) -> str:
    """The table, through its null-filtered index.

    Spanner: forcing a null-filtered index needs a proof that no key part is NULL.
    """
    return f"{quoted(table.name)}@{{FORCE_INDEX={quoted(table.index)}}}"


def in_window(table: WatchedTable) -> str:
    """The condition of a window, as Spanner's commit-timestamp optimisation wants it: no OR."""
    shard, timestamp = quoted(table.shard_column), quoted(table.timestamp_column)
    return (
        f"{shard} IS NOT NULL AND {shard} IN UNNEST(@shards)"
        f" AND {timestamp} > @start AND {timestamp} <= @end"
    )


def select_window(table: WatchedTable) -> str:
    """The rows of a window: the columns that ``selected`` names, each once."""
    columns = ", ".join(quoted(name) for name, _ in selected(table))
    return f"SELECT {columns} FROM {source(table)} WHERE {in_window(table)}"  # noqa: S608


def selected(table: WatchedTable) -> tuple[tuple[str, SchemaType], ...]:
    """The table's columns, and the commit timestamp and the shard where they are hidden."""
    names = {name for name, _ in table.columns}
    more = (
        (table.timestamp_column, SchemaType(SchemaTypeCode.TIMESTAMP)),
        (table.shard_column, SchemaType(SchemaTypeCode.INT64)),
    )
    return table.columns + tuple(pair for pair in more if pair[0] not in names)


def count_window(table: WatchedTable) -> str:
    """How many rows a window has: read from the index alone."""
    return f"SELECT COUNT(*) FROM {source(table)} WHERE {in_window(table)}"  # noqa: S608


def any_after(table: WatchedTable) -> str:
    """Is there a row after @start? Reads one entry of the index."""
    shard, timestamp = quoted(table.shard_column), quoted(table.timestamp_column)
    return (
        f"SELECT 1 FROM {source(table)}"  # noqa: S608
        f" WHERE {shard} IS NOT NULL AND {shard} IN UNNEST(@shards) AND {timestamp} > @start"
        " LIMIT 1"
    )


def count_index(table: WatchedTable) -> str:
    """How many rows are in the index."""
    shard, timestamp = quoted(table.shard_column), quoted(table.timestamp_column)
    return (
        f"SELECT COUNT(*) FROM {source(table)}"  # noqa: S608
        f" WHERE {shard} IS NOT NULL AND {timestamp} IS NOT NULL"
    )


def earliest_above(table: WatchedTable) -> str:
    """The ``@limit``-th commit timestamp of a window, in ascending order: where to cut it."""
    timestamp = quoted(table.timestamp_column)
    return (
        f"SELECT MAX(t) FROM (SELECT {timestamp} AS t FROM {source(table)}"  # noqa: S608
        f" WHERE {in_window(table)} ORDER BY t LIMIT @limit)"
    )


def clear_by_null(table: WatchedTable) -> str:
    """Takes delivered rows out of the index: the timestamp comes back with the next write.

    The condition on the timestamp keeps a row that changes meanwhile: its timestamp is above @safe.
    """
    shard, timestamp = quoted(table.shard_column), quoted(table.timestamp_column)
    return (
        f"UPDATE {quoted(table.name)} SET {timestamp} = NULL"  # noqa: S608
        f" WHERE {shard} IS NOT NULL AND {timestamp} <= @safe"
    )


def clear_by_processed(table: WatchedTable, processed: str) -> str:
    """Takes delivered rows out of the index: the shard of a processed row is NULL.

    Assigning the timestamp to itself keeps ON UPDATE from overwriting it (an explicit value wins).
    """
    shard, timestamp = quoted(table.shard_column), quoted(table.timestamp_column)
    return (
        f"UPDATE {quoted(table.name)}"  # noqa: S608
        f" SET {quoted(processed)} = TRUE, {timestamp} = {timestamp}"
        f" WHERE {shard} IS NOT NULL AND {timestamp} <= @safe"
    )


def count_clearable(table: WatchedTable) -> str:
    """How many rows a clearing would take out."""
    shard, timestamp = quoted(table.shard_column), quoted(table.timestamp_column)
    return (
        f"SELECT COUNT(*) FROM {source(table)}"  # noqa: S608
        f" WHERE {shard} IS NOT NULL AND {timestamp} <= @safe"
    )
