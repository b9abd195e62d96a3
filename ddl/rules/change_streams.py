"""Steps for change streams, checked against Spanner's limits."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace

from ddl.rules.limits import STREAMS_A_COLUMN_MAX, STREAMS_MAX
from spanner_schema.model.errors import MissingObjectError, PlanError
from spanner_schema.model.names import make_unknown_table_error, require_column, require_table
from spanner_schema.model.schema import ChangeStream, ChangeStreamTable, Schema
from spanner_schema.model.steps import AlterChangeStream, CreateChangeStream, DropChangeStream
from spanner_schema.model.suggestions import suggest_name

CAPTURE_TYPES = ("OLD_AND_NEW_VALUES", "NEW_VALUES", "NEW_ROW", "NEW_ROW_AND_OLD_VALUES")
FLAGS = (
    "exclude_ttl_deletes",
    "exclude_insert",
    "exclude_update",
    "exclude_delete",
    "allow_txn_exclusion",
)
RETENTION = re.compile(r"(\d+)([dhms])\Z")
SECONDS = {"d": 86_400, "h": 3_600, "m": 60, "s": 1}
RETENTION_MIN, RETENTION_MAX = 86_400, 30 * 86_400
WATCHED = re.compile(r"([^\s()][^()]*)(?:\(([^)]*)\))?\Z")


def parse_watch(text: str) -> ChangeStreamTable:
    """Parses ``T``, ``T(a, b)``, or ``T()`` for the key alone. Raises PlanError."""
    match = WATCHED.match(text.strip())
    if match is None:
        raise PlanError(
            f"invalid table '{text}': use T, T(column, column), or T() for the key alone"
        )
    if match.group(2) is None:
        return ChangeStreamTable(match.group(1).strip())
    columns = tuple(each.strip() for each in match.group(2).split(",") if each.strip())
    return ChangeStreamTable(match.group(1).strip(), columns)


def make_stream_options(
    retention: str | None, capture_type: str | None, flags: Sequence[str]
) -> tuple[tuple[str, str], ...]:
    """The options as DDL writes them. Raises PlanError for what Spanner would refuse."""
    options: list[tuple[str, str]] = []
    if retention is not None:
        match = RETENTION.match(retention)
        seconds = int(match.group(1)) * SECONDS[match.group(2)] if match else 0
        if not RETENTION_MIN <= seconds <= RETENTION_MAX:
            raise PlanError(f"invalid retention '{retention}': use 1d to 30d, such as 7d or 36h")
        options.append(("retention_period", f"'{retention}'"))
    if capture_type is not None:
        if capture_type not in CAPTURE_TYPES:
            raise PlanError(
                f"invalid value capture type '{capture_type}': use {', '.join(CAPTURE_TYPES)}"
            )
        options.append(("value_capture_type", f"'{capture_type}'"))
    for flag in flags:
        if flag not in FLAGS:
            raise PlanError(f"invalid option '{flag}' of a change stream: use {', '.join(FLAGS)}")
        options.append((flag, "true"))
    return tuple(options)


def create(schema: Schema, stream: ChangeStream) -> CreateChangeStream:
    """The step that creates a stream. Raises PlanError for what Spanner would refuse.

    Tables and columns get the names that the schema has, whatever their case.
    """
    if schema.change_stream(stream.name) is not None:
        raise PlanError(f"change stream {stream.name} exists: use alter, or another name")
    if len(schema.change_streams) >= STREAMS_MAX:
        raise PlanError(
            f"the database has {STREAMS_MAX} change streams, Spanner's limit: drop one first"
        )
    check_watches(schema, stream, others=schema.change_streams)
    return CreateChangeStream(replace(stream, watches=find_watches(schema, stream)))


def alter(
    schema: Schema, stream: ChangeStream, changes: frozenset[str]
) -> tuple[AlterChangeStream, ...]:
    """The steps that change tables and options of a stream: a statement of Spanner's changes
    either. Raises PlanError."""
    existing = schema.change_stream(stream.name)
    if existing is None:
        raise make_missing_error(schema, stream.name)
    others = tuple(s for s in schema.change_streams if s is not existing)
    if "watches" in changes:
        check_watches(schema, stream, others)
    new = replace(stream, name=existing.name, watches=find_watches(schema, stream))
    return tuple(
        AlterChangeStream(new, frozenset({change}))
        for change in ("watches", "options")
        if change in changes
    )


def drop(schema: Schema, name: str) -> DropChangeStream:
    """The step that drops a stream and its records. Raises PlanError for an unknown one."""
    stream = schema.change_stream(name)
    if stream is None:
        raise make_missing_error(schema, name)
    return DropChangeStream(stream.name)


def find_watches(schema: Schema, stream: ChangeStream) -> tuple[ChangeStreamTable, ...]:
    """What a stream watches, by the names that the schema has."""
    found = []
    for each in stream.watches:
        table = require_table(schema, each.table)
        columns = None
        if each.columns is not None:
            columns = tuple(require_column(table, name).name for name in each.columns)
        found.append(ChangeStreamTable(table.name, columns))
    return tuple(found)


def make_missing_error(schema: Schema, name: str) -> MissingObjectError:
    """The error for a stream that does not exist."""
    names = [stream.name for stream in schema.change_streams]
    advice = suggest_name(name, names, "the change streams are")
    return MissingObjectError(f"change stream {name} does not exist; {advice}")


def check_watches(schema: Schema, stream: ChangeStream, others: Sequence[ChangeStream]) -> None:
    """Checks what a stream watches: it exists, and Spanner allows it. Raises PlanError."""
    for each in stream.watches:
        table = schema.table(each.table)
        if table is None:
            unknown = make_unknown_table_error(schema, each.table)
            raise MissingObjectError(f"change stream {stream.name}: {unknown}")
        keys = {part.column.casefold() for part in table.primary_key}
        for name in each.columns or ():
            column = table.column(name)
            if column is None:
                raise PlanError(
                    f"change stream {stream.name}: column {each.table}.{name} does not exist"
                )
            if name.casefold() in keys:
                raise PlanError(
                    f"change stream {stream.name}: {each.table}.{name} is part of the key, which is"
                    " always watched: leave it out"
                )
            if column.generated is not None:
                raise PlanError(
                    f"change stream {stream.name}: {each.table}.{name} is a generated column, which"
                    " Spanner does not watch: leave it out"
                )
    named = {each.table.casefold() for each in stream.watches}
    for table in schema.tables:
        if not stream.for_all and table.name.casefold() not in named:
            continue
        for column in table.columns:
            watchers = sum(watches_column(s, table.name, column.name) for s in (*others, stream))
            if watchers > STREAMS_A_COLUMN_MAX:
                raise PlanError(
                    f"{table.name}.{column.name} would be watched by {watchers} change streams;"
                    f" Spanner allows {STREAMS_A_COLUMN_MAX}: drop one, or leave the column out"
                )


def watches_column(stream: ChangeStream, table: str, column: str) -> bool:
    """True when a stream watches a column."""
    if stream.for_all:
        return True
    for each in stream.watches:
        if each.table.casefold() == table.casefold():
            names = each.columns
            return names is None or column.casefold() in {name.casefold() for name in names}
    return False
