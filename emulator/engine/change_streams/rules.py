"""The rules for change streams: limits, options, and what they may watch."""

from __future__ import annotations

from ddl.rules.limits import STREAMS_MAX
from emulator.engine.change_streams.mutable import IMMUTABLE, partition_mode
from emulator.engine.change_streams.records import option
from emulator.errors import SpannerError, failed_precondition
from emulator.storage.change_streams import columns_tracked_by, key_columns
from spanner_schema.model.schema import ChangeStream, Schema, Table
from spanner_schema.syntax.placements import FUNCTION_OPTION, MUTABLE

STREAMS_OF_A_COLUMN_MAX = 3
DAY_SECONDS = 86_400
RETENTION_DAYS_MAX = 30
"""The overview's limit; the reference of the DDL says 7."""

UNITS = {"s": 1, "m": 60, "h": 3_600, "d": DAY_SECONDS}
CAPTURES = ("OLD_AND_NEW_VALUES", "NEW_VALUES", "NEW_ROW", "NEW_ROW_AND_OLD_VALUES")
FLAGS = (
    "exclude_ttl_deletes",
    "exclude_insert",
    "exclude_update",
    "exclude_delete",
    "allow_txn_exclusion",
    FUNCTION_OPTION,
)


def check(schema: Schema) -> None:
    """Raises FAILED_PRECONDITION for streams that Spanner would not take."""
    streams = schema.change_streams
    if len(streams) > STREAMS_MAX:
        raise failed_precondition(
            f"Cannot add Change Stream {streams[-1].name} : because the maximum number of Change "
            f"Streams per Database (limit {STREAMS_MAX}) has been reached."
        )
    for stream in streams:
        check_options(stream)
        check_watches(stream, schema)
    for table in schema.tables:
        check_watchers(table, schema)


def check_options(stream: ChangeStream) -> None:
    """Raises for unknown options and invalid values."""
    for name, value in stream.options:
        if name == "partition_mode":
            mode = partition_mode(stream)
            if mode not in (IMMUTABLE, MUTABLE):
                raise failed_precondition(
                    f"Invalid partition_mode: {mode}. Change Streams only support partition modes "
                    f"{IMMUTABLE} and {MUTABLE}."
                )
        elif name in FLAGS:
            if value.casefold() not in {"true", "false", "null"}:
                raise failed_precondition(f"Option {name} can only take bool_value.")
        elif name not in {"retention_period", "value_capture_type"}:
            raise failed_precondition(f"Invalid Change Stream Option: {name}.")
    retention_seconds(stream)
    capture = option(stream, "value_capture_type", CAPTURES[0])
    if capture not in CAPTURES:
        raise failed_precondition(
            f"Invalid value_capture_type: {capture}. Change Streams only support value capture "
            f"types in {', '.join(CAPTURES)}."
        )


def retention_seconds(stream: ChangeStream) -> int:
    """How long a stream keeps its records."""
    text = option(stream, "retention_period", "7d")
    number, unit = text[:-1], text[-1:]
    if not number.isdecimal() or unit not in UNITS:
        raise failed_precondition(f"Invalid time duration format: {text}.")
    seconds = int(number) * UNITS[unit]
    if not DAY_SECONDS <= seconds <= RETENTION_DAYS_MAX * DAY_SECONDS:
        raise invalid_retention(text)
    return seconds


def invalid_retention(text: str) -> SpannerError:
    """A retention period that Spanner does not offer."""
    return failed_precondition(
        f"Invalid retention_period: {text}. Change Streams retention period must be a value in "
        f"the range [24h, {RETENTION_DAYS_MAX}d]."
    )


def check_watches(stream: ChangeStream, schema: Schema) -> None:
    """Raises unless tables and columns exist, are named once, and can be watched."""
    seen: set[str] = set()
    for watched in stream.watches:
        name = watched.table.casefold()
        table = schema.table(name)
        if table is None:
            raise failed_precondition(
                f"Change Stream {stream.name} cannot track {watched.table} because either Change "
                "Streams do not track database objects of this type, or this Table does not exist. "
                "A table that a change stream names cannot be dropped."
            )
        if name in seen:
            raise failed_precondition(
                f"Change Stream {stream.name} should not list Table {table.name} more than once "
                "in the FOR clause."
            )
        seen.add(name)
        check_columns(stream, table, watched.columns or ())


def check_columns(stream: ChangeStream, table: Table, names: tuple[str, ...]) -> None:
    """The columns that a FOR clause lists."""
    keys = {column.name.casefold() for column in key_columns(table)}
    seen: set[str] = set()
    for name in names:
        column = table.column(name)
        if column is None:
            raise failed_precondition(
                f"Change Stream {stream.name} cannot track column {name} because it does not exist "
                f"in Table {table.name}."
            )
        if name.casefold() in keys:
            raise failed_precondition(
                f"The FOR clause of Change Stream {stream.name} should not list the primary key "
                f"column {name} of Table {table.name}. Please list non-key columns only, because "
                "primary key columns are always tracked if the table is tracked."
            )
        if column.generated is not None:
            raise failed_precondition(
                f"Change Stream {stream.name} does not support tracking Column "
                f"{table.name}.{name}: it is a non-key Generated Column."
            )
        if name.casefold() in seen:
            raise failed_precondition(
                f"Change Stream {stream.name} should not list Column {name} of Table {table.name} "
                "more than once in the FOR clause."
            )
        seen.add(name.casefold())


def check_watchers(table: Table, schema: Schema) -> None:
    """Raises if too many streams watch a column."""
    watchers: dict[str, int] = {}
    for stream in schema.change_streams:
        for column in columns_tracked_by(stream, table) or ():
            watchers[column.name] = watchers.get(column.name, 0) + 1
            if watchers[column.name] > STREAMS_OF_A_COLUMN_MAX:
                raise failed_precondition(
                    f"Failed to create or alter Change Stream {stream.name} : because it is not "
                    f"allowed to have more than {STREAMS_OF_A_COLUMN_MAX} Change Streams tracking "
                    f"the same table or non-key column or ALL: {table.name}.{column.name}."
                )
