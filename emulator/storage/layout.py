"""How a table of Spanner lies in SQLite: its columns, indexes and triggers as SQL text."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace

from ddl.rules.limits import KEY_BYTES_MAX
from ddl.rules.refusals import name_type
from emulator.errors import invalid_argument, unimplemented
from emulator.sql.compile import compile_expression
from emulator.sql.statements import Expression
from emulator.storage import change_streams, integrity
from emulator.storage import placements as placement_keys
from emulator.storage.sqlite import PENDING, current_table, history_table, key_index
from emulator.values.served_types import LENGTHS_MAX, SERVED_TYPES
from emulator.values.sqlite_text import quote_name, quote_text
from spanner_schema.model.column_types import Type, TypeCode
from spanner_schema.model.schema import Column, Index, KeyPart, Schema, Table, Verbatim
from spanner_schema.syntax import placements, protos, sequences
from spanner_schema.syntax.functions import list_called_functions

NEEDED_KINDS = {sequences.KIND, protos.KIND, placements.KIND}
"""What expressions and placement keys of tables may name, apart from tables."""

FIXED_BYTES = 8


@dataclass(frozen=True, slots=True)
class ColumnLayout:
    """``definition`` is SQLite's; ``kind`` the type of the values; ``generated`` the expression;
    ``default`` what fills the rows that are there already."""

    name: str
    storage_class: str
    kind: str
    definition: str
    generated: str | None
    stored: bool
    default: str | None


@dataclass(frozen=True, slots=True)
class TableLayout:
    """``objects`` maps the name of each index and trigger to its CREATE statement; ``part`` is all
    of the schema that the layout follows from."""

    part: Schema
    name: str
    columns: tuple[ColumnLayout, ...]
    checks: tuple[str, ...]
    objects: dict[str, str]

    def create(self, name: str) -> str:
        """CREATE TABLE under a (quoted) name."""
        parts = ['"$ts" INTEGER NOT NULL', *(c.definition for c in self.columns), *self.checks]
        return f"CREATE TABLE {name} ({', '.join(parts)}) STRICT"

    def create_history(self, name: str) -> str:
        """CREATE TABLE of the replaced rows: the same columns, plain."""
        parts = ['"$from" INTEGER NOT NULL', '"$to" INTEGER NOT NULL']
        parts += [f"{quote_name(c.name)} {c.storage_class}" for c in self.columns]
        return f"CREATE TABLE {name} ({', '.join(parts)}) STRICT"


def table_layouts(schema: Schema, previous: Mapping[str, TableLayout]) -> dict[str, TableLayout]:
    """The layout of every table, by its name in lower case; one that is known already serves again
    where its part of the schema has not changed: a statement costs what it changes."""
    return {
        name: previous[name]
        if name in previous and previous[name].part == part
        else table_layout(part)
        for name, part in schema_parts(schema).items()
    }


def schema_parts(schema: Schema) -> dict[str, Schema]:
    """Each table with what its layout follows from: the tables that it refers to and that refer to
    it, its indexes, change streams, sequences, the proto bundle. It is the part's first table."""
    tables = {table.name.casefold(): table for table in schema.tables}
    related = {name: [table] for name, table in tables.items()}
    for name, table in tables.items():
        for other in tables_referred_to(table) & tables.keys() - {name}:
            related[name].append(tables[other])
            related[other].append(table)
    indexes: dict[str, list[Index]] = {name: [] for name in tables}
    for index in schema.indexes:
        indexes[index.table.casefold()].append(index)
    needed = tuple(item for item in schema.verbatim if item.kind in NEEDED_KINDS)
    rest = Schema(
        schema.dialect,
        change_streams=schema.change_streams,
        proto_descriptors=schema.proto_descriptors,
    )
    return {
        name: replace(
            rest,
            tables=tuple(related[name]),
            indexes=tuple(indexes[name]),
            verbatim=(*needed, *functions_of(schema, related[name])),
        )
        for name in tables
    }


def functions_of(schema: Schema, tables: Iterable[Table]) -> list[Verbatim]:
    """The user's functions that the expressions of tables call, directly or not."""
    return list_called_functions(schema, (e for t in tables for e in list_expressions(t)))


def list_expressions(table: Table) -> Iterator[str]:
    """The expressions of a table: of its columns and its CHECKs."""
    for column in table.columns:
        yield from filter(None, (column.default, column.on_update, column.generated))
    yield from (check.expression for check in table.checks)


def tables_referred_to(table: Table) -> set[str]:
    """The tables, in lower case, that a table is interleaved in or has foreign keys to."""
    names = {key.referenced_table.casefold() for key in table.foreign_keys}
    return names | ({table.interleave.parent.casefold()} if table.interleave else set())


def table_layout(part: Schema) -> TableLayout:
    """The layout of the first table of a part."""
    table, indexes = part.tables[0], part.indexes
    if not table.columns:
        raise unimplemented(f"The table {table.name} without columns")
    columns = tuple(column_layout(column, table, part) for column in table.columns)
    checks = tuple(check_text(number, table, part) for number in range(len(table.checks)))
    checks += key_check(table)
    for index in indexes:
        checks += index_key_check(table, index)
    objects = {
        **key_objects(table),
        **history_triggers(table),
        **integrity.triggers(table, part),
        **placement_keys.triggers(table, part),
        **change_streams.triggers(table, part),
    }
    for index in indexes:
        objects |= index_objects(index, table)
    return TableLayout(part, table.name, columns, checks, objects)


def column_layout(column: Column, table: Table, schema: Schema) -> ColumnLayout:
    """One column: type, generation expression, NOT NULL and length."""
    storage_class = storage_class_of(column, table)
    parts = [quote_name(column.name), storage_class]
    generated = None
    if column.generated is not None:
        compiled = compile_expression(column.generated, table, schema, column.type)
        if compiled.draws:
            raise invalid_argument(
                f"Generated column {table.name}.{column.name} may not draw from a sequence."
            )
        generated = evaluate_subqueries(compiled)
        parts.append(f"AS ({generated}) {'STORED' if column.stored else 'VIRTUAL'}")
    if column.not_null:
        parts.append("NOT NULL")
    limit = length_check(column)
    if limit:
        name = quote_name(f"length${column.name}")
        parts.append(f"CONSTRAINT {name} CHECK ({limit})")
    if column.type.vector_length is not None:
        name = quote_name(f"vector${column.name}")
        check = f"vector_fits_({quote_name(column.name)}, {column.type.vector_length})"
        parts.append(f"CONSTRAINT {name} CHECK ({check})")
    return ColumnLayout(
        column.name,
        storage_class,
        name_type(column.type),
        " ".join(parts),
        generated,
        column.stored,
        "IDENTITY" if column.identity is not None else column.default,
    )


def storage_class_of(column: Column, table: Table) -> str:
    """The storage class of SQLite that keeps a column; of a TOKENLIST only whether it is NULL."""
    if column.type.code is TypeCode.TOKENLIST:
        return "TEXT"
    served = SERVED_TYPES.get(column.type.code)
    if served is None or served.storage is None:
        raise unimplemented(f"The type {column.type.code.value} of {table.name}.{column.name}")
    return served.storage


def evaluate_subqueries(expression: Expression) -> str:
    """An expression as SQLite takes it in the definition of a table: without subqueries, which is
    what functions of arrays compile to."""
    if "(SELECT " not in expression.sql:
        return expression.sql
    names = [quote_name(name) for name in expression.columns]
    values = ", ".join(f"?{number} AS {name}" for number, name in enumerate(names, 1))
    source = f" FROM (SELECT {values})" if names else ""
    query = quote_text(f"SELECT {expression.sql}{source}")
    return f"evaluate_({', '.join([query, *names])})"


def length_check(column: Column) -> str | None:
    """The condition that a value is not too long, or None when any length will do."""
    name = quote_name(column.name)
    if column.type.element is not None and column.type.element.length is not None:
        return f"array_fits_({name}, {element_unit(column.type.element)})"
    length = column.type.length
    if length is None and column.generated is None:
        length = LENGTHS_MAX.get(column.type.code)
    if length is None:
        return None
    if column.type.code is not TypeCode.STRING:
        return f"octet_length({name}) <= {length}"
    return f"octet_length({name}) <= {length} OR fits_({name}, {length})"


def element_unit(element: Type) -> str:
    """Length and unit of an array's elements, as arguments of ``array_fits_``."""
    return f"{element.length}, {int(element.code is TypeCode.BYTES)}"


def key_check(table: Table) -> tuple[str, ...]:
    """A key may not be too long; only strings and bytes can make it so."""
    long = long_columns(table, [part.column for part in table.primary_key])
    if not long:
        return ()
    name = quote_name(f"key${table.name}")
    return (f"CONSTRAINT {name} CHECK ({' + '.join(long)} <= {KEY_BYTES_MAX})",)


def index_key_check(table: Table, index: Index) -> tuple[str, ...]:
    """The key of an index, which ends with the table's; a row outside of it is not judged."""
    own = [part.column for part in index.parts]
    rest = [part.column for part in table.primary_key if part.column not in own]
    if not long_columns(table, own):
        return ()
    absent = "".join(f" OR {quote_name(column)} IS NULL" for column in filter_columns(index))
    name = quote_name(f"key${index.name}")
    long = long_columns(table, own + rest)
    short = FIXED_BYTES * (len(own + rest) - len(long))
    return (f"CONSTRAINT {name} CHECK ({' + '.join(long)} <= {KEY_BYTES_MAX - short}{absent})",)


def long_columns(table: Table, names: list[str]) -> list[str]:
    """The length in bytes of each column that could be too long for a key."""
    columns = (table.column(name) for name in names)
    return [
        f"ifnull(octet_length({quote_name(c.name)}), 0)"
        for c in columns
        if c is not None
        and c.type.code in LENGTHS_MAX
        and (c.type.length is None or c.type.length * 4 > KEY_BYTES_MAX)
    ]


def check_text(number: int, table: Table, schema: Schema) -> str:
    """A CHECK constraint; its SQLite name carries its number in the table."""
    check = table.checks[number]
    condition = evaluate_subqueries(compile_expression(check.expression, table, schema))
    return f"CONSTRAINT {quote_name(f'check${table.name}${number}')} CHECK ({condition})"


def parts_text(parts: tuple[KeyPart, ...]) -> str:
    """The columns of an index with their order."""
    return ", ".join(f"{quote_name(p.column)}{' DESC' if p.descending else ''}" for p in parts)


def key_text(table: Table) -> str:
    """What is unique in a table: its key, or (without one) a constant: it has one row at most."""
    return parts_text(table.primary_key) or '("$ts" IS NULL)'


def key_objects(table: Table) -> dict[str, str]:
    """The unique index of the primary key, and the small one that finds uncommitted rows."""
    pending = quote_name("p$" + table.name)
    return {
        key_index(table.name): f"CREATE UNIQUE INDEX {key_index(table.name)} "
        f"ON {current_table(table.name)} ({key_text(table)})",
        pending: f'CREATE INDEX {pending} ON {current_table(table.name)} ("$ts") '
        f'WHERE "$ts" = {PENDING}',
        quote_name("r$" + table.name): f"CREATE INDEX {quote_name('r$' + table.name)} "
        f'ON {history_table(table.name)} ("$to")',
    }


def index_objects(index: Index, table: Table) -> dict[str, str]:
    """A secondary index. NULLs are equal in a UNIQUE one of Spanner: SQLite needs an extra.

    A column that cannot be NULL has no condition in the index: SQLite removes the same condition
    from queries before it compares the two, and would not find the index fit to be read.
    """
    name = quote_name("i$" + index.name)
    on = f"ON {current_table(table.name)}"
    filtered = [name for name in filter_columns(index) if may_be_null(table, name)]
    where = " AND ".join(f"{quote_name(c)} IS NOT NULL" for c in filtered)
    where = f" WHERE {where}" if where else ""
    nullable = [p.column for p in index.parts if may_be_null(table, p.column)]
    exact = not set(map(str.casefold, nullable)) - set(map(str.casefold, filtered))
    unique = "UNIQUE " if index.unique and exact else ""
    objects = {name: f"CREATE {unique}INDEX {name} {on} ({parts_text(index.parts)}){where}"}
    if index.unique and not exact:
        extra = quote_name("x$" + index.name)
        keys = ", ".join(null_as_value(table, part) for part in index.parts)
        objects[extra] = f"CREATE UNIQUE INDEX {extra} {on} ({keys}){where}"
    return objects


def filter_columns(index: Index) -> tuple[str, ...]:
    """The columns that must not be NULL for a row to be in the index."""
    return tuple(p.column for p in index.parts) if index.null_filtered else index.where_not_null


def may_be_null(table: Table, name: str) -> bool:
    """Whether a column can hold NULL."""
    column = table.column(name)
    return column is not None and not column.not_null


def null_as_value(table: Table, part: KeyPart) -> str:
    """An expression in which NULL equals NULL: a value of a storage class that never occurs."""
    column = table.column(part.column)
    bytes_column = column is not None and column.type.code is TypeCode.BYTES
    replacement = "''" if bytes_column else "x''"
    return f"ifnull({quote_name(part.column)}, {replacement})"


def history_triggers(table: Table) -> dict[str, str]:
    """What keeps the replaced rows. Rows of the same commit leave no history."""
    columns = [quote_name(c.name) for c in table.columns]
    names = ", ".join(columns)
    olds = ", ".join(f"OLD.{c}" for c in columns)
    into = f'INSERT INTO {history_table(table.name)} ("$from", "$to", {names})'
    update, delete = quote_name("u$" + table.name), quote_name("d$" + table.name)
    now = '(SELECT last_commit FROM "$state")'
    on = f"ON {current_table(table.name)}"
    return {
        update: f"CREATE TRIGGER {update} BEFORE UPDATE {on} "
        f'WHEN OLD."$ts" <> {PENDING} AND OLD."$ts" <> NEW."$ts" '
        f'BEGIN {into} VALUES (OLD."$ts", NEW."$ts", {olds}); END',
        delete: f"CREATE TRIGGER {delete} BEFORE DELETE {on} "
        f'WHEN OLD."$ts" <> {PENDING} AND OLD."$ts" <> {now} '
        f'BEGIN {into} VALUES (OLD."$ts", {now}, {olds}); END',
    }
