"""Spanner's limits of a schema, with Spanner's refusals.

https://cloud.google.com/spanner/quotas, "Schema limits" and "Change stream limits".
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from spanner_schema.model import steps
from spanner_schema.model.column_types import TypeCode
from spanner_schema.model.errors import InvalidDefinitionError, SchemaError
from spanner_schema.model.names import NAME_LENGTH_MAX
from spanner_schema.model.schema import Dialect, Index, KeyPart, Schema, Table

COLUMNS_IN_TABLE_MAX = 1_024
KEY_COLUMNS_MAX = 16
"""Of a table, and of an index with the key of its table, which stands behind its own columns."""
KEY_BYTES_MAX = 8 * 1_024
"""The key of a row, in a table and in an index."""
INDEXES_IN_TABLE_MAX = 128
INDEXES_MAX = 10_000
TABLES_MAX = 5_000
VIEWS_MAX = 5_000
INTERLEAVED_TABLES_MAX = 7
"""Tables above each other, the first one counted."""
NAME_CHARACTERS_MAX = NAME_LENGTH_MAX[Dialect.GOOGLESQL]
STREAMS_MAX = 10
STREAMS_A_COLUMN_MAX = 3
STATEMENT_BYTES_MAX = 10 * 1_024 * 1_024
"""One statement, and all statements that make the schema of a database."""
NAMED = {"VIEW", "SEQUENCE", "ROLE", "PLACEMENT"}
CHARACTER_BYTES_MAX = 4
FIXED_BYTES_MAX = 16
"""What the value of a type without a length takes in a key, at most: a UUID or a NUMERIC."""


def check_names_and_keys(step: steps.Step, dialect: Dialect = Dialect.GOOGLESQL) -> None:
    """What a statement alone shows. Raises InvalidDefinitionError."""
    length_max = NAME_LENGTH_MAX[dialect]
    for kind, name in list_new_names(step):
        if any(len(part.encode()) > length_max for part in name.split(".")):
            raise InvalidDefinitionError(
                f"{kind} name not valid: {name} has more than {length_max} characters."
            )
    for what, parts in list_new_keys(step):
        if len(parts) > KEY_COLUMNS_MAX:
            raise InvalidDefinitionError(
                f"{what} has {len(parts)} keys which is greater than the maximum allowed"
                f" ({KEY_COLUMNS_MAX})."
            )


def list_new_names(step: steps.Step) -> Iterator[tuple[str, str]]:
    """The kinds and names of what a statement creates."""
    if isinstance(step, steps.CreateTable):
        yield "Table", step.table.name
        yield from (("Column", column.name) for column in step.table.columns)
    elif isinstance(step, steps.RenameTables):
        yield from (("Table", new) for _, new in step.renames)
    elif isinstance(step, steps.AddSynonym):
        yield "Synonym", step.synonym
    elif isinstance(step, steps.AddColumn):
        yield "Column", step.column.name
    elif isinstance(step, steps.CreateIndex):
        yield "Index", step.index.name
    elif isinstance(step, steps.CreateChangeStream):
        yield "Change stream", step.change_stream.name
    elif isinstance(step, steps.CreateNamedSchema):
        yield "Schema", step.name
    elif isinstance(step, steps.CreateVerbatim) and step.item.kind in NAMED:
        yield step.item.kind.capitalize(), step.item.name


def list_new_keys(step: steps.Step) -> Iterator[tuple[str, tuple[KeyPart, ...]]]:
    """The keys that a statement defines, and of what they are."""
    if isinstance(step, steps.CreateTable):
        yield f"Table {step.table.name}", step.table.primary_key
    elif isinstance(step, steps.CreateIndex):
        yield f"Index {step.index.name}", step.index.parts


def check_index_key(table: Table, index: Index) -> None:
    """The columns in the key of an index: its own, and those of its table's key that are not
    among them. Raises InvalidDefinitionError."""
    key = {part.column.casefold() for part in (*index.parts, *table.primary_key)}
    if len(key) > KEY_COLUMNS_MAX:
        raise InvalidDefinitionError(
            f"Index {index.name} has too many keys ({len(key)}, with those of its table); the"
            f" limit is {KEY_COLUMNS_MAX}."
        )


def check_counts(schema: Schema) -> None:
    """How many objects there are. Raises SchemaError."""
    for kind, count, most in (
        ("Table", len(schema.tables), TABLES_MAX),
        ("View", sum(each.kind == "VIEW" for each in schema.verbatim), VIEWS_MAX),
        ("Index", len(schema.indexes), INDEXES_MAX),
    ):
        if count > most:
            raise SchemaError(f"Cannot add {kind}: the limit is {most} per database.")
    indexes = Counter(index.table.casefold() for index in schema.indexes)
    for table in schema.tables:
        check_table_size(table, schema, indexes[table.name.casefold()])


def check_table_size(table: Table, schema: Schema, indexes: int) -> None:
    """The columns and indexes of a table, and how deep it is interleaved. Raises SchemaError."""
    if len(table.columns) > COLUMNS_IN_TABLE_MAX:
        raise SchemaError(
            f"Table {table.name} has too many columns; the limit is {COLUMNS_IN_TABLE_MAX}."
        )
    if indexes > INDEXES_IN_TABLE_MAX:
        raise SchemaError(
            f"Table {table.name} has too many indexes; the limit is {INDEXES_IN_TABLE_MAX}."
        )
    depth, above = 1, find_parent(table, schema)
    while above is not None:
        depth, above = depth + 1, find_parent(above, schema)
    if depth > INTERLEAVED_TABLES_MAX:
        raise SchemaError(f"Table {table.name} is nested more than {INTERLEAVED_TABLES_MAX} deep.")


def find_parent(table: Table, schema: Schema) -> Table | None:
    """The table in which a table is interleaved."""
    return schema.table(table.interleave.parent) if table.interleave is not None else None


def count_key_bytes(table: Table) -> int | None:
    """How long the primary key of a row may be by the lengths of its columns, in bytes; None where
    a column has none."""
    total = 0
    for part in table.primary_key:
        column = table.column(part.column)
        type_ = column.type if column is not None else None
        if type_ is None or type_.code not in {TypeCode.STRING, TypeCode.BYTES}:
            total += FIXED_BYTES_MAX
        elif type_.length is None:
            return None
        else:
            total += type_.length * (CHARACTER_BYTES_MAX if type_.code is TypeCode.STRING else 1)
    return total
