"""The engine's errors, one function for each, and SQLite's errors translated to Spanner's."""

from __future__ import annotations

import base64
import json
import logging
from collections.abc import Mapping, Sequence

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
from emulator.values.served_types import SERVED_TYPES, Sent
from emulator.wrong import Wrong, is_wrong
from spanner_schema.model.column_types import Type, TypeCode
from spanner_schema.model.schema import ForeignKey, Index, Schema, Table

LOG = logging.getLogger("emulator")
LIMITS_LINK = (
    "Cloud Spanner limits documentation.",
    "https://cloud.google.com/spanner/docs/limits",
)
"""By this link clients know that a transaction is too large, and may use partitioned DML."""


def format_key(table: Table, key: Sequence[Stored]) -> str:
    """A primary key as Spanner's messages write it: texts are not in quotes."""
    return f"[{format_values(table, [part.column for part in table.primary_key], key)}]"


def format_values(table: Table, columns: Sequence[str], values: Sequence[Stored]) -> str:
    """Values of columns as Spanner's messages write them."""
    types = [column.type if (column := table.column(name)) else None for name in columns]
    return ",".join(map(format_value, types, values))


def format_value(type_: Type | None, value: Stored) -> str:
    """A value as Spanner's messages write it."""
    if value is None:
        return "NULL"
    if isinstance(value, bytes):
        return base64.b64encode(value).decode()
    sent = SERVED_TYPES[type_.code].sent if type_ is not None else Sent.TEXT
    if sent is Sent.BOOL:
        return "true" if value else "false"
    return str(value) if isinstance(sent, Sent) else sent(value)


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


def generated_key_missing(
    table: Table, column: str, depends_on: str, row: Mapping[str, Stored]
) -> SpannerError:
    """An update gives neither a generated part of the key nor what it is computed from. ``row``:
    what it gives."""
    names = [part.column for part in table.primary_key]
    key = ",".join(format_values(table, [n], [row[n]]) if n in row else "<default>" for n in names)
    return failed_precondition(
        f"For an Update, the value of a generated primary key `{column}` must be explicitly"
        f" specified, or else its non-key dependent column `{depends_on}` must be specified. Key:"
        f" [{key}]"
    )


def wrong_key_size(name: str, expected: int, values: str) -> SpannerError:
    """A key of a table or an index has too many or too few parts; ``values`` as JSON."""
    return failed_precondition(
        f"Wrong number of key parts for {name}. Expected: {expected}. Got: {values}"
    )


def wrong_row_size(columns: int) -> SpannerError:
    """A mutation has a row with too many or too few values."""
    return invalid_argument(
        f"Mutation column and value size mismatch: every row must have {columns} values."
    )


def row_exists(table: Table, key: Sequence[Stored]) -> SpannerError:
    """An insert meets a row with its key."""
    return already_exists(f"Row {format_key(table, key)} in table {table.name} already exists")


def row_not_found(table: Table, key: Sequence[Stored]) -> SpannerError:
    """An update does not find its row."""
    return not_found(
        f"Row {format_key(table, key)} in table {table.name} is missing. Row cannot be updated."
    )


def null_written(table: str, column: str) -> SpannerError:
    """A write gives NULL to a NOT NULL column."""
    return failed_precondition(f"{column} must not be NULL in table {table}.")


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
    """An error of SQLite as Spanner's error. A SpannerError behind it is returned as it is.

    (What names the row that a statement failed at is raised in ``failed_rows``.)
    """
    cause = error.__cause__ or error.__context__
    if isinstance(cause, SpannerError):
        return cause
    message = str(error)
    for prefix, translate in TRANSLATIONS:
        if message.startswith(prefix):
            return translate(message.removeprefix(prefix), schema)
    if isinstance(error, apsw.ConstraintError) and "!" in message:
        return trigger_refusal(message, schema)
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
    """A key or a unique index has such a value already, of a row that is not known."""
    if rest.startswith("index '"):
        return unique_index_failed(rest.split("'")[1].partition("$")[2])
    table, _ = table_of(rest.split(", ", maxsplit=1)[0], schema)
    for index in schema.indexes_of(table):
        if index.unique and names_index(rest, index):
            return unique_index_failed(index.name)
    return already_exists(f"Row in table {table} already exists")


def names_index(rest: str, index: Index) -> bool:
    """Whether SQLite says of this index that a value is not unique."""
    if rest.startswith("index '"):
        return rest.split("'")[1].partition("$")[2] == index.name
    columns = [name.rpartition(".")[2].casefold() for name in rest.split(", ")]
    return columns == [part.column.casefold() for part in index.parts]


def unique_index_failed(index: str, place: str = "") -> SpannerError:
    """Two rows have the same values in a UNIQUE index. ``place`` names the rows."""
    return already_exists(f"Unique index violation on index {index}{place}.")


def place_of_conflict(
    table: Table, index: Index, row: Mapping[str, Stored], other: Sequence[Stored]
) -> str:
    """Where a row (by the names of columns in lower case) meets another one, which has the key
    ``other``, in a unique index."""
    indexed = [part.column.casefold() for part in index.parts]
    keys = [part.column.casefold() for part in table.primary_key]
    entry = {**dict(zip(keys, other, strict=True)), **{name: row[name] for name in indexed}}
    names = [*indexed, *(name for name in keys if name not in indexed)]
    values = format_values(table, names, [entry[name] for name in names])
    return (
        f" at index key [{values}]. It conflicts with row {format_key(table, other)} "
        f"in table {table.name}"
    )


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
    return constraint_failed(check_name(schema.table(table), number))


def constraint_failed(name: str, row: str = "") -> SpannerError:
    """A CHECK constraint, by its name as Spanner writes it, does not hold; ``row`` names where."""
    return out_of_range(f"Check constraint {name} is violated{row or '.'}")


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


def trigger_refusal(message: str, schema: Schema) -> SpannerError:
    """The error that a trigger raised: kind, names and the child's key, separated by '!'."""
    if message.startswith("placement!"):
        return invalid_argument(f"Unknown placement: {message.partition('!')[2]}")
    kind, _, child, key = message.split("!", 3)
    table = schema.table(child)
    row = key if table is None else format_key(table, read_trigger_key(table, key))
    if kind == "parent":
        return not_found(
            f"Parent row for row {row} in table {child} is missing. Row cannot be written."
        )
    return failed_precondition(
        "Integrity constraint violation during DELETE/REPLACE. "
        f"Found child row {row} in table {child}."
    )


def read_trigger_key(table: Table, text: str) -> list[Stored]:
    """A key that a trigger wrote; that of an earlier version may end early."""
    codes = [
        None if (c := table.column(p.column)) is None else c.type.code for p in table.primary_key
    ]
    return [
        bytes.fromhex(value[2:-1]) if code is TypeCode.BYTES and value is not None else value
        for code, value in zip(codes, json.loads(text), strict=False)
    ]


def broken_foreign_key(
    key: ForeignKey, referencing: str, *, removed: bool, number: int
) -> SpannerError:
    """A statement or a commit would leave a reference that leads nowhere."""
    if removed:
        return failed_precondition(
            "Foreign key constraint violation when deleting or updating referenced row(s): "
            f"referencing row(s) found in table `{referencing}`."
        )
    name = key.name or f"FK_{referencing}_{number + 1}"
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
