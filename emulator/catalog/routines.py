"""The rows of INFORMATION_SCHEMA about roles, read functions and what columns depend on."""

from __future__ import annotations

from collections.abc import Iterator

from emulator.values.system_tables import Row
from spanner_schema.model.names import split_name
from spanner_schema.model.schema import Schema
from spanner_schema.syntax import functions
from spanner_schema.syntax.grants import SYSTEM_ROLES
from spanner_schema.syntax.placements import list_read_functions
from spanner_schema.syntax.protos import list_bundle_types
from spanner_schema.syntax.references import find_referenced_columns

READ_PARAMETERS = (
    ("start_timestamp", "TIMESTAMP"),
    ("end_timestamp", "TIMESTAMP"),
    ("partition_token", "STRING(MAX)"),
    ("heartbeat_milliseconds", "INT64"),
    ("read_options", "ARRAY<STRING(MAX)>"),
)
"""What the read function of a change stream takes, in this order."""


def role_rows(schema: Schema) -> Iterator[Row]:
    """The system's roles, then those of the database."""
    for name in SYSTEM_ROLES:
        yield name, 1
    for item in schema.verbatim:
        if item.kind == "ROLE":
            yield item.name, 0


def routine_rows(schema: Schema) -> Iterator[Row]:
    """The read functions of the change streams, and the user's functions."""
    for function in list_read_functions(schema):
        owner, name = split_name(function.name)
        names = ("", owner, f"READ_{name}")
        yield *names, *names, "FUNCTION", "TABLE", "EXTERNAL", None, "INVOKER"
    for item in functions.list_functions(schema):
        read = functions.read_function(item.text, list_bundle_types(schema))
        names = ("", *split_name(item.name))
        returns = read.returns.text if read.returns is not None else None
        yield *names, *names, "FUNCTION", returns, "SQL", read.body, "INVOKER"


def parameter_rows(schema: Schema) -> Iterator[Row]:
    """The arguments of the read functions, and of the user's functions."""
    for item in functions.list_functions(schema):
        read = functions.read_function(item.text, list_bundle_types(schema))
        for number, each in enumerate(read.parameters, start=1):
            yield "", *split_name(item.name), number, each.name, each.type.text, each.default
    for function in list_read_functions(schema):
        owner, name = split_name(function.name)
        for number, (parameter, kind) in enumerate(READ_PARAMETERS, start=1):
            yield "", owner, f"READ_{name}", number, parameter, kind, "NULL"


def column_column_usage(schema: Schema) -> Iterator[Row]:
    """The columns on which generated columns depend."""
    for table in schema.tables:
        for column in table.columns:
            for name in find_referenced_columns(column.generated or "", table, schema.dialect):
                yield "", *split_name(table.name), name, column.name
