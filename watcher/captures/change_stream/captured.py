"""What a change stream captures, from the schema, and what it leaves out of the changes of a table,
by its options and lists of columns: a copy that is kept by such a stream is not the table."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from spanner_schema.model.schema import ChangeStream, Column, Schema, Table
from spanner_schema.syntax.references import find_referenced_columns
from watcher.model.errors import NotWatchableError
from watcher.tables.values import WatchedTable

EXCLUSIONS = {
    "exclude_insert": "inserts",
    "exclude_update": "updates",
    "exclude_delete": "deletes",
    "exclude_ttl_deletes": "deletes of rows whose time to live is over",
}
ALLOW_EXCLUSION = "allow_txn_exclusion"


def list_streamed_columns(schema: Schema, name: str, table: Table) -> tuple[str, ...]:
    """The columns of a table whose values a stream captures.

    Spanner: generated columns are not watched unless they are part of the key.
    """
    # assumes: stream-new-row
    # assumes: stream-hidden-columns
    # assumes: stream-generated-columns
    stream = schema.change_stream(name)
    key = {part.column.casefold() for part in table.primary_key}
    named = {
        column.casefold()
        for each in (stream.watches if stream else ())
        if each.table.casefold() == table.name.casefold() and each.columns is not None
        for column in each.columns
    }
    listed = any(
        each.table.casefold() == table.name.casefold() and each.columns is not None
        for each in (stream.watches if stream else ())
    )
    return tuple(
        column.name
        for column in table.columns
        if column.name.casefold() in key
        or (not column.generated and (not listed or column.name.casefold() in named))
    )


def read_option(stream: ChangeStream, name: str, default: str) -> str:
    """An option of a stream, without quotes; NULL is the default."""
    text = dict(stream.options).get(name, default).strip("'\"")
    return default if text.upper() == "NULL" else text


def describe_gaps(
    schema: Schema, stream: ChangeStream, tables: Iterable[WatchedTable]
) -> tuple[WatchedTable, ...]:
    """The tables, with what the stream leaves out of their changes."""
    excluded = tuple(
        f"change stream {stream.name} leaves out {what} ({option})"
        for option, what in EXCLUSIONS.items()
        if is_set(stream, option)
    )
    caveats = (
        (
            f"change stream {stream.name} has {ALLOW_EXCLUSION}: transactions that exclude"
            " themselves from change streams are missing"
        ),
    )
    return tuple(
        replace(
            table,
            gaps=(*excluded, *describe_unwatched(schema, stream, table)),
            caveats=caveats if is_set(stream, ALLOW_EXCLUSION) else (),
        )
        for table in tables
    )


def describe_unwatched(
    schema: Schema, stream: ChangeStream, watched: WatchedTable
) -> tuple[str, ...]:
    """What the stream's list of columns leaves out: a change of such a column alone has no record,
    nor has a generated column that follows from one."""
    table = schema.table(watched.name)
    if table is None:
        return ()
    captured = set(list_streamed_columns(schema, stream.name, table))
    unwatched = [
        name
        for name in dict.fromkeys(name for name, _ in (*watched.columns, *watched.filtered))
        if (column := table.column(name)) is not None
        and not follows_from(column, table, captured, schema)
    ]
    if not unwatched:
        return ()
    return (f"change stream {stream.name} does not watch column {', '.join(unwatched)}",)


def follows_from(column: Column, table: Table, captured: set[str], schema: Schema) -> bool:
    """Whether every change of a column is in a record: it is captured itself, or generated from
    columns that are."""
    if column.name in captured:
        return True
    if column.generated is None:
        return False
    names = find_referenced_columns(column.generated, table, schema.dialect)
    columns = (table.column(name) for name in names if name != column.name)
    return all(follows_from(each, table, captured, schema) for each in columns if each is not None)


def is_set(stream: ChangeStream, option: str) -> bool:
    """Whether an option of a stream is true."""
    return read_option(stream, option, "false").casefold() == "true"


def require_complete(tables: Sequence[WatchedTable]) -> None:
    """Raises NotWatchableError where the changes of a table are not all in its stream: a copy would
    differ from the table, and no cut of it would be exact."""
    for table in tables:
        if table.gaps:
            raise NotWatchableError(
                f"a copy of table {table.name} would not stay equal to it: {table.gaps[0]}; use a"
                " change stream that watches whole tables and excludes nothing, alter this one, or"
                " name columns that it does not watch in exclude_columns of the table"
            )
