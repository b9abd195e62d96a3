"""The schema that a database has at a read timestamp, read from INFORMATION_SCHEMA.

Spanner: queries over INFORMATION_SCHEMA can be strong or stale, and do not use the admin API, whose
quota is small.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from google.api_core.exceptions import InvalidArgument

from ddl.schema import Dialect, Schema
from watcher.errors import NotWatchableError
from watcher.spanner.results.wire import collect_rows, parse_cell
from watcher.spanner.sql import Statement
from watcher.spanner.stream import QueryStream
from watcher.tables.schema_rows import build_schema

OTHERS = "NOT IN ('INFORMATION_SCHEMA', 'SPANNER_SYS')"
"""Leaves out the schemas that are Spanner's own."""

SOURCES = {
    "table": (
        "TABLE_SCHEMA TABLE_NAME PARENT_TABLE_NAME ON_DELETE_ACTION INTERLEAVE_TYPE SPANNER_STATE",
        f"TABLES AS x WHERE x.TABLE_TYPE = 'BASE TABLE' AND x.TABLE_SCHEMA {OTHERS}",
    ),
    "column": (
        "TABLE_SCHEMA TABLE_NAME COLUMN_NAME ORDINAL_POSITION SPANNER_TYPE IS_NULLABLE"
        " GENERATION_EXPRESSION IS_STORED IS_HIDDEN SPANNER_STATE",
        "COLUMNS AS x JOIN INFORMATION_SCHEMA.TABLES AS t"
        " ON x.TABLE_SCHEMA = t.TABLE_SCHEMA AND x.TABLE_NAME = t.TABLE_NAME"
        f" WHERE t.TABLE_TYPE = 'BASE TABLE' AND t.TABLE_SCHEMA {OTHERS}",
    ),
    "column option": (
        "TABLE_SCHEMA TABLE_NAME COLUMN_NAME OPTION_NAME OPTION_TYPE OPTION_VALUE",
        f"COLUMN_OPTIONS AS x WHERE x.TABLE_SCHEMA {OTHERS}",
    ),
    "index": (
        "TABLE_SCHEMA TABLE_NAME INDEX_NAME INDEX_TYPE PARENT_TABLE_NAME IS_UNIQUE"
        " IS_NULL_FILTERED INDEX_STATE SPANNER_IS_MANAGED FILTER",
        f"INDEXES AS x WHERE x.TABLE_SCHEMA {OTHERS}",
    ),
    "index column": (
        "TABLE_SCHEMA TABLE_NAME INDEX_NAME INDEX_TYPE COLUMN_NAME ORDINAL_POSITION"
        " COLUMN_ORDERING IS_NULLABLE",
        f"INDEX_COLUMNS AS x WHERE x.TABLE_SCHEMA {OTHERS}",
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

    Raises VersionExpiredError past the version retention, NotWatchableError for another dialect.
    """
    read_timestamp, digest = read_digest(stream, at)
    lines = read_lines(stream, read_timestamp)
    return SchemaEpoch(read_timestamp, digest, build_schema(lines))


def read_digest(stream: QueryStream, at: int | None = None) -> tuple[int, int]:
    """The read timestamp and the digest of the schema at it: one call. Errors as ``read_epoch``."""
    try:
        read_timestamp, numbers = stream.query_numbers(Statement(DIGEST), at)
    except InvalidArgument:
        refuse_other_dialects(stream)
        raise
    return read_timestamp, numbers[0]


def read_lines(stream: QueryStream, at: int) -> Iterator[str]:
    """The rows of INFORMATION_SCHEMA at a timestamp, each as the text that the digest is of."""
    for values in collect_rows(stream.query(Statement(LINES), at, with_stats=False), 1):
        for value in values:
            yield parse_cell(value).text


def refuse_other_dialects(stream: QueryStream) -> None:
    """Raises NotWatchableError when the database is not of the GoogleSQL dialect."""
    # This query is written so that both dialects take it.
    query = (
        "SELECT 1 FROM INFORMATION_SCHEMA.DATABASE_OPTIONS"
        " WHERE OPTION_NAME = 'database_dialect' AND OPTION_VALUE = 'POSTGRESQL'"
    )
    _, matches = stream.query_numbers(Statement(query), None)
    if matches:
        check_googlesql(Schema(Dialect.POSTGRESQL), stream.database_name)


def check_googlesql(schema: Schema, database_name: str) -> Schema:
    """The schema itself. Raises NotWatchableError unless it is of the GoogleSQL dialect."""
    if schema.dialect is not Dialect.GOOGLESQL:
        raise NotWatchableError(
            f"{database_name} has the PostgreSQL dialect; 'spanner-watcher ddl' prepares it, but"
            " changes are read from databases of the GoogleSQL dialect only"
        )
    return schema


def render_text(column: str) -> str:
    """The expression of a column as a part of a row's text: NULL is ``-``, every other value
    follows its length, so that different rows have different texts."""
    # The documentation does not list FILTER: where there is none TO_JSON has NULL, while naming it
    # would be an error.
    name = "JSON_VALUE(TO_JSON(x), '$.FILTER')" if column == "FILTER" else f"x.`{column}`"
    text = f"CAST({name} AS STRING)"
    return f"COALESCE(CONCAT(CAST(LENGTH({text}) AS STRING), ':', {text}), '-')"


def render_lines_query(kind: str, columns: str, source: str) -> str:
    """The query that gives a text for each row of a source."""
    parts = ", ".join([f"'{len(kind)}:{kind}'", *map(render_text, columns.split())])
    return f"SELECT CONCAT({parts}) AS Line FROM INFORMATION_SCHEMA.{source}"  # noqa: S608


LINES = "\nUNION ALL ".join(render_lines_query(kind, *source) for kind, source in SOURCES.items())
DIGEST = f"SELECT COALESCE(BIT_XOR(FARM_FINGERPRINT(Line)), 0) FROM ({LINES})"  # noqa: S608
"""No two texts are the same, so that none cancels another out of the XOR."""
