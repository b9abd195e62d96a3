"""The engine's errors, one function for each, and SQLite's errors translated to Spanner's."""

from __future__ import annotations

import base64
import json
import logging
from collections.abc import Sequence

import apsw
import grpc

from ddl.rules.limits import KEY_BYTES_MAX
from emulator.errors import (
    SpannerError,
    already_exists,
    failed_precondition,
    internal,
    invalid_argument,
    not_found,
    out_of_range,
)
from emulator.limits import MUTATIONS_MAX
from emulator.values.requests import Stored
from emulator.wrong import Wrong, is_wrong
from spanner_schema.model.schema import ForeignKey, Schema, Table

LOG = logging.getLogger("emulator")
LIMITS_LINK = (
    "Cloud Spanner limits documentation.",
    "https://cloud.google.com/spanner/docs/limits",
)
"""By this link clients know that a transaction is too large, and may use partitioned DML."""


def format_key(key: Sequence[Stored]) -> str:
    """A key as messages write it."""
    parts = [base64.b64encode(k).decode() if isinstance(k, bytes) else k for k in key]
    return json.dumps(parts, ensure_ascii=False, separators=(",", ":"))


def unknown_table(name: str) -> SpannerError:
    """A read or a mutation names a table that is not there."""
    return not_found(f"Table not found: {name}")


def unknown_index(name: str, table: str) -> SpannerError:
    """A read names an index that the table does not have."""
    return not_found(f"Index not found on table {table}: {name}")


def unknown_column(table: str, name: str) -> SpannerError:
    """A read or a mutation names a column that is not there."""
    return not_found(f"Column not found in table {table}: {name}")


def column_not_in_index(index: str, name: str) -> SpannerError:
    """A read by index asks for a column that the index does not keep."""
    return not_found(f"Column not found in index {index}: {name}")


def other_row_count(expected: int | None, count: int) -> SpannerError:
    """ASSERT_ROWS_MODIFIED of another number than that of the rows."""
    return out_of_range(
        f"ASSERT_ROWS_MODIFIED expected {expected} rows modified, but found {count}"
    )


def generated_column_written(table: str, name: str) -> SpannerError:
    """A write names a generated column."""
    return failed_precondition(f"Cannot write into generated column `{table}.{name}`.")


def key_column_missing(table: str, name: str) -> SpannerError:
    """A write that must find its row does not give the whole key."""
    return failed_precondition(f"Mutation of table {table} must specify the key column {name}.")


def wrong_key_size(expected: int, actual: int) -> SpannerError:
    """A key has too many or too few parts."""
    return failed_precondition(f"Wrong number of key parts: expected {expected}, found {actual}.")


def wrong_row_size(columns: int) -> SpannerError:
    """A mutation has a row with too many or too few values."""
    return invalid_argument(
        f"Mutation column and value size mismatch: every row must have {columns} values."
    )


def row_exists(table: str, key: Sequence[Stored]) -> SpannerError:
    """An insert meets a row with its key."""
    return already_exists(f"Row {format_key(key)} in table {table} already exists")


def row_not_found(table: str, key: Sequence[Stored]) -> SpannerError:
    """An update does not find its row."""
    return not_found(f"Row {format_key(key)} in table {table} is missing. Row cannot be updated.")


def generated_key_changed(table: str, key: tuple[Stored, ...]) -> SpannerError:
    """A write would move a row to another key."""
    return out_of_range(
        f"Cannot change a generated column of the primary key of table {table}, row {list(key)}."
    )


def future_timestamp(text: str) -> SpannerError:
    """An explicit commit timestamp lies in the future."""
    return failed_precondition(f"Cannot write timestamps in the future, found: {text}")


def commit_timestamp_not_allowed(column: str) -> SpannerError:
    """The commit timestamp is asked for in a column without the option."""
    return failed_precondition(
        "Cannot write commit timestamp because the allow_commit_timestamp column option is not "
        f"set to true for column {column}."
    )


def too_many_mutations() -> SpannerError:
    """A commit changes more than Spanner takes at once."""
    return SpannerError(
        grpc.StatusCode.INVALID_ARGUMENT,
        "The transaction contains too many mutations. Insert and update operations count with the "
        "multiplicity of the number of columns they affect, and of the index entries that they "
        f"change. Split the transaction into several commits of at most {MUTATIONS_MAX} mutations, "
        "or use partitioned DML.",
        link=LIMITS_LINK,
    )


def pending_read(what: str) -> SpannerError:
    """A statement reads a commit timestamp that is not known yet."""
    return invalid_argument(
        f"{what} cannot be accessed because it, or its associated index, "
        "has a pending CommitTimestamp"
    )


def too_old(text: str) -> SpannerError:
    """A read timestamp is past version garbage collection."""
    if is_wrong(Wrong.EXPIRED_VERSIONS_REFUSED):
        return failed_precondition(f"Nothing can be read at {text}.")
    return failed_precondition(
        f"Read-only transaction timestamp {text} has exceeded the maximum timestamp staleness"
    )


def transaction_closed() -> SpannerError:
    """A transaction is used after its commit or rollback."""
    return failed_precondition(
        "Cannot read or query using a transaction after it has been committed or rolled back."
    )


def translate_error(error: apsw.Error, schema: Schema) -> SpannerError:
    """An error of SQLite as Spanner's error. A SpannerError behind it is returned as it is."""
    cause = error.__cause__ or error.__context__
    if isinstance(cause, SpannerError):
        return cause
    message = str(error)
    for prefix, translate in TRANSLATIONS:
        if message.startswith(prefix):
            return translate(message.removeprefix(prefix), schema)
    if isinstance(error, apsw.ConstraintError) and "!" in message:
        return trigger_refusal(message)
    if message.startswith("cannot store "):
        return failed_precondition(f"Invalid value for a column: {message}")
    if isinstance(error, apsw.TooBigError):
        return invalid_argument("A value or row is larger than the embedded Spanner can store.")
    for beginning, meaning in WINDOW_NUMBERS:
        if message.startswith(beginning):
            return out_of_range(meaning)
    if message == "integer overflow":
        return out_of_range("int64 overflow in SUM")
    for beginning in TOO_LARGE:
        if message.startswith(beginning):
            return too_large()
    LOG.error("SQLite refused a statement of the embedded Spanner", exc_info=error)
    return internal()


def too_large() -> SpannerError:
    """A statement with more terms, arguments, columns or nesting than SQLite takes."""
    return invalid_argument(
        "The statement is too large: it nests too deeply, or has too many operands, columns, or "
        "arguments of a function. Split it, or write lists as arrays of a parameter."
    )


def table_of(physical: str, schema: Schema) -> tuple[str, str]:
    """Table and column of a name such as ``t$Singers.Name``."""
    table, _, column = physical.partition("$")[2].rpartition(".")
    owner = schema.table(table)
    return (owner.name if owner else table), column


def unique_failed(rest: str, schema: Schema) -> SpannerError:
    """A key or a unique index has such a value already."""
    if rest.startswith("index '"):
        return unique_index_failed(rest.split("'")[1].partition("$")[2])
    names = rest.split(", ")
    table, _ = table_of(names[0], schema)
    columns = [name.rpartition(".")[2].casefold() for name in names]
    owner = schema.table(table)
    if owner is not None and columns != [p.column.casefold() for p in owner.primary_key]:
        for index in schema.indexes_of(table):
            if index.unique and [p.column.casefold() for p in index.parts] == columns:
                return unique_index_failed(index.name)
    return already_exists(f"Row in table {table} already exists")


def unique_index_failed(index: str) -> SpannerError:
    """Two rows have the same values in a UNIQUE index."""
    return already_exists(f"UNIQUE violation on index {index}, duplicate key in this transaction.")


def not_null_failed(rest: str, schema: Schema) -> SpannerError:
    """A NOT NULL column got no value."""
    table, column = table_of(rest, schema)
    return failed_precondition(
        f"A new row in table {table} does not specify a non-null value for NOT NULL column: "
        f"{column}"
    )


def check_failed(rest: str, schema: Schema) -> SpannerError:
    """A CHECK constraint or a length limit."""
    kind, _, name = rest.partition("$")
    if kind == "length":
        return failed_precondition(
            f"New value exceeds the maximum size limit for this column: {name}"
        )
    if kind == "vector":
        return invalid_argument(
            f"The array column {name} has `vector_length`: its values must have exactly "
            "that many elements, and none of them may be NULL."
        )
    if kind == "key":
        return invalid_argument(
            f"The key of a row in table {name} exceeds the maximum of {KEY_BYTES_MAX} bytes."
        )
    table, _, number = name.rpartition("$")
    return out_of_range(f"Check constraint {check_name(schema.table(table), number)} is violated.")


def check_name(table: Table | None, number: str) -> str:
    """The name of a constraint as Spanner writes it."""
    if table is None or int(number) >= len(table.checks):
        return f"`{number}`"
    return f"`{table.name}`.`{table.checks[int(number)].name or number}`"


TOO_LARGE = (
    "Expression tree is too large",
    "parser stack overflow",
    "Recursion limit",
    "too many",
    "at most",
    "string or blob too big",
)
"""How SQLite begins what it says of its limits."""

WINDOW_NUMBERS = (
    ("argument of ntile", "The argument of NTILE must be positive"),
    ("second argument to nth_value", "The second argument of NTH_VALUE must be positive"),
    ("frame starting offset", "The offset of a window frame must be neither NULL nor negative"),
    ("frame ending offset", "The offset of a window frame must be neither NULL nor negative"),
)
"""How SQLite begins what it says of a window's numbers, and what that means."""

TRANSLATIONS = (
    ("UNIQUE constraint failed: ", unique_failed),
    ("NOT NULL constraint failed: ", not_null_failed),
    ("CHECK constraint failed: ", check_failed),
)


def trigger_refusal(message: str) -> SpannerError:
    """The error that a trigger raised: kind, names and key, separated by '!'."""
    if message.startswith("placement!"):
        return invalid_argument(f"Unknown placement: {message.partition('!')[2]}")
    kind, parent, child, key = message.split("!", 3)
    if kind == "parent":
        return not_found(
            "Insert failed because key was not found in parent table:  "
            f"Parent Table: {parent}  Child Table: {child}  Key: {key}"
        )
    return failed_precondition(
        "Delete failed because one or more keys exist within the child table:  "
        f"Parent Table: {parent}  Child Table: {child}  Key: {key}"
    )


def broken_foreign_key(
    key: ForeignKey, referencing: str, value: str, *, removed: bool, number: int
) -> SpannerError:
    """A statement or a commit would leave a reference that leads nowhere."""
    name = key.name or f"FK_{referencing}_{number + 1}"
    if removed:
        return failed_precondition(
            f"Foreign key constraint `{name}` is violated when deleting or updating referenced "
            f"key {value} in table `{key.referenced_table}`. A row with that key exists in the "
            f"referencing table `{referencing}`."
        )
    return failed_precondition(
        f"Foreign key constraint `{name}` is violated on table `{referencing}`. Cannot find "
        f"referenced values in {key.referenced_table}({', '.join(key.referenced_columns)})."
    )


def referenced_row_deleted(table: str, columns: Sequence[str]) -> SpannerError:
    """A commit writes and deletes a row to which a foreign key with ON DELETE CASCADE refers."""
    return failed_precondition(
        f"Cannot write a value for the referenced column `{table}.{columns[0]}` and delete it in "
        "the same transaction."
    )
