"""The schema that a database has at a read timestamp, read from INFORMATION_SCHEMA.

Spanner: queries over INFORMATION_SCHEMA can be strong or stale, and do not use the admin API, whose
quota is small.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache

from spanner_schema.model.schema import Dialect, Schema
from watcher.spanner.dialects import SqlDialect
from watcher.spanner.results.wire import collect_rows, parse_cell
from watcher.spanner.sql import Statement
from watcher.spanner.stream import QueryStream
from watcher.tables.schema_rows import build_schema

OTHERS = "NOT IN ('information_schema', 'spanner_sys', 'pg_catalog')"
"""Leaves out the schemas that are Spanner's own."""

OWNED = f"LOWER(x.TABLE_SCHEMA) {OTHERS}"
SOURCES = {
    "table": (
        "TABLE_SCHEMA TABLE_NAME PARENT_TABLE_NAME ON_DELETE_ACTION INTERLEAVE_TYPE SPANNER_STATE",
        f"TABLES AS x WHERE x.TABLE_TYPE = 'BASE TABLE' AND {OWNED}",
    ),
    "column": (
        "TABLE_SCHEMA TABLE_NAME COLUMN_NAME ORDINAL_POSITION SPANNER_TYPE IS_NULLABLE"
        " GENERATION_EXPRESSION IS_STORED IS_HIDDEN SPANNER_STATE",
        "COLUMNS AS x JOIN INFORMATION_SCHEMA.TABLES AS t"
        " ON x.TABLE_SCHEMA = t.TABLE_SCHEMA AND x.TABLE_NAME = t.TABLE_NAME"
        f" WHERE t.TABLE_TYPE = 'BASE TABLE' AND {OWNED}",
    ),
    "column option": (
        "TABLE_SCHEMA TABLE_NAME COLUMN_NAME OPTION_NAME OPTION_TYPE OPTION_VALUE",
        f"COLUMN_OPTIONS AS x WHERE {OWNED}",
    ),
    "index": (
        "TABLE_SCHEMA TABLE_NAME INDEX_NAME INDEX_TYPE PARENT_TABLE_NAME IS_UNIQUE"
        " IS_NULL_FILTERED INDEX_STATE SPANNER_IS_MANAGED FILTER",
        f"INDEXES AS x WHERE {OWNED}",
    ),
    "index column": (
        "TABLE_SCHEMA TABLE_NAME INDEX_NAME INDEX_TYPE COLUMN_NAME ORDINAL_POSITION"
        " COLUMN_ORDERING IS_NULLABLE",
        f"INDEX_COLUMNS AS x WHERE {OWNED}",
    ),
    "change stream": ("CHANGE_STREAM_SCHEMA CHANGE_STREAM_NAME ALL", "CHANGE_STREAMS AS x"),
    "watched table": (
        "CHANGE_STREAM_SCHEMA CHANGE_STREAM_NAME TABLE_SCHEMA TABLE_NAME ALL_COLUMNS",
        "CHANGE_STREAM_TABLES AS x",
    ),
    "watched column": (
        "CHANGE_STREAM_SCHEMA CHANGE_STREAM_NAME TABLE_SCHEMA TABLE_NAME COLUMN_NAME",
        "CHANGE_STREAM_COLUMNS AS x",
    ),
    "stream option": (
        "CHANGE_STREAM_SCHEMA CHANGE_STREAM_NAME OPTION_NAME OPTION_TYPE OPTION_VALUE",
        "CHANGE_STREAM_OPTIONS AS x",
    ),
}
"""What is read: of each kind of row its columns, and the view with its condition."""

ABSENT: Mapping[Dialect, frozenset[str]] = {
    Dialect.GOOGLESQL: frozenset(),
    Dialect.POSTGRESQL: frozenset({"IS_HIDDEN", "FILTER"}),
}
"""Columns that a dialect's views do not have, or need not have."""
UNREAD: Mapping[Dialect, frozenset[str]] = {
    Dialect.GOOGLESQL: frozenset(),
    Dialect.POSTGRESQL: frozenset({"column option"}),
}
"""Rows that a dialect does not have: the type says what has commit timestamps."""


@dataclass(frozen=True, slots=True)
class SchemaEpoch:
    """The schema that is valid at a read timestamp, in microseconds since 1970. ``digest`` is the
    same for the same schema, and another one after every change of what ``schema`` holds."""

    read_timestamp: int
    digest: int
    schema: Schema


def read_epoch(stream: QueryStream, at: int | None = None) -> SchemaEpoch:
    """The schema at a timestamp, or (None) of a strong read; what cannot be read yet, because its
    backfill is under way, is left out. Two calls.

    Raises VersionExpiredError past the version retention.
    """
    # assumes: schema-at-timestamp
    read_timestamp, digest = read_digest(stream, at)
    lines = read_lines(stream, read_timestamp)
    return SchemaEpoch(read_timestamp, digest, build_schema(lines, stream.sql.dialect))


def read_digest(stream: QueryStream, at: int | None = None) -> tuple[int, int]:
    """The read timestamp and the digest of the schema at it: one call. Errors as ``read_epoch``."""
    digest = stream.sql.digest_lines(render_lines(stream.sql))
    read_timestamp, numbers = stream.query_numbers(Statement(digest), at)
    return read_timestamp, numbers[0]


def start_digest(stream: QueryStream, at: int) -> Callable[[], int]:
    """As ``read_digest``; the call is under way before anybody waits for it."""
    digest = stream.sql.digest_lines(render_lines(stream.sql))
    rows = collect_rows(stream.query(Statement(digest), at, with_stats=False), 1)
    return lambda: int(parse_cell(next(iter(rows))[0]).text)


def read_lines(stream: QueryStream, at: int) -> Iterator[str]:
    """The rows of INFORMATION_SCHEMA at a timestamp, each as the text that the digest is of."""
    lines = Statement(render_lines(stream.sql))
    for values in collect_rows(stream.query(lines, at, with_stats=False), 1):
        for value in values:
            yield parse_cell(value).text


def render_text(column: str, sql: SqlDialect) -> str:
    """The expression of a column as a part of a row's text: NULL is ``-``, every other value
    follows its length, so that different rows have different texts."""
    if column in ABSENT[sql.dialect]:
        return "'-'"
    name = f"x.{sql.quote_view_column(column)}"
    if column == "FILTER":
        # The documentation does not list it: where there is none TO_JSON has NULL, while naming it
        # would be an error.
        name = "JSON_VALUE(TO_JSON(x), '$.FILTER')"
    elif column.endswith("_SCHEMA") and sql.default_schema:
        name = f"NULLIF({name}, '{sql.default_schema}')"
    text = sql.to_text(name)
    return f"COALESCE({sql.to_text(f'LENGTH({text})')} || ':' || {text}, '-')"


def render_lines_query(kind: str, columns: str, source: str, sql: SqlDialect) -> str:
    """The query that gives a text for each row of a source."""
    texts = (render_text(column, sql) for column in columns.split())
    parts = ", ".join([f"'{len(kind)}:{kind}'", *texts])
    return f"SELECT CONCAT({parts}) AS Line FROM INFORMATION_SCHEMA.{source}"  # noqa: S608


@cache
def render_lines(sql: SqlDialect) -> str:
    """The query that gives a text for each row of all sources."""
    unread = UNREAD[sql.dialect]
    return "\nUNION ALL ".join(
        render_lines_query(kind, *source, sql)
        for kind, source in SOURCES.items()
        if kind not in unread
    )
